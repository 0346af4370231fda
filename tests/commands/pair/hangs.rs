//! Agents that hang, idle, never exit or run over their time: cases A1, A2, A3.

use std::process::Stdio;
use std::time::Duration;

use crate::pair::faulty::{Answer, Faulty};
use crate::pair::stage::{Agent, GOOD, Ran, Stage, number, sandboxes, text};

#[test]
fn a_session_never_inherits_stdin_so_an_agent_that_reads_it_goes_on() {
    let stage = Stage::with(&["stdin", "ask", "write greeting.txt hello"]);
    // flashrig's own standard input is a pipe that stays open and idle.
    let mut child = stage
        .flashrig(&[
            "pair", "--json", "--agent", "mine", "--task", "tiny", "--speed", "50",
        ])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let idle = child.stdin.take();
    let ran = Ran::of(child.wait_with_output().unwrap());
    drop(idle);
    ran.both("completed");
    assert_eq!(ran.functional(), "pass");
    stage.nothing_left();
}

#[test]
fn an_agent_that_hangs_before_its_first_request_is_no_request_and_says_so() {
    for sandbox in sandboxes() {
        let stage = Stage::new();
        stage.agent(&Agent {
            steps: &["hang"],
            first_request_limit: "500ms",
            ..Agent::default()
        });
        let ran = stage.pair(&["--sandbox", sandbox]);
        for session in ran.both("no_request") {
            let detail = text(&session, "detail");
            assert!(
                detail.starts_with("hung before its first request for 0.5 s"),
                "{detail}"
            );
            assert_eq!(session["requests"], 0);
        }
        assert_eq!(ran.code, Some(1));
    }
}

#[test]
fn an_agent_that_sits_with_no_open_request_is_idle_and_its_patch_is_kept() {
    let stage = Stage::new();
    stage.agent(&Agent {
        steps: &["ask", "write half.txt begun", "hang"],
        idle_limit: "3s",
        ..Agent::default()
    });
    let ran = stage.pair(&[]);
    for session in ran.both("idle") {
        let detail = text(&session, "detail");
        assert!(
            detail.contains("idle for 3 s after 1 request, with none open"),
            "{detail}"
        );
        assert_eq!(session["diff"]["files"], 1);
        let patch = format!("sessions/{}/diff.patch", text(&session, "folder"));
        assert!(stage.result_text(&patch).contains("+begun"));
    }
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.functional(), "fail");
}

#[test]
fn a_request_that_is_open_for_long_is_not_idleness() {
    let stage = Stage::new();
    stage.agent(&Agent {
        steps: &GOOD,
        idle_limit: "2s",
        ..Agent::default()
    });
    let server = Faulty::start(|_| Answer::GoodAfter(Duration::from_secs(4)));
    let ran = stage.pair(&["--server", &server.url, "--rounds", "1"]);
    for session in ran.both("completed") {
        let waited = number(&session["split"], "waiting_s");
        assert!(waited > 3.5, "{session:#}");
    }
}

#[test]
fn an_agent_that_tells_its_result_and_never_exits_is_verified_and_its_wall_ends_at_the_result() {
    for sandbox in sandboxes() {
        let stage = Stage::new();
        stage.agent(&Agent {
            steps: &["ask", "write greeting.txt hello", "result", "hang"],
            exit_grace: "3s",
            end_required: true,
            ..Agent::default()
        });
        let ran = stage.pair(&["--sandbox", sandbox]);
        for session in ran.both("completed_no_exit") {
            assert_eq!(session["exit"]["kind"], "stopped");
            let exit = number(&session["split"], "exit_s");
            assert!(exit < 3.0, "the grace is part of the wall: {session:#}");
            for check in session["checks"].as_array().unwrap() {
                assert_eq!(check["outcome"], "passed");
            }
        }
        assert_eq!(ran.functional(), "pass", "{ran:#?}");
    }
}

#[test]
fn a_session_that_runs_over_its_limit_is_a_timeout() {
    for sandbox in sandboxes() {
        let stage = Stage::with(&["ask", "write greeting.txt hello", "hang"]);
        let ran = stage.pair(&["--time-limit", "1s", "--sandbox", sandbox]);
        for session in ran.both("timeout") {
            let detail = text(&session, "detail");
            assert!(
                detail.starts_with("not done within 1 s; raise it with --time-limit"),
                "{detail}"
            );
            let wall = number(&session, "wall_s");
            assert!((1.0..30.0).contains(&wall), "{wall}");
        }
        assert_eq!(ran.code, Some(1));
    }
}

#[test]
fn an_agent_that_ignores_term_is_killed_after_the_grace_and_total_time_is_bounded() {
    let started = std::time::Instant::now();
    let stage = Stage::with(&["ask", "sh trap '' TERM INT HUP; while :; do sleep 1; done"]);
    let ran = stage.pair(&["--time-limit", "1s", "--sandbox", "none"]);
    ran.both("timeout");
    // Two arms of a second each, and a grace for each; far below the agent's for ever.
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}
