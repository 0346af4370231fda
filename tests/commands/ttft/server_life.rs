//! A server that flashrig started, and that dies in the middle of a volley; one that is reset.

use std::path::Path;

use tempfile::TempDir;

use crate::support::managed::{kill_server, life, profile};
use crate::ttft::while_running_in;

/// A folder with the managed server `real`: a volley takes a second or two.
fn project(start: &str) -> TempDir {
    let project = TempDir::new().unwrap();
    let servers = project.path().join("harness/servers");
    std::fs::create_dir_all(&servers).unwrap();
    let flashrig = Path::new(env!("CARGO_BIN_EXE_flashrig"));
    let text = profile(flashrig, "sim", 2.0, start, "[reset]\nrestart = true\n");
    std::fs::write(servers.join("real.toml"), text).unwrap();
    project
}

const ARGS: [&str; 6] = [
    "--server",
    "real",
    "--agents",
    "1,2,4",
    "--answer-tokens",
    "64",
];
const SECOND: &str = r#""event":"cell_started","round":1,"context_tokens":2048,"sessions":2"#;

#[test]
fn a_death_is_named_at_its_number_and_the_next_number_is_measured_on_the_server_anew() {
    let project = project("");
    let (code, run) = while_running_in(project.path(), &ARGS, SECOND, |_, run| kill_server(run));
    // Something was not measured.
    assert_eq!(code, Some(3), "{run:#}");
    assert_eq!(run["state"], "finished", "{run:#}");
    assert_eq!(life(&run), ["died", "restarted"]);
    let measured = run["measured"].as_array().unwrap();
    assert_eq!(measured.len(), 3);
    assert!(measured[0]["stopped"].is_null());
    assert_eq!(measured[1]["stopped"]["kind"], "failed");
    let message = measured[1]["stopped"]["words"]["text"].as_str().unwrap();
    assert!(
        message.starts_with("the server real died: it was killed by SIGKILL"),
        "{message}"
    );
    assert!(message.contains("; its log ends with \""), "{message}");
    assert!(measured[2]["stopped"].is_null());
    let last = run["ttft"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["agents"], &last["answered"]), (&4.into(), &4.into()));
    let warnings = run["verdict"]["warnings"].to_string();
    assert!(warnings.contains("the server real died"), "{warnings}");
}

#[test]
fn a_server_that_may_not_be_started_again_ends_the_run() {
    let project = project("restart = false");
    let (code, run) = while_running_in(project.path(), &ARGS, SECOND, |_, run| kill_server(run));
    assert_eq!(code, Some(3), "{run:#}");
    assert_eq!(run["state"], "failed");
    let message = run["stopped_because"]["text"].as_str().unwrap();
    assert!(message.contains("restart = false"), "{message}");
    assert_eq!(run["left_out"][0]["sessions"], 4);
    assert_eq!(run["ttft"][0]["answered"], 1);
}

#[test]
fn a_reset_comes_before_each_number_and_takes_no_time_of_it() {
    let project = project("");
    let args = [&ARGS[..], &["--reset"]].concat();
    let (code, run) = while_running_in(project.path(), &args, SECOND, |_, _| ());
    assert_eq!(code, Some(0), "{run:#}");
    assert_eq!(life(&run), ["reset"; 3]);
    let resets = run["server"]["life"].as_array().unwrap();
    for (measured, reset) in run["measured"].as_array().unwrap().iter().zip(resets) {
        assert!(measured["reset_s"].as_f64().unwrap() > 0.0);
        let sent = &measured["lanes"][0]["turns"][0]["sent_at_s"];
        assert!(sent.as_f64().unwrap() > reset["at_s"].as_f64().unwrap());
    }
}
