//! Servers that stop, refuse, or are none; options that mean nothing; interrupts.

use std::process::Command;

use flashrig_sim::Faults;
use nix::sys::signal::{Signal, kill};
use serde_json::Value;
use tempfile::TempDir;

use crate::ttft::{CALIBRATION, http, saying, sim, ttft, while_running, while_running_in};

#[test]
fn a_server_that_stops_answering_is_named_and_what_was_measured_stays() {
    let server = sim(
        1000.0,
        Faults {
            stall_after_requests: Some(CALIBRATION + 6),
            ..Faults::default()
        },
    );
    let url = server.base_url();
    let ran = ttft(&[
        "--server",
        &url,
        "--agents",
        "1,2,4,8",
        "--first-token-limit",
        "5s",
        "--json",
    ]);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    let run = ran.json();
    assert_eq!(run["state"], "failed");
    let message = run["stopped_because"]["text"].as_str().unwrap();
    assert!(
        message.starts_with(
            "the server accepted 7 requests, generated for 6, then for none: 1 waited 5 s in vain"
        ),
        "{message}"
    );
    assert!(message.contains("its health check says 200"), "{message}");
    let rows = run["ttft"].as_array().unwrap();
    let answered: Vec<u64> = rows
        .iter()
        .map(|row| row["answered"].as_u64().unwrap())
        .collect();
    assert_eq!(answered, [1, 2, 3], "a failed one is a row too");
    assert_eq!(rows[2]["stalled"], 1);
    let left: Vec<&Value> = run["left_out"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| &l["sessions"])
        .collect();
    assert_eq!(left, [8]);
    assert!(ran.folder().join("run.json").is_file());
}

#[test]
fn a_profile_that_stalls_after_six_streams_ends_within_its_limit() {
    let folder = TempDir::new().unwrap();
    let servers = folder.path().join("harness/servers");
    std::fs::create_dir_all(&servers).unwrap();
    let profile = include_str!("../../../harness/servers/sim.toml");
    let stalls = format!("{profile}\n[sim.faults]\nstall_after_requests = 6\n");
    std::fs::write(servers.join("stalls.toml"), stalls).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_flashrig"))
        .args([
            "ttft",
            "--wide",
            "--server",
            "stalls",
            "--speed",
            "120",
            "--first-token-limit",
            "10m",
        ])
        .env_clear()
        .current_dir(folder.path())
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3), "{out}");
    assert!(
        out.contains("accepted 7 requests, generated for 3, then for none"),
        "{out}"
    );
    assert!(
        out.contains("8 at once: not tried: the server had stopped answering"),
        "{out}"
    );
}

#[test]
fn a_server_that_turns_requests_away_gets_a_line_for_them_and_the_answer_no() {
    // Slow enough that all are there before the first is over.
    let server = sim(
        20.0,
        Faults {
            overload_above: Some(2),
            ..Faults::default()
        },
    );
    let ran = ttft(&[
        "--server",
        &server.base_url(),
        "--agents",
        "1,4",
        "--answer-tokens",
        "200",
        "--json",
    ]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let row = &ran.json()["ttft"][1];
    assert_eq!((&row["answered"], &row["refused"]), (&2.into(), &2.into()));
    assert!(
        row["reasons"][0]["text"]
            .as_str()
            .unwrap()
            .contains("overloaded"),
        "{row}"
    );
}

/// A server that answers one request of the run and accepts all others without a word.
fn silent_after_one() -> flashrig_sim::SimHandle {
    sim(
        1000.0,
        Faults {
            stall_after_requests: Some(CALIBRATION + 1),
            ..Faults::default()
        },
    )
}

#[test]
fn a_run_that_was_killed_is_reported_with_what_was_measured() {
    let server = silent_after_one();
    let url = server.base_url();
    let args = ["--server", &url, "--agents", "1,2,4"];
    let folder = TempDir::new().unwrap();
    let second = r#""event":"cell_started","round":1,"context_tokens":2048,"sessions":2"#;
    while_running_in(folder.path(), &args, second, |pid, _| {
        kill(pid, Signal::SIGKILL).unwrap();
    });
    let results = std::fs::read_dir(folder.path().join("results")).unwrap();
    let run = results.last().unwrap().unwrap().path();
    let report = Command::new(env!("CARGO_BIN_EXE_flashrig"))
        .arg("report")
        .arg(&run)
        .output()
        .unwrap();
    let text = String::from_utf8(report.stdout).unwrap();
    for message in [" · median TTFT ", "prompts of 2K", "was killed"] {
        assert!(text.contains(message), "{message:?} is not in: {text}");
    }
    assert!(!text.contains("nothing was measured"), "{text}");
}

#[test]
fn an_interrupt_keeps_what_was_measured() {
    let server = silent_after_one();
    let url = server.base_url();
    let args = ["--server", &url, "--agents", "1,2,4"];
    let interrupt = |pid| kill(pid, Signal::SIGINT).unwrap();
    let second = r#""event":"cell_started","round":1,"context_tokens":2048,"sessions":2"#;
    let (code, run) = while_running(&args, second, interrupt);
    assert_eq!(code, Some(130), "{run:#}");
    assert_eq!(run["state"], "interrupted");
    assert_eq!(run["ttft"][0]["answered"], 1, "{run:#}");
    assert_eq!(run["ttft"].as_array().unwrap().len(), 1);
    assert_eq!(run["measured"][1]["stopped"]["kind"], "interrupted");
}

#[test]
fn a_server_that_is_gone_ends_the_run_with_what_was_measured() {
    let server = sim(1000.0, Faults::default());
    let url = server.base_url();
    let args = ["--server", &url, "--agents", "1,2", "--rounds", "1000"];
    let (code, run) = while_running(&args, "cell_measured", |_| server.stop());
    assert_eq!(code, Some(3), "{run:#}");
    assert_eq!(run["state"], "failed");
    let message = run["stopped_because"]["text"].as_str().unwrap();
    assert!(message.contains("gone"), "{message}");
    assert!(run["ttft"][0]["answered"].as_u64() >= Some(1));
}

#[test]
fn sizes_and_numbers_that_mean_nothing_are_refused_by_the_name_of_their_option() {
    for (args, said) in [
        (["--prompt", "32kk"], "--prompt"),
        (["--prompt", "0"], "--prompt"),
        (["--prompt", "-1"], "--prompt"),
        (["--long", "1x"], "--long"),
        (["--long", "1k"], "--long"),
        (["--agents", "0"], "--agents"),
        (["--agents", "4..1"], "--agents"),
        (["--agents", "-2"], "--agents"),
        (["--answer-tokens", "0"], "--answer-tokens"),
        (["--first-token-limit", "0s"], "--first-token-limit"),
        (["--first-token-limit", "10"], "--first-token-limit"),
        (["--prompt", "1m"], "--prompt 1M"),
        (["--prompt", "10"], "--prompt 10 is too small"),
        (["--speed", "0"], "--speed"),
    ] {
        let ran = ttft(&args);
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:#?}");
        assert!(ran.err.contains(said), "{args:?}: {}", ran.err);
        assert!(!ran.results.exists(), "{args:?}: nothing was begun");
    }
}

/// A nightly job that redirects a record to a full disk must not take the empty file for a pass.
#[cfg(target_os = "linux")]
#[test]
fn a_result_that_could_not_be_written_is_an_error_and_a_reader_who_left_is_none() {
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let (reader, gone) = std::io::pipe().unwrap();
    drop(reader);
    let schema = |out: std::process::Stdio| {
        std::process::Command::new(env!("CARGO_BIN_EXE_flashrig"))
            .arg("schema")
            .stdout(out)
            .stderr(std::process::Stdio::piped())
            .output()
            .unwrap()
    };
    let ran = schema(full.into());
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(3), "{said}");
    assert!(
        said.contains("standard output could not be written"),
        "{said}"
    );
    let ran = schema(gone.into());
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert!(ran.stderr.is_empty(), "{ran:?}");
}

#[test]
fn what_is_no_llm_server_is_said_in_words() {
    let page = http(
        "200 OK",
        "text/html",
        "<html><title>Open WebUI</title></html>",
    );
    let models = http("200 OK", "application/json", r#"{"data":[{"id":"m"}]}"#);
    let plain = http(
        "200 OK",
        "application/json",
        r#"{"choices":[{"message":{"role":"assistant","content":"ready"},"finish_reason":"stop"}]}"#,
    );
    let stream = |usage: &str| {
        let body = format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"a\"}},\"finish_reason\":\"stop\"}}]}}\n\n\
             {usage}data: [DONE]\n\n"
        );
        http("200 OK", "text/event-stream", &body)
    };
    let busy = http(
        "503 Service Unavailable",
        "application/json",
        r#"{"error":{"message":"Loading model"}}"#,
    );
    let no_post = http("501 No", "text/html", "<html>\n  <p>\n  Unsupported method");
    // What identifies a server: its list of models, its properties, and its version in two places.
    let asked_first = 4;
    for (url, model, said) in [
        (saying(&page, 1, &page), "m", "hardly an LLM server"),
        (saying(&models, asked_first, &page), "m", "HTML page"),
        (
            saying(&models, asked_first, &no_post),
            "m",
            "501: <html> <p> Unsupported method",
        ),
        (saying(&models, asked_first, &plain), "m", "does not stream"),
        (
            saying(&models, asked_first, &stream("")),
            "m",
            "tells no usage",
        ),
        (
            saying(&models, asked_first, &busy),
            "m",
            "503: Loading model",
        ),
        (saying(&models, asked_first, ""), "m", "no HTTP answer"),
        (
            saying(&models, asked_first, &stream("")),
            "n",
            "unknown model \"n\"; known: m",
        ),
    ] {
        let ran = ttft(&["--server", &url, "--model", model]);
        assert_eq!(ran.code, Some(3), "{said}: {ran:#?}");
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
        assert!(!ran.results.exists(), "{said}: nothing was begun");
    }
}
