//! Agents that never reach the model, and agents that are not there: case G5.

use crate::pair::agent::PLAY;
use crate::pair::stage::{Stage, names, text};

#[test]
fn exit_0_without_any_request_is_no_request_and_a_functional_fail_with_the_reason() {
    let stage = Stage::with(&["exit 0"]);
    let ran = stage.pair(&[]);
    for session in ran.both("no_request") {
        let detail = text(&session, "detail");
        assert!(
            detail.contains("exited with code 0 without any request to the server"),
            "{detail}"
        );
        assert_eq!(session["split"], serde_json::Value::Null);
        assert_eq!(session["input_tokens"], serde_json::Value::Null);
    }
    assert_eq!(ran.functional(), "fail");
    let reasons = ran.reasons();
    assert!(reasons.contains("without any request"), "{reasons}");
    assert!(reasons.contains("the agent changed nothing"), "{reasons}");
    assert_eq!(ran.code, Some(1));
}

#[test]
fn work_without_any_request_is_no_success_though_every_check_passes() {
    let stage = Stage::with(&["write greeting.txt hello", "result"]);
    let ran = stage.pair(&[]);
    ran.both("no_request");
    assert_eq!(ran.functional(), "fail");
    assert_eq!(ran.code, Some(1));
}

#[test]
fn a_command_agent_that_does_nothing_fails_with_the_reason() {
    let stage = Stage::new();
    let ran = stage.pair(&["--agent-command", "true", "--task", "tiny@command"]);
    for session in ran.both("no_request") {
        assert_eq!(session["agent"]["name"], "command");
    }
    assert_eq!(ran.code, Some(1));
    assert!(ran.reasons().contains("without any request"));
}

#[test]
fn a_command_agent_is_told_everything_by_environment_and_by_placeholder() {
    let stage = Stage::new();
    let me = std::env::current_exe().unwrap();
    let sh = "sh test \"$FLASHRIG_WORKSPACE\" = \"$PWD\" && test {workspace} = \"$PWD\" \
              && test {model} = \"$FLASHRIG_MODEL\" && test {token} = \"$FLASHRIG_TOKEN\"";
    let message = [&["ask", sh, "write greeting.txt hello"][..]].concat();
    let command = format!(
        "'{}' {} {}",
        me.display(),
        PLAY.join(" "),
        message
            .iter()
            .map(|w| format!("'{w}'"))
            .collect::<Vec<_>>()
            .join(" ")
    );
    let ran = stage.pair(&["--agent-command", &command, "--task", "tiny@command"]);
    ran.both("completed");
    assert_eq!(ran.functional(), "pass", "{ran:#?}");
}

#[test]
fn an_agent_whose_program_is_missing_ends_the_command_before_anything_runs() {
    let stage = Stage::new();
    let command = "no-such-agent-anywhere {prompt}";
    let ran = stage.pair(&["--agent-command", command, "--task", "tiny@command"]);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert_eq!(
        ran.stderr.trim_end(),
        "error: agent command: the program \"no-such-agent-anywhere\" is not there; give a path, \
         or put it on PATH"
    );
    assert_eq!(
        names(&stage.project().join("results")),
        Vec::<String>::new()
    );
}

#[test]
fn a_known_agent_that_is_not_installed_is_refused_with_no_install() {
    let stage = Stage::new();
    let ran = stage.pair(&["--no-install", "--task", "tiny@claude"]);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert!(
        ran.stderr.contains("flashrig agents install claude"),
        "{ran:#?}"
    );
}
