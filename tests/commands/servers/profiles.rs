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
            &[
                "x.toml",
                "x.toml:7:11: log[0].pattern: ",
                "is not a regular expression",
            ][..],
        ),
        (
            "[[log]]\nevent = \"denied\"\npattern = 'x'\n",
            &[
                "x.toml:6:9: log[0].event: ",
                "unknown value \"denied\"",
                "refused",
            ],
        ),
        (
            "[[log]]\nevent = \"finished\"\npattern = '(?<cashed>\\d+)'\n",
            &[
                "x.toml",
                "x.toml:5:1: log[0]: ",
                "group \"cashed\" is not a field of this event",
                "cached_tokens",
            ],
        ),
        (
            "[[log]]\nevent = \"setting\"\npattern = '\\d+'\n",
            &["x.toml", "x.toml:5:1: log[0]: ", "has no named group"],
        ),
        (
            "[metrics.names]\nruning = [\"a\"]\n",
            &[
                "x.toml:6:1: metrics.names.runing: ",
                "runing",
                "did you mean \"running\"?",
            ],
        ),
        (
            "[metrics]\npath = \"metrics\"\n[metrics.names]\n",
            &["x.toml", "metrics.path: ", "begins with /"],
        ),
        (
            "[metrics.names]\nrunning = [\"a b\"]\n",
            &[
                "x.toml",
                "metrics.names.running: ",
                "\"a b\" is not the name",
            ],
        ),
        (
            "dialects = [\"models\"]\n",
            &["x.toml", "dialects: ", "openai_chat"],
        ),
    ] {
        let project = project("x", &format!("{begun}{text}"));
        let asked_for = servers_in(project.path(), &["probe", "x"]);
        assert_eq!(asked_for.code, Some(2), "{text}: {}", asked_for.err);
        let listed = servers_in(project.path(), &["list"]);
        assert_eq!(listed.code, Some(0), "{text}: {}", listed.err);
        for part in message {
            assert!(asked_for.err.contains(part), "{part}: {}", asked_for.err);
            assert!(listed.out.contains(part), "{part}: {}", listed.out);
        }
    }
}

#[test]
fn a_list_has_the_sound_profiles_beside_a_bad_one_and_says_which_files_are_the_projects() {
    let built_in = flashrig_harness::HARNESS.get_file("servers/openai.toml");
    let text = built_in.unwrap().contents_utf8().unwrap();
    let project = project("openai", text);
    fs::write(project.path().join("harness/servers/bad.toml"), "x = 1").unwrap();
    let listed = servers_in(project.path(), &["list", "--json"]);
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    let rows = listed.json();
    let row = |name: &str| {
        let mut rows = rows.as_array().unwrap().iter();
        rows.find(|row| row["name"] == name).unwrap().clone()
    };
    assert_eq!(row("openai")["file"], "harness/servers/openai.toml");
    assert_eq!(row("openai")["error"], Value::Null);
    assert_eq!(row("sim")["file"], Value::Null);
    assert_eq!(row("bad")["kind"], Value::Null);
    let error = row("bad")["error"].as_str().unwrap().to_owned();
    assert!(
        error.contains("bad.toml: field `schema` is missing"),
        "{error}"
    );
    let text = servers_in(project.path(), &["list"]).out;
    assert!(text.contains("cannot be used: "), "{text}");
    assert!(
        text.contains(") from harness/servers/openai.toml"),
        "{text}"
    );
}

#[test]
fn the_old_name_of_a_key_is_still_read() {
    let built_in = flashrig_harness::HARNESS.get_file("servers/llama-server.toml");
    let text = built_in.unwrap().contents_utf8().unwrap();
    let old = text.replace("reported_in = {", "told = {");
    assert_ne!(old, text);
    let project = project("old", &old);
    let library = Library::new(Some(project.path()));
    let reported = |name: &str| match library.load(name).unwrap().kind {
        flashrig_server::Kind::Managed(recipe) => recipe
            .variables
            .into_iter()
            .filter_map(|variable| variable.reported_in)
            .collect::<Vec<_>>(),
        other => panic!("{other:?} is not managed"),
    };
    assert_eq!(reported("old"), reported("llama-server"));
    assert!(!reported("old").is_empty());
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
