//! A server that flashrig started, and that dies in the middle of an arm; one that is reset.

use std::path::{Path, PathBuf};
use std::process::Child;

use flashrig_testkit::waiting::wait_until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::pair::stage::{Agent, GOOD, Ran, Stage, number, text};
use crate::support::machine::alive;
use crate::support::managed::{kill_server, life, profile};

/// A stage with the managed server `real`, and agents that wait for a word in the middle of their
/// work.
fn stage(program: &Path, start: &str) -> Stage {
    let stage = Stage::new();
    let go = go(&stage);
    let wait = format!("sh while [ ! -e {} ]; do sleep 0.02; done", go.display());
    stage.agent(&Agent {
        steps: &["ask", &wait, "write greeting.txt hello", "result"],
        ..Agent::default()
    });
    let text = profile(program, "sim", 50.0, start, "[reset]\nrestart = true\n");
    stage.write("harness/servers/real.toml", &text);
    stage
}

fn flashrig() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_flashrig"))
}

fn go(stage: &Stage) -> PathBuf {
    stage.folder().join("go")
}

fn start(stage: &Stage, more: &[&str]) -> Child {
    let mut args = vec![
        "pair",
        "--json",
        "--task",
        "tiny",
        "--task",
        "tiny",
        "--agent",
        "mine",
        "--server",
        "real",
        "--sandbox",
        "none",
        "--fail-above",
        "100000",
    ];
    args.extend(more);
    stage.flashrig(&args).spawn().unwrap()
}

fn stored(stage: &Stage, file: &str) -> String {
    let results = stage.project().join("results");
    let run = std::fs::read_dir(results).ok().and_then(|mut r| r.next());
    let run = run.map(|entry| entry.unwrap().path());
    run.and_then(|run| std::fs::read_to_string(run.join(file)).ok())
        .unwrap_or_default()
}

/// Kills the server while both sessions are in the middle of their work, with no request open.
fn kill_in_the_middle(stage: &Stage) {
    let log = stage.project().join("sim.jsonl");
    let answered = || {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        log.matches("\"event\":\"finished\"").count()
    };
    wait_until("both sessions have their answers", || answered() == 2);
    let record: Value = serde_json::from_str(&stored(stage, "run.json")).unwrap();
    kill_server(&record);
    wait_until("the death is told", || {
        stored(stage, "events.jsonl").contains("\"died\"")
    });
}

/// A program that serves as `flashrig sim` does when it is first started, and then does `later`.
fn serves_once(folder: &Path, later: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let script = folder.join("serves-once");
    let text = format!(
        "#!/bin/sh\nif [ -e {0}/served ]; then {later}; fi\n: > {0}/served\nexec {1} \"$@\"\n",
        folder.display(),
        flashrig().display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    script
}

#[test]
fn a_death_in_mid_arm_makes_the_round_invalid_by_name_and_the_next_round_runs_on_the_server_anew() {
    let stage = stage(&flashrig(), "");
    let child = start(&stage, &["--rounds", "2"]);
    kill_in_the_middle(&stage);
    std::fs::write(go(&stage), "").unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    stage.nothing_left();
    let record = ran.record();
    assert_eq!(record["state"], "finished", "{ran:#?}");
    let rounds = record["rounds"].as_array().unwrap();

    let (first, second) = (&rounds[0], &rounds[1]);
    assert_eq!(first["valid"], false);
    let reasons = first["invalid_reasons"].as_array().unwrap();
    assert_eq!(reasons.len(), 1, "{reasons:#?}");
    let reason = text(&reasons[0], "text");
    assert!(
        reason.starts_with("together: the server real died: it was killed by SIGKILL"),
        "{reason}"
    );
    let (_, tail) = reason.split_once("; its log ends with ").unwrap();
    assert!(tail.contains("\"<- "), "{reason}");
    let arms = first["arms"].as_array().unwrap();
    assert_eq!(arms.len(), 1, "nothing more of that round is run");
    for session in arms[0]["sessions"].as_array().unwrap() {
        assert_eq!(session["status"], "server_error", "{session:#}");
        assert!(text(session, "detail").contains("the server real died"));
        assert_ne!(session["tree_end"], "survivors");
    }

    assert_eq!(second["valid"], true, "{second:#}");
    assert_eq!(second["arms"].as_array().unwrap().len(), 2);
    assert_eq!(record["verdict"]["worst_slowdown"]["n"], 1);
    assert_ne!(record["verdict"]["time"], "unknown");
    // What the first round's sessions would have done nobody knows.
    assert_eq!(ran.functional(), "unknown");
    assert_eq!(ran.code, Some(3), "{ran:#?}");

    assert_eq!(life(&record), ["died", "restarted"]);
    let death = &record["server"]["life"][0];
    let lines = death["last_lines"].as_array().unwrap();
    assert!(lines.len() > 3, "all that is kept: {lines:#?}");
    assert!(number(&record["server"]["life"][1], "ready_after_s") > 0.0);
    // Between the rounds, and in no arm.
    let restarted = number(&record["server"]["life"][1], "at_s");
    let session = &second["arms"][0]["sessions"][0];
    assert!(restarted < number(session, "started_s"), "{session:#}");
}

#[test]
fn a_server_that_may_not_be_started_again_ends_the_run_with_what_to_do() {
    let stage = stage(&flashrig(), "restart = false");
    let child = start(&stage, &["--rounds", "2"]);
    kill_in_the_middle(&stage);
    let ran = Ran::of(child.wait_with_output().unwrap());
    stage.nothing_left();
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    let record = ran.record();
    assert_eq!(record["state"], "failed");
    let message = text(&record, "stopped_because");
    assert!(
        message.contains("killed by SIGKILL") && message.contains("restart = false"),
        "{message}"
    );
    assert_eq!(life(&record), ["died"]);
    assert_eq!(record["verdict"]["time"], "unknown");
    assert_eq!(record["rounds"][0]["valid"], false);
}

#[test]
fn a_server_that_does_not_come_back_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let program = serves_once(folder.path(), "echo no more; exit 7");
    let stage = stage(&program, "help = []");
    let child = start(&stage, &["--rounds", "2"]);
    kill_in_the_middle(&stage);
    let ran = Ran::of(child.wait_with_output().unwrap());
    stage.nothing_left();
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    let record = ran.record();
    let message = text(&record, "stopped_because");
    assert!(
        message.contains("could not be started again") && message.contains("exit code 7"),
        "{message}"
    );
    assert_eq!(record["rounds"].as_array().unwrap().len(), 1);
}

#[test]
fn ctrl_c_while_the_server_is_started_again_ends_both() {
    let folder = tempfile::tempdir().unwrap();
    let program = serves_once(folder.path(), "exec sleep 641");
    let stage = stage(&program, "help = []");
    let child = start(&stage, &["--rounds", "2"]);
    kill_in_the_middle(&stage);
    wait_until("it is started again", || {
        let alive = alive(stage.folder());
        alive.iter().any(|p| p.contains("sleep 641"))
    });
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    kill(pid, Signal::SIGINT).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    stage.nothing_left();
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    assert_eq!(ran.record()["state"], "interrupted");
    assert_eq!(life(&ran.record()), ["died"]);
}

#[test]
fn a_reset_comes_before_each_arm_and_is_in_none() {
    let stage = stage(&flashrig(), "");
    stage.speak_openai("mine");
    std::fs::write(go(&stage), "").unwrap();
    let child = start(&stage, &["--rounds", "1", "--reset"]);
    let ran = Ran::of(child.wait_with_output().unwrap());
    stage.nothing_left();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let record = ran.record();
    assert_eq!(record["spec"]["reset"], true);
    assert_eq!(life(&record), ["reset", "reset"]);
    for (arm, reset) in ran
        .arms()
        .iter()
        .zip(record["server"]["life"].as_array().unwrap())
    {
        assert!(number(arm, "reset_s") > 0.0);
        for session in arm["sessions"].as_array().unwrap() {
            assert!(number(session, "started_s") > number(reset, "at_s"));
            assert_eq!(session["status"], "completed");
        }
    }
    // Each start serves two warm-ups before its arm's two requests: plain, and with a tool.
    let log = std::fs::read_to_string(stage.project().join("sim.jsonl")).unwrap();
    let last = log.rsplit("\"event\":\"start\"").next().unwrap();
    assert_eq!(last.matches("\"event\":\"queued\"").count(), 4, "{last}");
}

#[test]
fn a_server_that_nobody_says_how_to_reset_is_not_reset() {
    let stage = Stage::with(&GOOD);
    for (server, more, message) in [
        ("sim", "--no-bodies", "is simulated within flashrig"),
        (
            "http://127.0.0.1:9",
            "--no-bodies",
            "give its profile a [reset]",
        ),
        ("sim", "--cache=warm", "--cache warm fills"),
    ] {
        let ran = stage.pair(&["--server", server, "--reset", more]);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
}
