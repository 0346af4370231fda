//! Arms, rounds, the split of the wall, the prompt cache.

use serde_json::Value;

use crate::pair::stage::{Agent, GOOD, Ran, Stage, number, text};

/// Lenient on time: these runs take milliseconds on a noisy machine.
const ANY_TIME: [&str; 2] = ["--fail-above", "100000"];

fn kinds(ran: &Ran) -> Vec<String> {
    let arms = ran.arms();
    arms.iter().map(|a| text(a, "kind").to_owned()).collect()
}

/// A run of two sessions of the tiny task.
fn twice(more: &[&str]) -> (Stage, Ran) {
    let stage = Stage::with(&["ask", "side", "ask", "write greeting.txt hello", "result"]);
    let mut args = vec!["--task", "tiny", "--task", "tiny"];
    args.extend(ANY_TIME);
    args.extend(more);
    let ran = stage.pair(&args);
    assert_eq!(ran.functional(), "pass", "{ran:#?}");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    (stage, ran)
}

#[test]
fn two_sessions_of_one_task_are_told_apart_overlap_together_and_never_back_to_back() {
    // Slow enough that the two sessions surely meet.
    let (_stage, ran) = twice(&["--speed", "5"]);
    assert_eq!(kinds(&ran), ["together", "back_to_back"]);
    for arm in ran.arms() {
        let ids: Vec<&str> = arm["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| text(s, "id"))
            .collect();
        assert_eq!(ids, ["tiny", "tiny-2"]);
        let together = arm["kind"] == "together";
        assert_eq!(arm["max_overlap"], if together { 2 } else { 1 });
        assert_eq!(arm["start_skew_s"].is_null(), !together);
        let walls: f64 = arm["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| number(s, "wall_s"))
            .sum();
        assert!((walls - number(&arm, "sum_of_walls_s")).abs() < 1e-4);
        if together {
            assert!(number(&arm, "makespan_s") < walls, "{arm:#}");
        } else {
            assert!(number(&arm, "makespan_s") >= walls, "{arm:#}");
        }
    }
}

#[test]
fn the_split_adds_up_to_each_wall_within_10_ms_and_the_requests_are_counted_by_role() {
    let (stage, ran) = twice(&[]);
    for session in ran.sessions() {
        let split = session["split"].as_object().unwrap();
        let sum: f64 = split.values().map(|v| v.as_f64().unwrap()).sum();
        let wall = number(&session, "wall_s");
        assert!((sum - wall).abs() < 0.01, "{sum} of {wall}: {session:#}");
        assert_eq!(session["requests"], 2);
        assert_eq!(session["side_requests"], 1);
        assert_eq!(session["probe_requests"], 0);
        for known in ["input_tokens", "cached_tokens", "output_tokens", "cpu_s"] {
            assert!(session[known].is_number(), "{known}: {session:#}");
        }
        assert!(number(&session, "input_tokens") > 0.0);
        assert!(number(&session, "output_tokens") > 0.0);
    }
    // Two arms of two sessions with three requests each.
    let lines = stage.result_text("requests.jsonl");
    let requests: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(requests.len(), 12);
    for (arm, session) in [
        ("together", "tiny"),
        ("together", "tiny-2"),
        ("back_to_back", "tiny"),
        ("back_to_back", "tiny-2"),
    ] {
        let roles: Vec<&str> = requests
            .iter()
            .filter(|r| r["arm"] == arm && r["session"] == session)
            .map(|r| text(r, "role"))
            .collect();
        assert_eq!(roles, ["main", "side", "main"], "{arm} {session}");
    }
}

#[test]
fn arms_alternate_from_round_to_round() {
    let stage = Stage::with(&GOOD);
    let mut args = vec!["--rounds", "2"];
    args.extend(ANY_TIME);
    let ran = stage.pair(&args);
    assert_eq!(
        kinds(&ran),
        ["together", "back_to_back", "back_to_back", "together"]
    );
    let record = ran.record();
    let rounds = record["rounds"].as_array().unwrap();
    assert_eq!(rounds[0]["index"], 1);
    assert_eq!(rounds[1]["index"], 2);
    assert!(rounds.iter().all(|r| r["valid"] == true), "{rounds:#?}");
    // One session has nothing to be compared with.
    assert_eq!(record["verdict"]["time"], "not_compared");
    assert_eq!(record["verdict"]["worst_slowdown"]["value"], Value::Null);
}

#[test]
fn auto_rounds_end_after_four_once_the_verdict_is_settled() {
    let (_stage, ran) = twice(&["--rounds", "auto", "--pass-below", "1000"]);
    let record = ran.record();
    assert_eq!(record["rounds"].as_array().unwrap().len(), 4);
    assert_eq!(record["spec"]["rounds"], 12);
    let verdict = &record["verdict"];
    assert_eq!(verdict["time"], "pass");
    assert_eq!(verdict["evidence"]["looks"], 5);
    assert!(number(&verdict["evidence"], "at_most") < 1000.0);
    assert_eq!(verdict["rounds_needed"], Value::Null);
}

#[test]
fn no_round_begins_after_the_limit_of_time_and_the_report_says_so() {
    let (_stage, ran) = twice(&["--max-time", "1ms"]);
    let record = ran.record();
    assert_eq!(record["rounds"].as_array().unwrap().len(), 1);
    assert_eq!(record["verdict"]["evidence"], Value::Null);
    let warnings = record["verdict"]["warnings"].as_array().unwrap();
    assert!(
        warnings
            .iter()
            .any(|w| w["code"] == "budget_used" && w["by_time"] == true),
        "{warnings:#?}"
    );
}

#[test]
fn a_run_against_itself_compares_two_equal_arms_and_has_no_other_verdict_about_time() {
    let (_stage, ran) = twice(&["--against-itself", "--rounds", "2"]);
    assert_eq!(
        kinds(&ran),
        [
            "back_to_back",
            "back_to_back_again",
            "back_to_back_again",
            "back_to_back"
        ]
    );
    for arm in ran.arms() {
        assert_eq!(arm["max_overlap"], 1, "{arm:#}");
    }
    let record = ran.record();
    let verdict = &record["verdict"];
    assert_eq!(verdict["time"], "not_compared");
    let itself = &verdict["against_itself"];
    assert_eq!(itself["sessions"].as_array().unwrap().len(), 2);
    assert_eq!(itself["overall"]["n"], 2);
    assert!(number(itself, "largest_factor") >= 1.0);
}

/// Cached tokens of the first main request of each session, in the order of the run.
fn cached_at_first(stage: &Stage) -> Vec<(String, u64)> {
    stage
        .result_text("requests.jsonl")
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|r| r["number"] == 1)
        .map(|r| {
            let arm = text(&r, "arm").to_owned();
            (arm, r["cached_tokens"].as_u64().unwrap())
        })
        .collect()
}

#[test]
fn a_cold_run_finds_nothing_of_another_session_or_arm_in_the_servers_cache() {
    let (stage, ran) = twice(&["--cache", "cold"]);
    let first = cached_at_first(&stage);
    assert_eq!(first.len(), 4);
    assert!(first.iter().all(|(_, cached)| *cached == 0), "{first:?}");
    // While a session's own second request does profit from its first.
    for session in ran.sessions() {
        assert!(number(&session, "cached_tokens") > 0.0, "{session:#}");
    }
    let warnings = ran.record()["verdict"]["warnings"].to_string();
    assert!(!warnings.contains("differ in cached"), "{warnings}");
}

#[test]
fn a_second_arm_that_profits_from_the_first_ones_cache_is_flagged() {
    let stage = Stage::with(&GOOD);
    let mut args = vec!["--cache", "keep"];
    args.extend(ANY_TIME);
    let ran = stage.pair(&args);
    let first = cached_at_first(&stage);
    assert_eq!(first[0], ("together".to_owned(), 0));
    assert_eq!(first[1].0, "back_to_back");
    assert!(first[1].1 > 0, "{first:?}");
    let warnings = ran.record()["verdict"]["warnings"].to_string();
    assert!(
        warnings.contains("the arms differ in cached prompt tokens"),
        "{warnings}"
    );
    let report = stage.run(&["report", &stage.results().display().to_string()]);
    assert!(
        report
            .stdout
            .contains("the arms differ in cached prompt tokens"),
        "{}",
        report.stdout
    );
}

#[test]
fn a_warm_run_goes_through_every_session_once_unscored() {
    let stage = Stage::with(&GOOD);
    let mut args = vec!["--cache", "warm"];
    args.extend(ANY_TIME);
    let ran = stage.pair(&args);
    // The unscored one is no part of the record's rounds, but its requests are told.
    assert_eq!(kinds(&ran), ["together", "back_to_back"]);
    let rounds: Vec<u64> = stage
        .result_text("requests.jsonl")
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|r| r["round"].as_u64().unwrap())
        .collect();
    assert_eq!(rounds, [0, 1, 1]);
    let first = cached_at_first(&stage);
    assert!(first[1].1 > 0 && first[1].1 == first[2].1, "{first:?}");
}

#[test]
fn a_slowdown_above_the_threshold_is_a_time_fail_and_exit_1() {
    // Together, each of two sessions generates at well below the speed it has alone.
    let stage = Stage::with(&GOOD);
    stage.agent(&Agent {
        steps: &["ask", "ask", "ask", "write greeting.txt hello", "result"],
        ..Agent::default()
    });
    let ran = stage.pair(&[
        "--task",
        "tiny",
        "--task",
        "tiny",
        "--speed",
        "1",
        "--pass-below",
        "1",
        "--fail-above",
        "1.01",
    ]);
    let verdict = &ran.record()["verdict"];
    assert_eq!(verdict["functional"], "pass", "{verdict:#}");
    assert_eq!(verdict["time"], "fail", "{verdict:#}");
    assert_eq!(ran.code, Some(1));
}
