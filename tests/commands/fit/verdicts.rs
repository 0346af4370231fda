//! What `fit` says of servers that refuse, fail, stall or answer wrongly.

use crate::fit::place::{EVEN, Place, Ran, cell};

/// Runs `fit` on a profile with these faults.
fn run(sim: &str, more: &[&str]) -> (Place, Ran) {
    let place = Place::new();
    place.profile("faulty", &format!("{EVEN}{sim}"));
    let args = [
        "fit",
        "--server",
        "faulty",
        "--contexts",
        "8k",
        "--answer-tokens",
        "16",
        "--speed",
        "20",
        "--json",
        "--no-side",
        // However slow the machine is: these tests are not about time.
        "--pass-below",
        "1000",
        "--fail-above",
        "1000",
    ];
    let ran = place.run(args.iter().chain(more));
    (place, ran)
}

#[test]
fn a_server_that_drops_a_fact_in_thirteen_is_caught() {
    let fault = "[sim.faults]\ndrop_fact_every = 13\n";
    let more = ["--sessions", "1..2", "--rounds", "1"];
    let (_, ran) = run(fault, &more);
    let record = ran.record();
    let alone = cell(&record, 8192, 1);
    assert_eq!(
        (&alone["recall"]["right"], &alone["recall"]["asked"]),
        (&12.into(), &13.into())
    );
    let warnings = record["verdict"]["warnings"].to_string();
    assert!(
        warnings.contains("answers 12 of 13 questions right"),
        "{warnings}"
    );

    let (_, ran) = run(fault, &[&more[..], &["--recall", "all"]].concat());
    let record = ran.record();
    assert_eq!(cell(&record, 8192, 1)["verdict"], "recall");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert_eq!(
        record["verdict"]["answer"],
        "no session fits at 8K (recall)"
    );
}

#[test]
fn a_server_that_answers_from_another_sessions_cache_is_caught() {
    let fault = "[sim.faults]\nanswer_from_other_session = true\n";
    let (_, ran) = run(
        fault,
        &[
            "--sessions",
            "1..2",
            "--rounds",
            "1",
            "--checks",
            "4",
            "--expect",
            "2",
        ],
    );
    let record = ran.record();
    let two = cell(&record, 8192, 2);
    assert_eq!(two["verdict"], "recall", "{two:#}");
    let reasons = two["reasons"].to_string();
    assert!(
        reasons.contains("one session alone gets 4 of 4"),
        "{reasons}"
    );
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
}

#[test]
fn a_refused_size_ends_at_once_and_larger_ones_are_left_out_while_others_go_on() {
    let fault = "[sim.faults]\noverload_above = 2\n";
    let (place, ran) = run(
        fault,
        &["--sessions", "1..4", "--rounds", "2", "--checks", "2"],
    );
    let record = ran.record();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for (sessions, verdict) in [(1, "pass"), (2, "pass"), (3, "refused")] {
        let cell = cell(&record, 8192, sessions);
        assert_eq!(cell["verdict"], verdict, "{cell:#}");
    }
    let three = cell(&record, 8192, 3);
    assert!(three["refused"]["client"].as_u64().unwrap() >= 1);
    assert!(three["slowdown"]["worst"].is_null(), "{three:#}");
    assert!(
        three["reasons"].to_string().contains("turned away"),
        "{three:#}"
    );
    // The refused one was not asked for again, and four not after three; both could come first.
    let left = record["left_out"].as_array().unwrap();
    assert!(
        left.iter().all(|l| l["sessions"].as_u64().unwrap() >= 3),
        "{left:?}"
    );
    assert!(left.len() >= 2, "{left:?}");
    assert_eq!(record["verdict"]["answer"], "2 sessions fit at 8K");
    // Those that were broken off are rows too.
    let rows = place.result_text("requests.jsonl");
    assert!(rows.contains("\"client_aborted\"") || rows.matches("\"overloaded\"").count() > 1);
}

#[test]
fn a_server_that_stalls_ends_the_combination_within_the_limit_and_is_named() {
    let fault = "[sim.faults]\nstall_after_requests = 9\n";
    let more = [
        "--sessions",
        "1..2",
        "--rounds",
        "1",
        "--checks",
        "2",
        "--first-token-limit",
        "20s",
    ];
    let (_, ran) = run(fault, &more);
    let record = ran.record();
    let stalled = record["cells"].as_array().unwrap();
    let stalled = stalled.iter().find(|c| c["verdict"] == "error").unwrap();
    assert!(
        stalled["reasons"]
            .to_string()
            .contains("got no token within the limit"),
        "{stalled:#}"
    );
}

#[test]
fn a_stream_that_breaks_off_is_an_error_and_the_other_sizes_are_measured() {
    let fault =
        "[sim.faults]\nstreams = [{ request = 14, after_tokens = 3, kind = \"truncate\" }]\n";
    let (_, ran) = run(
        fault,
        &["--sessions", "1..3", "--rounds", "1", "--checks", "2"],
    );
    let record = ran.record();
    let cells = record["cells"].as_array().unwrap();
    let verdicts: Vec<&str> = cells
        .iter()
        .map(|c| c["verdict"].as_str().unwrap())
        .collect();
    assert_eq!(
        verdicts.iter().filter(|v| **v == "error").count(),
        1,
        "{verdicts:?}"
    );
    assert_eq!(verdicts.len(), 3);
    assert!(!verdicts.contains(&"unknown"), "{verdicts:?}");
}

#[test]
fn a_search_finds_the_largest_size_and_leaves_the_rest_alone() {
    let fault = "[sim.faults]\noverload_above = 5\n";
    let (_, ran) = run(
        fault,
        &[
            "--search",
            "--sessions",
            "1..16",
            "--rounds",
            "1",
            "--checks",
            "1",
        ],
    );
    let record = ran.record();
    assert_eq!(
        record["verdict"]["answer"], "5 sessions fit at 8K",
        "{}",
        ran.stderr
    );
    let tried: Vec<u64> = record["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["sessions"].as_u64().unwrap())
        .collect();
    assert_eq!(tried, [1, 2, 4, 5, 6, 8]);
}

#[test]
fn staggered_starts_are_recorded_and_are_no_skew() {
    let (_, ran) = run(
        "",
        &[
            "--sessions",
            "3",
            "--rounds",
            "1",
            "--checks",
            "1",
            "--stagger",
            "2s",
        ],
    );
    let record = ran.record();
    assert_eq!(record["spec"]["stagger_s"], 2.0);
    let three = record["measured"]
        .as_array()
        .unwrap()
        .iter()
        .find(|m| m["sessions"] == 3)
        .unwrap();
    let sent = |lane: usize| {
        three["lanes"][lane]["turns"][0]["sent_at_s"]
            .as_f64()
            .unwrap()
    };
    // On the wall, at speed 20.
    assert!(sent(2) - sent(0) > 0.19, "{}", sent(2) - sent(0));
    let skew = three["start_skew_s"].as_f64().unwrap();
    assert!(skew < 2.0, "{skew}");
}

#[test]
fn one_session_alone_is_measured_in_every_round_that_was_asked_for() {
    let (_, ran) = run("", &["--sessions", "1", "--rounds", "2", "--checks", "1"]);
    assert_eq!(ran.record()["measured"].as_array().unwrap().len(), 2);
}

#[test]
fn auto_rounds_end_once_every_size_is_settled_and_the_lone_session_goes_with_the_last() {
    let more = ["--sessions", "1,2", "--rounds", "auto", "--checks", "1"];
    let (_, ran) = run("", &more);
    let record = ran.record();
    assert_eq!(record["measured"].as_array().unwrap().len(), 8);
    let two = cell(&record, 8192, 2);
    assert_eq!(two["verdict"], "pass");
    assert_eq!(two["evidence"]["looks"], 5);
    assert_eq!(record["spec"]["rounds"], 12);
}
