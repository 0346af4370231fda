//! The third arm: together through the gate, beside together and back to back.

use serde_json::Value;

use crate::pair::faulty::{Answer, Faulty};
use crate::pair::stage::{Agent, GOOD, Ran, Stage, number, text};

/// Decoding two streams takes twice as long as decoding one, and nothing is cached: the server's
/// time is the sum of its requests' whatever their order.
const NO_BATCHING: &str = r#"schema = "flashrig.server/1"
kind = "simulated"
title = "a server whose batching gains nothing"
model = "flashrig-sim"
context = 131072

[sim]
max_concurrent = 8
prefill_s_per_token = 1e-3
decode = [{ batch = 1, step_ms = 20.0 }, { batch = 2, step_ms = 40.0 }]
cache_tokens = 0
"#;

/// A stage with the server `no-batching` and the agent `mine`.
fn no_batching(steps: &[&str]) -> Stage {
    let stage = Stage::with(steps);
    stage.write("harness/servers/no-batching.toml", NO_BATCHING);
    stage
}

fn kinds(ran: &Ran) -> Vec<String> {
    let arms = ran.arms();
    arms.iter().map(|a| text(a, "kind").to_owned()).collect()
}

/// The lines of `requests.jsonl` of one arm.
fn requests(stage: &Stage, arm: &str) -> Vec<Value> {
    stage
        .result_text("requests.jsonl")
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|r| r["arm"] == arm)
        .collect()
}

fn clock(request: &Value, name: &str) -> f64 {
    number(&request["clocks"], name)
}

/// How long a request was held by the gate.
fn held(request: &Value) -> f64 {
    clock(request, "permit_s") - clock(request, "body_s")
}

/// The largest number of requests that were in the server at once.
fn most_at_once(requests: &[Value]) -> usize {
    let spans: Vec<(f64, f64)> = requests
        .iter()
        .map(|r| (clock(r, "permit_s"), clock(r, "end_s")))
        .collect();
    spans
        .iter()
        .map(|(start, _)| {
            spans
                .iter()
                .filter(|(s, e)| s <= start && start < e)
                .count()
        })
        .max()
        .unwrap()
}

/// How long at least one request was open, seen from the agents: in the server or held.
fn open(requests: &[Value]) -> f64 {
    let mut spans: Vec<(f64, f64)> = requests
        .iter()
        .map(|r| (clock(r, "head_s"), clock(r, "end_s")))
        .collect();
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut sum, mut until) = (0.0, 0.0_f64);
    for (start, end) in spans {
        sum += (end - start.max(until)).max(0.0);
        until = until.max(end);
    }
    sum
}

#[test]
fn three_arms_stand_side_by_side_and_gated_costs_no_more_than_together_without_batching() {
    let stage = no_batching(&["ask", "ask", "write greeting.txt hello", "result"]);
    let ran = stage.pair(&[
        "--gated",
        "--server",
        "no-batching",
        "--speed",
        "2.5",
        "--task",
        "tiny",
        "--task",
        "tiny",
        "--rounds",
        "3",
        "--fail-above",
        "100000",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let rotated = [
        ["together", "gated", "back_to_back"],
        ["gated", "back_to_back", "together"],
        ["back_to_back", "together", "gated"],
    ];
    assert_eq!(kinds(&ran), rotated.concat());

    let record = ran.record();
    assert_eq!(
        record["spec"]["gate"],
        serde_json::json!({"limit": 1, "order": "fifo"})
    );
    let gated = requests(&stage, "gated");
    assert_eq!(most_at_once(&gated), 1);
    assert!(gated.iter().any(|r| held(r) > 0.1), "{gated:#?}");
    for arm in ["together", "back_to_back"] {
        let others = requests(&stage, arm);
        assert!(others.iter().all(|r| r["gate"].is_null() && held(r) == 0.0));
    }
    assert_eq!(most_at_once(&requests(&stage, "together")), 2);

    // The time in which the server had, or could have had, something to do: start-up and exit of
    // the agents are theirs, and not the gate's. The quietest round tells.
    let ratio = (1..=3)
        .map(|round| {
            let of = |arm| {
                let all = requests(&stage, arm);
                let round: Vec<Value> = all.into_iter().filter(|r| r["round"] == round).collect();
                open(&round)
            };
            of("gated") / of("together")
        })
        .fold(f64::INFINITY, f64::min);
    let verdict = &record["verdict"]["gated"];
    eprintln!("gated over together: {ratio:.4} while requests were open; {verdict}");
    assert!(ratio <= 1.03, "{ratio}");
    for name in [
        "worst_slowdown",
        "gated_over_back_to_back",
        "gated_over_together",
    ] {
        assert_eq!(verdict[name]["n"], 3, "{verdict:#}");
        assert!(verdict[name]["ci95"].is_array(), "{verdict:#}");
    }
    // What a session was held for is in its split, which adds up all the same.
    for session in ran.sessions() {
        let split = session["split"].as_object().unwrap();
        let sum: f64 = split.values().map(|v| v.as_f64().unwrap()).sum();
        assert!((sum - number(&session, "wall_s")).abs() < 0.01);
    }

    let report = stage.run(&["report", "--wide", &stage.results().display().to_string()]);
    let shown = report.stdout;
    for message in [
        "gated arm: at most 1 request in the server, fifo",
        " gate ",
        " · gated ",
        " · back to back ",
        "gated over together ",
    ] {
        assert!(shown.contains(message), "{message:?} is not in {shown}");
    }
    assert!(
        shown.contains(" soonest") || shown.contains("all three arms take the same time"),
        "{shown}"
    );
}

/// Four sessions that each ask for a title between two turns, gated in this order; their side
/// requests.
fn titles(order: &str) -> Vec<Value> {
    let stage = no_batching(&["ask", "side", "ask", "write greeting.txt hello", "result"]);
    let mut args = vec!["--gate", "1", "--gate-order", order];
    args.extend(["--server", "no-batching", "--speed", "4", "--rounds", "1"]);
    args.extend(["--task", "tiny"].repeat(4));
    args.extend(["--fail-above", "100000"]);
    let ran = stage.pair(&args);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(
        ran.record()["spec"]["gate"]["order"],
        order.replace('-', "_")
    );
    let gated = requests(&stage, "gated");
    assert_eq!(most_at_once(&gated), 1);
    let (side, main): (Vec<Value>, Vec<Value>) =
        gated.into_iter().partition(|r| r["role"] == "side");
    assert_eq!((side.len(), main.len()), (4, 8));
    if order == "side-first" {
        // No main request that stood in line when a title came was let in before it.
        for title in &side {
            let passed = main.iter().any(|m| {
                clock(m, "permit_s") > clock(title, "body_s")
                    && clock(m, "permit_s") < clock(title, "permit_s")
                    && clock(m, "body_s") < clock(title, "body_s")
                    && title["gate"]["let_in"] == 1
            });
            assert!(!passed, "{title:#}\n{main:#?}");
        }
    }
    side
}

#[test]
fn side_requests_wait_less_under_side_first_than_under_fifo() {
    let total = |side: Vec<Value>| side.iter().map(held).sum::<f64>();
    let (fifo, side_first) = (total(titles("fifo")), total(titles("side-first")));
    eprintln!("titles were held {fifo:.2} s under fifo, {side_first:.2} s under side-first");
    assert!(side_first < fifo, "{side_first} {fifo}");
}

#[test]
fn a_server_that_takes_one_request_refuses_together_and_is_content_behind_the_gate() {
    for (answer, status) in [(Answer::OverloadedBeside, 529), (Answer::FailedBeside, 500)] {
        let stage = Stage::new();
        stage.agent(&Agent {
            steps: &GOOD,
            ..Agent::default()
        });
        let server = Faulty::start(move |_| answer);
        let mut args = vec!["--gated", "--server", &server.url, "--rounds", "1"];
        args.extend(["--task", "tiny"].repeat(3));
        let ran = stage.pair(&args);
        let arms = ran.arms();
        let sum = |kind: &str, field: &str| -> f64 {
            let arm = arms.iter().find(|a| a["kind"] == kind).unwrap();
            let sessions = arm["sessions"].as_array().unwrap();
            sessions.iter().map(|s| number(s, field)).sum()
        };
        assert!(sum("together", "refusals") > 0.0, "{ran:#?}");
        assert_eq!(sum("gated", "refusals"), 0.0, "{ran:#?}");
        assert_eq!(sum("back_to_back", "refusals"), 0.0, "{ran:#?}");
        let refused = requests(&stage, "together");
        assert!(refused.iter().any(|r| r["status"] == status));
        // No ratio comes from such a round, the gated ones included.
        let record = ran.record();
        assert_eq!(record["rounds"][0]["valid"], false);
        assert_eq!(record["verdict"]["worst_slowdown"]["value"], Value::Null);
        assert_eq!(
            record["verdict"]["gated"]["gated_over_together"]["value"],
            Value::Null
        );
        assert_eq!(ran.functional(), "fail");
        let reasons = ran.reasons();
        assert!(
            reasons.contains("together") && !reasons.contains("gated"),
            "{reasons}"
        );
    }
}

#[test]
fn a_prompt_above_the_limit_is_a_functional_fail_that_says_so() {
    let stage = Stage::with(&GOOD);
    let ran = stage.pair(&["--max-prompt", "50"]);
    assert_eq!(ran.record()["spec"]["max_prompt_tokens"], 50);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    for session in ran.sessions() {
        assert_eq!(session["long_prompts"], 1, "{session:#}");
        let detail = text(&session, "detail");
        assert!(detail.contains("prompt is too long: "), "{detail}");
        assert!(detail.contains("give --max-prompt a larger"), "{detail}");
        assert!(!detail.contains("token that it is given"), "{detail}");
    }
    let reasons = ran.reasons();
    assert!(
        reasons.contains("refused by flashrig's gateway as longer than --max-prompt"),
        "{reasons}"
    );
    // The agent was told in a way that it understands.
    let folder = text(&ran.sessions()[0], "folder").to_owned();
    let stderr = stage.result_text(&format!("sessions/{folder}/stderr.txt"));
    assert!(stderr.contains("status 400"), "{stderr}");
}

#[test]
fn a_limit_that_no_prompt_reaches_changes_nothing() {
    let stage = Stage::with(&GOOD);
    let ran = stage.pair(&["--max-prompt", "100k", "--fail-above", "100000"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(kinds(&ran), ["together", "back_to_back"]);
    assert_eq!(ran.record()["spec"]["gate"], Value::Null);
    assert_eq!(ran.record()["verdict"]["gated"], Value::Null);
}

#[test]
fn a_gate_with_room_for_all_is_called_out() {
    let stage = Stage::with(&GOOD);
    let ran = stage.pair(&["--gate", "5", "--fail-above", "100000"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let warnings = ran.record()["verdict"]["warnings"].to_string();
    assert!(
        warnings.contains("the gate held no session back"),
        "{warnings}"
    );
}

#[test]
fn a_cold_gated_arm_finds_nothing_of_another_arm_in_the_servers_cache() {
    let stage = Stage::with(&["ask", "ask", "write greeting.txt hello", "result"]);
    let ran = stage.pair(&["--gated", "--cache", "cold", "--fail-above", "100000"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    for session in ran.sessions() {
        assert_eq!(session["first_cached_tokens"], 0, "{session:#}");
        assert!(number(&session, "cached_tokens") > 0.0, "{session:#}");
        assert_eq!(session["unmarked_requests"], 0);
    }
}

#[test]
fn options_that_would_do_nothing_are_usage_errors() {
    let stage = Stage::with(&GOOD);
    for (args, message) in [
        (
            &["--gate-order", "fifo"][..],
            "--gate-order orders a gate that is not there",
        ),
        (&["--gate", "0"], "--gate"),
        (&["--max-prompt", "0"], "--max-prompt"),
    ] {
        let ran = stage.pair(args);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
}
