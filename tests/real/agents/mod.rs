//! The real Claude Code and the real OpenCode, installed by flashrig, on the embedded server: they
//! work, they are told apart, and nothing of the operator's reaches what they send.
//!
//! Needs npm and its registry for the first run, cargo for the tasks. Not skipped without them:
//! a flashrig that cannot run real agents is of no use.

mod operator;
mod standing;

use std::sync::{Mutex, MutexGuard, PoisonError, RwLockReadGuard};

use serde_json::Value;

use crate::MACHINE;
use operator::Operator;

/// One at a time: two pairs of real agents at once would only time each other's CPU.
fn one_at_a_time() -> (MutexGuard<'static, ()>, RwLockReadGuard<'static, ()>) {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    (turn, MACHINE.read().unwrap_or_else(PoisonError::into_inner))
}

/// Runs the pair `fix-bug` and `add-flag` and checks what must hold for any agents; the sessions.
fn pair(fix_bug: &str, add_flag: &str) -> Vec<Value> {
    let _turn = one_at_a_time();
    for agent in [fix_bug, add_flag] {
        operator::install(agent);
    }
    let operator = Operator::new();
    let record = operator.pair(&[
        "--task",
        &format!("fix-bug@{fix_bug}"),
        "--task",
        &format!("add-flag@{add_flag}"),
    ]);
    assert_eq!(record["verdict"]["functional"], "pass", "{record:#}");
    assert_eq!(record["rounds"][0]["valid"], true, "{record:#}");
    let arms = record["rounds"][0]["arms"].as_array().unwrap();
    assert_eq!(arms[0]["max_overlap"], 2);
    assert_eq!(arms[1]["max_overlap"], 1);
    for arm in arms {
        let lag = |part: &str| arm["rig_lag_ms"][part].as_f64().unwrap();
        assert!(0.0 < lag("p50") && lag("p50") <= lag("p99") && lag("p99") <= lag("max"));
    }
    let sessions: Vec<Value> = arms
        .iter()
        .flat_map(|arm| arm["sessions"].as_array().unwrap().clone())
        .collect();
    assert_eq!(sessions.len(), 4);
    for session in &sessions {
        assert_done(session);
    }
    operator.assert_bodies_hold_the_prompts(&sessions);
    operator.assert_no_sentinel_is_found();
    sessions
}

fn assert_done(session: &Value) {
    assert_eq!(session["status"], "completed", "{session:#}");
    assert_eq!(session["leftovers"], serde_json::json!([]), "{session:#}");
    let version = session["agent"]["version"].as_str().unwrap();
    assert!(version.contains('.'), "{version}");
    let checks = session["checks"].as_array().unwrap();
    assert!(!checks.is_empty());
    assert!(checks.iter().all(|c| c["outcome"] == "passed"));
    let wall = session["wall_s"].as_f64().unwrap();
    let split = session["split"].as_object().unwrap();
    let sum: f64 = split.values().map(|v| v.as_f64().unwrap()).sum();
    assert!((sum - wall).abs() < 0.01, "{sum} of {wall}");
    for known in [
        "requests",
        "turns",
        "tool_calls",
        "input_tokens",
        "cached_tokens",
        "output_tokens",
        "peak_rss_bytes",
    ] {
        assert!(session[known].as_u64().unwrap() > 0, "{known}: {session:#}");
    }
    assert!(session["cpu_s"].as_f64().unwrap() > 0.0);
    assert_eq!(session["refusals"], 0);
    // The shipped profiles switch off what phones home, and the gateway is reached directly.
    // OpenCode's search fetches ripgrep where there is none, which is refused.
    for fact in session["egress"].as_array().unwrap() {
        assert_eq!(fact["host"], "github.com", "{session:#}");
        assert_eq!(fact["outcome"], "refused", "{session:#}");
        assert_eq!(session["agent"]["name"], "opencode", "{session:#}");
    }
}

#[test]
fn a_pair_of_claude_code_is_verified_and_makes_no_request_beside_its_thread() {
    for session in pair("claude", "claude") {
        assert_eq!(session["agent"]["name"], "claude");
        assert_eq!(session["prefix"]["changed"], 0, "{session:#}");
        assert_eq!(session["side_requests"], 0, "{session:#}");
    }
}

#[test]
fn a_pair_of_opencode_is_verified_and_its_title_request_is_a_side_request() {
    for session in pair("opencode", "opencode") {
        assert_eq!(session["agent"]["name"], "opencode");
        assert_eq!(session["prefix"]["changed"], 0, "{session:#}");
        assert_eq!(session["side_requests"], 1, "{session:#}");
    }
}

#[test]
fn a_pair_of_different_agents_is_verified_and_each_is_named() {
    let sessions = pair("claude", "opencode");
    let agents: Vec<&str> = sessions
        .iter()
        .map(|s| s["agent"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(agents, ["claude", "opencode", "claude", "opencode"]);
}

#[test]
fn a_standing_gateway_serves_claude_code_and_opencode_at_the_same_time() {
    let _turn = one_at_a_time();
    standing::both_at_once();
}
