//! A server that is lost in the middle of an arm, or that accepts requests and does not generate.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use flashrig_testkit::waiting::wait_until;
use serde_json::Value;

use crate::pair::faulty::{Answer, Faulty};
use crate::pair::stage::{Agent, GOOD, Ran, Stage, names, text};

/// A real process that serves, of which flashrig knows the address alone.
struct Served {
    process: Child,
    url: String,
    log: std::path::PathBuf,
}

impl Served {
    /// So slow that a request takes for ever.
    fn start(stage: &Stage) -> Self {
        let log = stage.folder().join("sim.jsonl");
        let mut process = Command::new(env!("CARGO_BIN_EXE_flashrig"))
            .args(["sim", "--listen", "127.0.0.1:0", "--speed", "0.001"])
            .arg("--log")
            .arg(&log)
            .env_clear()
            .current_dir(stage.project())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = process.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let url = line.split(' ').nth(3).unwrap().to_owned();
        Self { process, url, log }
    }

    /// Requests that reached its engine.
    fn seen(&self) -> usize {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        log.matches("\"event\":\"queued\"").count()
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn round(record: &Value) -> &Value {
    &record["rounds"][0]
}

#[test]
fn a_server_of_somebody_else_that_is_gone_ends_its_arm_at_once_and_the_run_with_what_to_do() {
    let stage = Stage::new();
    // Left alone these agents would never end.
    let steps = ["ask", "hang"];
    stage.agent(&Agent {
        steps: &steps,
        idle_limit: "1h",
        ..Agent::default()
    });
    let mut server = Served::start(&stage);
    let args = [
        "pair",
        "--json",
        "--task",
        "tiny",
        "--task",
        "tiny",
        "--agent",
        "mine",
        "--rounds",
        "2",
        "--server",
        &server.url,
    ];
    let child = stage.flashrig(&args).spawn().unwrap();
    wait_until("both sessions ask", || server.seen() == 2);
    server.kill();
    let ran = Ran::of(child.wait_with_output().unwrap());
    stage.nothing_left();
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    let record = ran.record();
    assert_eq!(record["state"], "failed");
    let message = text(&record, "stopped_because");
    assert!(
        message.contains("no server answers at")
            && message.contains("start it again and run this again"),
        "{message}"
    );
    // The arm is there with all its rows, and the round says why it does not count.
    let arms = round(&record)["arms"].as_array().unwrap();
    assert_eq!(arms.len(), 1, "{arms:#?}");
    let lost = text(&arms[0], "server_lost");
    let sessions = arms[0]["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 2);
    for session in sessions {
        assert_eq!(session["status"], "server_error", "{session:#}");
        assert_eq!(text(session, "detail"), lost);
    }
    assert_eq!(round(&record)["valid"], false);
    let reasons = round(&record)["invalid_reasons"].as_array().unwrap();
    assert_eq!(reasons.len(), 1, "{reasons:#?}");
    assert_eq!(text(&reasons[0], "text"), format!("together: {lost}"));
    let life = record["server"]["life"].as_array().unwrap();
    assert_eq!(life.len(), 1, "{life:#?}");
    assert_eq!(life[0]["what"], "died");
    // Nothing can be said of the agents' work, nor of time.
    assert_eq!(ran.functional(), "unknown", "{}", ran.reasons());
    assert_eq!(record["verdict"]["time"], "unknown");
}

#[test]
fn a_request_that_waits_for_its_first_token_beyond_the_limit_ends_its_session_and_is_named() {
    let stage = Stage::with(&GOOD);
    let server = Faulty::start(|_| Answer::Mute);
    let ran = stage.pair(&[
        "--server",
        &server.url,
        "--rounds",
        "1",
        "--first-token-limit",
        "2s",
    ]);
    for session in ran.both("server_error") {
        let detail = text(&session, "detail");
        assert!(
            detail.starts_with(
                "the server accepted 1 request and generated for none: 1 waited 2 s in vain; its \
                 model list still answers 200"
            ),
            "{detail}"
        );
    }
    let record = ran.record();
    assert_eq!(record["spec"]["first_token_limit_s"], 2.0);
    assert_eq!(round(&record)["valid"], false);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
}

#[test]
fn a_server_that_answers_its_list_and_does_not_generate_is_named_before_anything_is_measured() {
    let stage = Stage::with(&GOOD);
    stage.speak_openai("mine");
    for (answer, generated) in [
        (Answer::Mute, "generated for none"),
        (Answer::Silent, "began"),
    ] {
        let server = Faulty::start(move |_| answer);
        let args = ["--server", &server.url, "--first-token-limit", "2s"];
        let ran = stage.pair(&args);
        assert_eq!(ran.code, Some(3), "{ran:#?}");
        assert!(
            ran.stderr
                .contains("accepts requests and does not generate: it accepted 1 request and"),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains(generated), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("1 waited 2 s in vain"),
            "{}",
            ran.stderr
        );
        assert_eq!(
            names(&stage.project().join("results")),
            Vec::<String>::new()
        );
    }
}

#[test]
fn a_server_that_takes_no_tools_is_named_before_anything_is_measured() {
    let stage = Stage::with(&GOOD);
    stage.speak_openai("mine");
    let says = r#"{"error":{"message":"tools param requires --jinja flag"}}"#;
    let server = Faulty::start(move |n| match n {
        1 => Answer::Good,
        _ => Answer::Says("500 Internal Server Error", says),
    });
    let ran = stage.pair(&["--server", &server.url]);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    let said =
        "failed a short request that offers a tool to /v1/chat/completions: 500: tools param";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

#[test]
fn a_limit_of_nothing_is_refused() {
    let ran = Stage::with(&GOOD).pair(&["--first-token-limit", "0s"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(
        ran.stderr.contains("--first-token-limit 0s"),
        "{}",
        ran.stderr
    );
}
