//! Agents that want to leave the machine: cases G2 and G3.

use serde_json::Value;

use crate::pair::stage::{Stage, text};

const GENEROUS: [&str; 2] = ["--fail-above", "100000"];

/// `host:port method count outcome` of a session.
fn asked_for(session: &Value) -> Vec<String> {
    let facts = session["egress"].as_array().unwrap();
    facts
        .iter()
        .map(|f| {
            format!(
                "{}:{} {} {} {}",
                text(f, "host"),
                f["port"],
                text(f, "method"),
                f["count"],
                text(f, "outcome")
            )
        })
        .collect()
}

#[test]
fn an_agent_that_sends_its_prompt_to_a_public_host_is_refused_listed_and_marked_but_not_failed() {
    let stage = Stage::with(&[
        "leave CONNECT statsig.example.com:443",
        "leave POST http://collect.example.com/v1/prompts",
        "ask",
        "leave CONNECT statsig.example.com:443",
        "write greeting.txt hello",
        "result",
    ]);
    let ran = stage.pair(&GENEROUS);
    for session in ran.both("completed") {
        assert_eq!(
            asked_for(&session),
            [
                "statsig.example.com:443 CONNECT 2 refused",
                "collect.example.com:80 POST 1 refused"
            ]
        );
        assert_eq!(session["tried_to_leave"], true);
        let reported = stage.result_text(&format!(
            "sessions/{}/transcript.txt",
            text(&session, "folder")
        ));
        assert_eq!(
            reported.matches("HTTP/1.1 403 Forbidden").count(),
            3,
            "{reported}"
        );
        println!("{reported}");
    }
    assert_eq!(ran.functional(), "pass", "{ran:#?}");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let message = "tiny: tried to leave the machine: statsig.example.com:443 (4 times), \
                 collect.example.com:80 (twice), refused";
    let warnings = ran.record()["verdict"]["warnings"].to_string();
    assert!(warnings.contains(message), "{warnings}");
    let report = stage
        .run(&["report", "--wide", stage.results().to_str().unwrap()])
        .stdout;
    assert!(report.contains(message), "{report}");
    assert!(
        report.contains("done, tried to leave the machine"),
        "{report}"
    );
}

#[test]
fn start_up_fetches_of_a_common_client_are_refused_at_once_and_loopback_is_not_disturbed() {
    let curl = std::process::Command::new("curl").arg("--version").output();
    assert!(curl.is_ok(), "this test needs curl: install it");
    let stage = Stage::with(&[
        // Without the guard either would hang until somebody's limit, or leave.
        "sh curl -sS -o refused.txt http://fetch.example.com/models.json; curl -sS https://fetch.example.com/ && exit 1; cat refused.txt; rm refused.txt",
        "sh curl -sS -o /dev/null \"$FLASHRIG_BASE_URL/v1/models\" -H \"Authorization: Bearer $FLASHRIG_TOKEN\"",
        "ask",
        "write greeting.txt hello",
        "result",
    ]);
    let ran = stage.pair(&GENEROUS);
    for session in ran.both("completed") {
        assert_eq!(
            asked_for(&session),
            [
                "fetch.example.com:80 GET 1 refused",
                "fetch.example.com:443 CONNECT 1 refused"
            ]
        );
        // The one that went to the gateway arrived there.
        assert_eq!(session["probe_requests"], 1, "{session:#}");
        let reported = stage.result_text(&format!(
            "sessions/{}/transcript.txt",
            text(&session, "folder")
        ));
        assert!(
            reported.contains("flashrig's egress guard refused GET fetch.example.com:80"),
            "{reported}"
        );
    }
}

#[test]
fn what_profile_or_command_line_allow_is_let_through_counted_and_marks_nobody() {
    let stage = Stage::with(&[
        "leave CONNECT nowhere.invalid:443",
        "leave CONNECT elsewhere.invalid:8443",
        "ask",
        "write greeting.txt hello",
        "result",
    ]);
    let path = "harness/agents/mine.toml";
    let profile = std::fs::read_to_string(stage.project().join(path)).unwrap();
    stage.write(
        path,
        &profile.replace(
            "fallback",
            "egress_allow = [\"nowhere.invalid:443\"]\nfallback",
        ),
    );
    let ran = stage.pair(&["--fail-above", "100000", "--allow-egress", "*.invalid:8443"]);
    for session in ran.both("completed") {
        assert_eq!(
            asked_for(&session),
            [
                "nowhere.invalid:443 CONNECT 1 allowed",
                "elsewhere.invalid:8443 CONNECT 1 allowed"
            ]
        );
        assert_eq!(session["tried_to_leave"], false);
    }
    let warnings = ran.record()["verdict"]["warnings"].to_string();
    assert!(
        warnings.contains("tiny: left the machine, as allowed"),
        "{warnings}"
    );
}

#[test]
fn a_destination_that_is_none_is_a_usage_error_that_says_how_to_write_it() {
    let stage = Stage::with(&["ask"]);
    let ran = stage.run(&[
        "pair",
        "--task",
        "tiny",
        "--agent",
        "mine",
        "--allow-egress",
        "https://a.example",
    ]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(
        ran.stderr
            .contains("write it like packages.example.org:443"),
        "{}",
        ran.stderr
    );
    let path = "harness/agents/mine.toml";
    let profile = std::fs::read_to_string(stage.project().join(path)).unwrap();
    stage.write(
        path,
        &profile.replace("fallback", "egress_allow = [\"a.example:0\"]\nfallback"),
    );
    let ran = stage.run(&["pair", "--task", "tiny", "--agent", "mine"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(
        ran.stderr.contains("mine.toml") && ran.stderr.contains("egress_allow"),
        "{}",
        ran.stderr
    );
}
