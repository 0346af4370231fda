//! Profiles: listed, wrong, and what they make of a log.

use super::{project, servers, servers_in};
use crate::support::serving::Serving;
use flashrig_server::{Library, LogEvent, events};
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

#[test]
fn every_profile_is_listed_with_what_it_is_and_where() {
    let listed = servers(&["list", "--json"]);
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    let rows = listed.json();
    let row = |name: &str| {
        let mut rows = rows.as_array().unwrap().iter();
        rows.find(|row| row["name"] == name)
            .unwrap_or_else(|| panic!("{name} is not listed"))
            .clone()
    };
    for name in ["openai", "anthropic"] {
        assert_eq!(row(name)["kind"], "attached", "{name}");
        assert!(row(name)["url"].is_string(), "{name}");
    }
    // Without PATH and cache nothing is found.
    for name in ["mlx-serve", "mlx-lm", "llama-server", "vllm"] {
        assert_eq!(row(name)["kind"], "managed", "{name}");
        assert_eq!(row(name)["url"], Value::Null, "{name}");
        assert_eq!(row(name)["program"], Value::Null, "{name}");
    }
    assert_eq!(row("sim")["kind"], "simulated");
    assert_eq!(row("sim")["url"], Value::Null);
    let text = servers(&["list"]).out;
    for line in [
        "with a key (attached, http://127.0.0.1:8080)",
        "vLLM (managed; vllm is not on PATH)",
        "llama.cpp llama-server (managed; not installed: flashrig servers install llama-server)",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn a_profile_that_cannot_be_used_is_named_with_file_line_and_field() {
    let begun = "schema = \"flashrig.server/1\"\nkind = \"attached\"\ntitle = \"x\"\n\
                 url = \"http://h:1\"\n";
    for (text, message) in [
        (
            "[[log]]\nevent = \"refused\"\npattern = '(?<needed_mb>\\d+'\n",
            &["x.toml", "line 7, column 11", "is no regular expression"][..],
        ),
        (
            "[[log]]\nevent = \"denied\"\npattern = 'x'\n",
            &["x.toml", "line 6", "unknown variant `denied`", "`refused`"],
        ),
        (
            "[[log]]\nevent = \"finished\"\npattern = '(?<cashed>\\d+)'\n",
            &[
                "x.toml",
                "line 5",
                "group \"cashed\" is none of this event",
                "cached_tokens",
            ],
        ),
        (
            "[[log]]\nevent = \"setting\"\npattern = '\\d+'\n",
            &["x.toml", "line 5", "has no named group"],
        ),
        (
            "[metrics.names]\nruning = [\"a\"]\n",
            &["x.toml", "line 6", "unknown variant `runing`", "`running`"],
        ),
        (
            "[metrics]\npath = \"metrics\"\n[metrics.names]\n",
            &["x.toml", "metrics.path: ", "begins with /"],
        ),
        (
            "[metrics.names]\nrunning = [\"a b\"]\n",
            &["x.toml", "metrics.names.running: ", "\"a b\" is no name"],
        ),
        (
            "dialects = [\"models\"]\n",
            &["x.toml", "dialects: ", "openai_chat"],
        ),
    ] {
        let project = project("x", &format!("{begun}{text}"));
        for args in [&["list"][..], &["probe", "x"]] {
            let ran = servers_in(project.path(), args);
            assert_eq!(ran.code, Some(2), "{text}: {}", ran.err);
            for word in message {
                assert!(ran.err.contains(word), "{word}: {}", ran.err);
            }
        }
    }
}

#[test]
fn the_log_that_the_simulated_server_writes_is_read_by_its_own_profile() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("server.log");
    let args = [
        "sim",
        "--listen",
        "127.0.0.1:0",
        "--speed",
        "50",
        "--server-log",
    ];
    let sim = Serving::start([&args[..], &[log.to_str().unwrap()]].concat());
    let probe = servers(&["probe", &sim.url(), "--json"]).json();
    let large = probe["first_tokens"][1]["prompt_tokens"].as_u64();
    assert!(large.is_some(), "{probe}");
    sim.interrupt();
    assert_eq!(sim.ended().0, Some(0));
    let patterns = Library::new(None).load("sim").unwrap().interface.log;
    let text = fs::read_to_string(&log).unwrap();
    let reported: Vec<LogEvent> = text
        .lines()
        .flat_map(|line| events(&patterns, line))
        .collect();
    let has = |wanted: &dyn Fn(&LogEvent) -> bool| reported.iter().any(wanted);
    assert!(
        has(&|event| matches!(event, LogEvent::Setting { name, value }
            if name == "max_concurrent" && value == "4")),
        "{text}"
    );
    assert!(
        has(
            &|event| matches!(event, LogEvent::Finished { prompt_tokens, cached_tokens: Some(0), .. }
            if *prompt_tokens == large)
        ),
        "{text}"
    );
}
