//! The profile `flash-next` does what was published; found by trying, kept by this.

use super::*;

/// Client time between the end of a turn and the next request.
const PAUSE: f64 = 0.02;
const CHECKS: usize = 13;
/// Prompt tokens that a turn adds: the answer before, and a question with a little filler.
const ADDED: u64 = 256 + 130;

/// Mean seconds of a warm turn of `sessions` sessions beside each other, with a side request
/// every `side_every` seconds, and the side requests' own times.
fn warm_turns(
    profile: &SimProfile,
    context: u64,
    sessions: u64,
    side_every: Option<f64>,
) -> (f64, Vec<f64>) {
    let mut bench = Bench::new(profile);
    let cold = context - ADDED * (CHECKS as u64 + 1);
    let mut last = Vec::new();
    for session in 0..sessions {
        last.push(bench.ask(0.0, session + 1, cold, 256));
    }
    bench.run();
    let mut begin = bench.now.since(START).as_secs_f64() + 1.0;
    let began = begin;
    for at in &mut last {
        *at = bench.ask(begin, *at as u64 + 1, cold + ADDED, 256);
    }
    let mut turns = vec![1; last.len()];
    let (mut seconds, mut count) = (0.0, 0);
    let mut sides = Vec::new();
    let mut next_side = side_every.map(|every| began + every / 2.0);
    while turns.iter().any(|done| *done < CHECKS)
        || last.iter().any(|n| bench.outcomes[*n].finished.is_none())
    {
        if let (Some(at), Some(every)) = (next_side, side_every) {
            // Ordered ahead of time, as a client with a clock sends them.
            if at < bench.now.since(START).as_secs_f64() + 2.0 * every {
                sides.push(bench.ask(at, 1000 + sides.len() as u64, 200, 32));
                next_side = Some(at + every);
            }
        }
        assert!(bench.turn());
        for session in 0..last.len() {
            let number = last[session];
            let Some(end) = bench.outcomes[number].finished else {
                continue;
            };
            if turns[session] < CHECKS {
                seconds += bench.outcomes[number].total();
                count += 1;
                turns[session] += 1;
                begin = end + PAUSE;
                let prompt = cold + ADDED * turns[session] as u64;
                last[session] = bench.ask(begin, session as u64 + 1, prompt, 256);
            }
        }
    }
    let sides = sides
        .iter()
        .filter(|n| bench.outcomes[**n].finished.is_some());
    let sides = sides.map(|n| bench.outcomes[*n].total()).collect();
    (seconds / f64::from(count), sides)
}

fn near(found: f64, wanted: f64, share: f64) -> bool {
    (found / wanted - 1.0).abs() <= share
}

#[test]
fn flash_next_reads_cold_prompts_in_the_published_time() {
    let profile = profile("flash-next", &[]);
    for (context, seconds) in [(32_768, 40.0), (131_072, 166.0), (262_000, 351.0)] {
        let mut bench = Bench::new(&profile);
        bench.ask(0.0, 1, context, 2);
        bench.run();
        let found = bench.outcomes[0].first_token();
        assert!(near(found, seconds, 0.01), "{context}: {found}");
    }
}

#[test]
fn flash_next_slows_sessions_down_as_published() {
    let profile = profile("flash-next", &[]);
    for (context, slowdowns) in [
        (32_768, [1.76, 2.37, 2.84].as_slice()),
        (131_072, &[1.94, 2.36, 3.66]),
    ] {
        let (alone, _) = warm_turns(&profile, context, 1, None);
        assert!((9.0..10.6).contains(&alone), "{context}: {alone}");
        for (sessions, slowdown) in (2..).zip(slowdowns) {
            let (together, _) = warm_turns(&profile, context, sessions, None);
            let found = together / alone;
            assert!(
                near(found, *slowdown, 0.01),
                "{sessions} x {context}: {found}"
            );
        }
    }
}

#[test]
fn flash_next_with_side_requests_is_as_published() {
    let profile = profile("flash-next", &[]);
    for (context, slowdown) in [(32_768, 3.37), (131_072, 3.85)] {
        let (alone, _) = warm_turns(&profile, context, 1, None);
        let (together, _) = warm_turns(&profile, context, 4, Some(4.0));
        let found = together / alone;
        assert!(near(found, slowdown, 0.01), "{context}: {found}");
    }
}

#[test]
fn flash_next_with_a_small_cache_runs_two_of_the_longest_sessions_as_published() {
    let profile = profile("flash-next", &["cache_ram=4GB"]);
    let (alone, _) = warm_turns(&profile, 262_144, 1, None);
    let (together, _) = warm_turns(&profile, 262_144, 2, None);
    assert!((10.3..11.2).contains(&alone), "{alone}");
    let found = together / alone;
    assert!(near(found, 1.745, 0.01), "{found}");
}

#[test]
fn a_side_request_waits_for_the_prefill_that_it_meets_and_not_for_those_in_line() {
    let profile = profile("flash-next", &[]);
    let mut bench = Bench::new(&profile);
    for session in 0..3 {
        bench.ask(0.0, session + 1, 32_768, 32);
    }
    let side = bench.ask(1.0, 99, 200, 32);
    bench.run();
    let waited = bench.outcomes[side].first_token();
    assert!((39.0..40.5).contains(&waited), "{waited}");
    let mut free = Bench::new(&profile);
    free.ask(0.0, 99, 200, 32);
    free.run();
    assert!(
        near(free.outcomes[0].total(), 1.4, 0.1),
        "{:?}",
        free.outcomes[0]
    );
}
