//! Single rules of the scheduler.

use super::*;
use crate::faults::StreamFaultKind;
use crate::profile::{SimProfile, SimTable};

/// 1 ms a prompt token, 100 ms a step whatever the batch; nothing else costs anything.
fn plain(more: &str) -> SimProfile {
    let text = format!(
        "max_concurrent = 8\nprefill_s_per_token = 1e-3\nprefill_chunk_tokens = 1000\n\
         decode = [{{ batch = 1, step_ms = 100.0 }}]\n{more}"
    );
    let mut table: toml::Table = toml::from_str(&text).unwrap();
    if !more.contains("cache_per_slot") && !more.contains("cache_ram") {
        table.insert("cache_tokens".into(), toml::Value::Integer(1_000_000));
    }
    let table: SimTable = table.try_into().unwrap();
    SimProfile::new("plain", "m", 1_000_000, &table).unwrap()
}

fn close(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-6, "{found} is not {wanted}");
}

/// A request that decodes for long, and one with a prompt of 10 s that comes while it does.
fn prefill_beside_decode(more: &str) -> (Outcome, Outcome) {
    let mut bench = Bench::new(&plain(more));
    let decoding = bench.ask(0.0, 1, 100, 500);
    let reading = bench.ask(1.0, 2, 10_000, 2);
    bench.run();
    (
        bench.outcomes[decoding].clone(),
        bench.outcomes[reading].clone(),
    )
}

/// Tokens between two instants.
fn tokens_between(outcome: &Outcome, from: f64, to: f64) -> usize {
    outcome
        .tokens
        .iter()
        .filter(|at| **at > from + 1e-9 && **at <= to + 1e-9)
        .count()
}

#[test]
fn without_a_share_a_prefill_holds_up_all_decoding() {
    let (decoding, reading) = prefill_beside_decode("");
    let begun = 1.0;
    close(reading.tokens[0], begun + 10.0);
    assert_eq!(tokens_between(&decoding, begun, begun + 10.0), 0);
}

#[test]
fn with_a_share_decoding_gets_it_and_the_prefill_takes_that_much_longer() {
    for share in [0.2, 0.5, 0.8] {
        let (decoding, reading) = prefill_beside_decode(&format!("prefill_decode_share = {share}"));
        let whole = 10.0 / (1.0 - share);
        let took = reading.tokens[0] - 1.0;
        // Decoding after the last chunk is none of the prefill, so that one chunk's share lacks.
        let lacks = 1.0 * share / (1.0 - share);
        assert!((took - (whole - lacks)).abs() < 0.11, "{share}: {took}");
        let steps = tokens_between(&decoding, 1.0, reading.tokens[0]);
        assert!(
            (steps as f64 * 0.1 - (took - 10.0)).abs() < 0.01,
            "{share}: {steps} steps"
        );
    }
}

#[test]
fn interleaved_chunks_take_turns_with_each_other_and_with_decode_steps() {
    let mut bench = Bench::new(&plain("prefill_interleave = true"));
    let decoding = bench.ask(0.0, 1, 100, 100);
    let long = bench.ask(1.0, 2, 10_000, 2);
    let short = bench.ask(1.5, 3, 500, 2);
    bench.run();
    let outcomes = &bench.outcomes;
    // It waits for the end of the batch in which it came, not for the prompt.
    close(outcomes[short].tokens[0], 1.0 + 1.0 + 0.1 + 0.5);
    // The long one lost the turn of the short one, and a step after each chunk but the last.
    close(outcomes[long].tokens[0], 1.0 + 10.0 + 0.5 + 10.0 * 0.1);
    assert_eq!(
        tokens_between(&outcomes[decoding], 1.0, outcomes[long].tokens[0]),
        10
    );
}

#[test]
fn prompts_that_are_read_beside_everything_cost_the_others_nothing() {
    let profile = plain("prefill_beside = true");
    let alone = {
        let mut bench = Bench::new(&profile);
        bench.ask(0.0, 1, 2_000, 50);
        bench.run();
        bench.outcomes[0].clone()
    };
    close(alone.first_token(), 2.0);
    close(alone.total(), 2.0 + 4.9);
    let mut bench = Bench::new(&profile);
    for session in 0..8 {
        bench.ask(f64::from(session) * 0.37, session as u64 + 1, 2_000, 50);
    }
    bench.run();
    for outcome in &bench.outcomes {
        close(outcome.first_token(), alone.first_token());
        // A first token may have to wait for the beginning of the next step.
        assert!(
            outcome.total() - alone.total() < 0.1 + 1e-9,
            "{}",
            outcome.total()
        );
    }
}

#[test]
fn of_unread_prompts_the_first_or_the_shortest_is_read_next() {
    for (order, expected) in [
        ("fifo", [1.0, 6.0, 6.5]),
        ("shortest_first", [1.0, 6.5, 1.5]),
    ] {
        let mut bench = Bench::new(&plain(&format!("prefill_order = \"{order}\"")));
        bench.ask(0.0, 1, 1_000, 1);
        bench.ask(0.1, 2, 5_000, 1);
        bench.ask(0.2, 3, 500, 1);
        bench.run();
        for (outcome, at) in bench.outcomes.iter().zip(expected) {
            close(outcome.tokens[0], at);
        }
    }
}

#[test]
fn a_prefill_that_began_is_not_set_aside_for_a_shorter_one() {
    let mut bench = Bench::new(&plain("prefill_order = \"shortest_first\""));
    bench.ask(0.0, 1, 5_000, 1);
    let short = bench.ask(0.5, 2, 10, 1);
    bench.run();
    close(bench.outcomes[short].tokens[0], 5.01);
}

#[test]
fn an_idle_scheduler_begins_at_the_arrival_however_late_it_learns_of_it() {
    let mut bench = Bench::new(&plain(""));
    bench.ask(3.0, 1, 1_000, 1);
    // The world outside is long past it.
    bench.now = START + Duration::from_secs(60);
    bench.turn();
    bench.run();
    close(bench.outcomes[0].tokens[0], 4.0);
}

#[test]
fn what_is_cached_costs_only_its_restoring() {
    let profile =
        plain("restore_ms = 50.0\nrestore_ram_s_per_token = 1e-5\ncache_block_tokens = 100");
    let mut bench = Bench::new(&profile);
    let cold = bench.ask(0.0, 1, 4_000, 200);
    bench.run();
    close(bench.outcomes[cold].first_token(), 4.0);
    // Prompt and answer of the turn before, and 300 new tokens.
    let warm = bench.ask(100.0, 1, 4_500, 1);
    bench.run();
    assert_eq!(bench.outcomes[warm].cached, 4_200);
    close(bench.outcomes[warm].first_token(), 0.05 + 0.042 + 0.3);
    let other = bench.ask(200.0, 2, 4_500, 1);
    bench.run();
    assert_eq!(bench.outcomes[other].cached, 0);
}

#[test]
fn what_has_no_place_in_ram_is_restored_from_disk_at_its_own_cost() {
    // 1,000 tokens in RAM, 10,000 on disk.
    let profile = plain(
        "kv_bytes_per_token = 10\ncache_ram = 10000\ncache_disk = 100000\ncache_block_tokens = 100\n\
         restore_disk_s_per_token = 1e-4",
    );
    let mut bench = Bench::new(&profile);
    bench.ask(0.0, 1, 1_000, 1);
    bench.ask(10.0, 2, 1_000, 1);
    let back = bench.ask(20.0, 1, 1_100, 1);
    let again = bench.ask(30.0, 1, 1_200, 1);
    bench.run();
    close(bench.outcomes[back].first_token(), 0.1 + 0.1);
    // The part that came back to RAM costs nothing now; what it pushed out does.
    assert!(
        bench.outcomes[again].first_token() < 0.1 + 0.011,
        "{:?}",
        bench.outcomes[again]
    );
}

#[test]
fn slots_with_a_cache_each_keep_their_own_last_prompt() {
    let mut bench = Bench::new(&plain("cache_per_slot = true\ncache_block_tokens = 100"));
    bench.ask(0.0, 1, 1_000, 10);
    bench.ask(0.0, 2, 1_000, 10);
    let second = bench.ask(20.0, 2, 1_500, 10);
    let first = bench.ask(40.0, 1, 1_500, 10);
    bench.run();
    assert_eq!(
        [bench.outcomes[first].cached, bench.outcomes[second].cached],
        [1_000, 1_000]
    );
}

#[test]
fn the_very_first_request_pays_its_set_up_and_no_other() {
    let mut bench = Bench::new(&plain(
        "first_request_cost_ms = 2000.0\nrequest_overhead_ms = 10.0",
    ));
    bench.ask(0.0, 1, 1_000, 1);
    bench.ask(10.0, 2, 1_000, 1);
    bench.run();
    close(bench.outcomes[0].first_token(), 3.01);
    close(bench.outcomes[1].first_token(), 1.01);
}

#[test]
fn a_server_that_grows_slower_does_so_with_each_request() {
    let mut bench = Bench::new(&plain("faults = { slower_each_request = 0.1 }"));
    for n in 0..4 {
        bench.ask(f64::from(n) * 10.0, n as u64 + 1, 1_000, 2);
    }
    bench.run();
    for (n, outcome) in bench.outcomes.iter().enumerate() {
        close(outcome.total(), 1.1 * (1.0 + 0.1 * n as f64));
    }
}

#[test]
fn a_client_that_leaves_frees_its_slot_or_does_not_as_the_profile_says() {
    for (more, expected) in [("", 1.4), ("keep_slot_after_leave = true", 3.0)] {
        let mut bench = Bench::new(&plain(&format!("{more}\n").replace("\n\n", "\n")));
        bench.scheduler = {
            let mut table = plain(more).timing.table().clone();
            table.max_concurrent = 1;
            Bench::new(&SimProfile::new("one", "m", 1_000_000, &table).unwrap()).scheduler
        };
        let leaves = bench.ask(0.0, 1, 1_000, 20);
        let waits = bench.ask(0.5, 2, 100, 1);
        bench.run_to(leaves, 4);
        bench.leave(leaves);
        bench.run();
        let began = bench.outcomes[waits].tokens[0] - 0.1;
        // 1 s of prefill and three steps, or all nineteen; the step that has begun is finished.
        assert!((began - expected).abs() < 0.101, "{more:?}: {began}");
    }
}

#[test]
fn an_answer_that_stalls_at_once_costs_nothing_but_its_slot() {
    let mut bench = Bench::new(&plain(""));
    let dead = bench.order(
        0.0,
        Order {
            prompt_tokens: 9_000,
            output_tokens: 5,
            session: 1,
            fault: Some(StreamFault {
                request: 1,
                after_tokens: 0,
                kind: StreamFaultKind::Stall,
            }),
        },
    );
    let alive = bench.ask(0.0, 2, 1_000, 2);
    bench.run();
    assert!(bench.outcomes[dead].tokens.is_empty() && bench.outcomes[dead].finished.is_none());
    close(bench.outcomes[alive].total(), 1.1);
}

#[test]
fn no_batching_slows_n_sessions_down_n_times_and_ideal_batching_not_at_all() {
    for (name, factor) in [("no-batching", 4.0), ("ideal-batching", 1.0)] {
        let profile = profile(name, &[]);
        let turn = |sessions: u64| {
            let mut bench = Bench::new(&profile);
            for session in 1..=sessions {
                bench.ask(0.0, session, 8_192, 256);
            }
            bench.run();
            let begin = bench.now.since(START).as_secs_f64() + 1.0;
            let warm: Vec<usize> = (1..=sessions)
                .map(|session| bench.ask(begin, session, 8_600, 256))
                .collect();
            bench.run();
            warm.iter()
                .map(|n| bench.outcomes[*n].total())
                .fold(0.0, f64::max)
        };
        let found = turn(4) / turn(1);
        assert!((found / factor - 1.0).abs() < 0.005, "{name}: {found}");
    }
}
