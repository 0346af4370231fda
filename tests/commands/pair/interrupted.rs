//! Runs that are cut short: Ctrl-C, and kill -9.

use std::process::Child;
use std::time::{Duration, Instant};

use flashrig_testkit::waiting::wait_until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::pair::faulty::{Answer, Faulty};
use crate::pair::stage::{Agent, GOOD, Ran, Stage, TASK, number, sandboxes, text};
use crate::support::machine::alive;

/// A pair of two sessions of which the second one back to back hangs in its request, with a
/// descendant that has left its process group; returns once it does.
fn until_the_last_session_hangs(sandbox: &str) -> (Stage, Faulty, Child) {
    let stage = Stage::new();
    stage.agent(&Agent {
        steps: &[
            "sh (setsid sleep 632 &)",
            "ask",
            "write greeting.txt hello",
            "result",
        ],
        ..Agent::default()
    });
    // Together asks twice, the first one back to back once.
    let server = Faulty::start(|n| if n < 4 { Answer::Good } else { Answer::Silent });
    let child = stage
        .flashrig(&[
            "pair",
            "--json",
            "--task",
            "tiny",
            "--task",
            "tiny",
            "--agent",
            "mine",
            "--rounds",
            "1",
            "--server",
            &server.url,
            "--sandbox",
            sandbox,
        ])
        .spawn()
        .unwrap();
    wait_until("the last session asks", || server.seen() == 4);
    (stage, server, child)
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

/// Statuses of the arm `kind`.
fn statuses(record: &Value, kind: &str) -> Vec<String> {
    let arms = record["rounds"][0]["arms"].as_array().unwrap();
    let arm = arms.iter().find(|a| a["kind"] == kind).unwrap();
    let sessions = arm["sessions"].as_array().unwrap();
    sessions
        .iter()
        .map(|s| text(s, "status").to_owned())
        .collect()
}

#[test]
fn ctrl_c_ends_everything_within_5_s_keeps_what_was_finished_and_exits_with_130() {
    for sandbox in sandboxes() {
        let (stage, _server, child) = until_the_last_session_hangs(sandbox);
        let asked = Instant::now();
        signal(&child, Signal::SIGINT);
        let ran = Ran::of(child.wait_with_output().unwrap());
        let took = asked.elapsed();
        assert!(took < Duration::from_secs(5), "{sandbox}: {took:?}");
        assert_eq!(ran.code, Some(130), "{ran:#?}");
        stage.nothing_left();

        let record: Value = serde_json::from_str(&stage.result_text("run.json")).unwrap();
        assert_eq!(record["state"], "interrupted");
        assert_eq!(statuses(&record, "together"), ["completed", "completed"]);
        assert_eq!(
            statuses(&record, "back_to_back"),
            ["completed", "interrupted"]
        );
        let together = &record["rounds"][0]["arms"][0]["sessions"][0];
        assert_eq!(together["checks"][0]["outcome"], "passed");
        assert!(number(together, "wall_s") > 0.0);
        assert_eq!(record["rounds"][0]["valid"], false);
        assert_ne!(record["verdict"]["functional"], "pass");
    }
}

#[test]
fn sigterm_stops_in_order_as_ctrl_c_does() {
    let (stage, _server, child) = until_the_last_session_hangs("none");
    signal(&child, Signal::SIGTERM);
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    stage.nothing_left();
}

#[test]
fn kill_9_leaves_no_agent_and_the_results_folder_tells_what_had_finished() {
    for sandbox in sandboxes() {
        let (stage, _server, mut child) = until_the_last_session_hangs(sandbox);
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until("no process is left", || alive(stage.folder()).is_empty());

        let results = stage.results().display().to_string();
        let report = stage.run(&["report", &results]);
        assert_eq!(report.code, Some(0), "{report:#?}");
        assert!(report.stdout.contains("not finished"), "{}", report.stdout);
        let record = stage.run(&["report", "--json", &results]).record();
        assert_eq!(record["state"], "unfinished");
        assert_eq!(statuses(&record, "together"), ["completed", "completed"]);
        assert_eq!(statuses(&record, "back_to_back"), ["completed"]);
        assert_eq!(record["verdict"], Value::Null);

        // run.json is a convenience: the events alone tell the same.
        std::fs::remove_file(stage.results().join("run.json")).unwrap();
        let rebuilt = stage.run(&["report", "--json", &results]).record();
        assert_eq!(rebuilt, record);
    }
}

#[test]
fn what_a_killed_run_left_in_the_temporary_folder_goes_with_the_next_run() {
    let (stage, _server, mut child) = until_the_last_session_hangs("none");
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("no process is left", || alive(stage.folder()).is_empty());
    stage.agent(&Agent {
        steps: &crate::pair::stage::GOOD,
        ..Agent::default()
    });
    // Checks at its end that the temporary folder is empty.
    stage.pair(&[]);
}

/// Interrupts a run as soon as `ready`; it must end within 5 s, in order, leaving nothing.
fn interrupted_when(stage: &Stage, args: &[&str], ready: impl Fn() -> bool) -> Ran {
    let mut all = vec!["pair", "--task", "tiny", "--agent", "mine"];
    all.extend(args);
    let child = stage.flashrig(&all).spawn().unwrap();
    wait_until("it is time to interrupt", ready);
    let asked = Instant::now();
    signal(&child, Signal::SIGINT);
    let ran = Ran::of(child.wait_with_output().unwrap());
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}: {ran:#?}");
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    stage.nothing_left();
    ran
}

#[test]
fn ctrl_c_does_not_sit_through_a_check() {
    for sandbox in sandboxes() {
        let stage = Stage::with(&GOOD);
        let endless = TASK.replace("grep -q hello greeting.txt", "sleep 633");
        stage.write("tasks/tiny/task.toml", &endless);
        let folder = stage.folder().to_owned();
        let checking = || alive(&folder).iter().any(|p| p.contains("sleep 633"));
        interrupted_when(&stage, &["--speed", "50", "--sandbox", sandbox], checking);
        let record: Value = serde_json::from_str(&stage.result_text("run.json")).unwrap();
        assert_eq!(record["state"], "interrupted");
        assert_eq!(statuses(&record, "together"), ["completed"]);
        assert_ne!(record["verdict"]["functional"], "pass");
        assert_ne!(record["verdict"]["functional"], "fail", "{record:#}");
    }
}

#[test]
fn ctrl_c_ends_the_wait_for_a_server_that_never_gets_idle() {
    let stage = Stage::with(&GOOD);
    let server = Faulty::start(|_| Answer::Good);
    server.keep_busy();
    let args = ["--server", server.url.as_str(), "--rounds", "1"];
    interrupted_when(&stage, &args, || server.looked_at() > 1);
}

#[test]
fn ctrl_c_before_anything_is_measured_leaves_no_results() {
    let stage = Stage::with(&GOOD);
    stage.speak_openai("mine");
    // The warm-up hangs.
    let server = Faulty::start(|_| Answer::Silent);
    let args = ["--server", server.url.as_str()];
    let ran = interrupted_when(&stage, &args, || server.seen() == 1);
    assert!(
        ran.stderr.contains("stopped before anything was measured"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        crate::pair::stage::names(&stage.project().join("results")),
        Vec::<String>::new()
    );
}

#[test]
fn kill_9_while_a_check_runs_leaves_no_check() {
    for sandbox in sandboxes() {
        let stage = Stage::with(&GOOD);
        let endless = TASK.replace("grep -q hello greeting.txt", "sleep 634");
        stage.write("tasks/tiny/task.toml", &endless);
        let mut child = stage
            .flashrig(&[
                "pair",
                "--task",
                "tiny",
                "--agent",
                "mine",
                "--speed",
                "50",
                "--sandbox",
                sandbox,
            ])
            .spawn()
            .unwrap();
        let checking = || {
            alive(stage.folder())
                .iter()
                .any(|p| p.contains("sleep 634"))
        };
        wait_until("the check runs", checking);
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until("no process is left", || alive(stage.folder()).is_empty());
    }
}
