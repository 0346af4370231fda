//! What is printed and stored: schemas, stable names, the report.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use jsonschema::Validator;
use serde_json::Value;

use crate::pair::stage::{GOOD, Ran, Stage, names, text};

/// Names of `run.json` that scripts rely on, by JSON pointer.
const RUN_NAMES: [&str; 12] = [
    "/schema",
    "/id",
    "/command",
    "/started_at",
    "/rig",
    "/host",
    "/server",
    "/spec",
    "/rounds",
    "/verdict",
    "/verdict/worst_slowdown/ci95",
    "/verdict/together_over_back_to_back/n",
];
const SESSION_NAMES: [&str; 29] = [
    "/id",
    "/task",
    "/agent/name",
    "/agent/version",
    "/status",
    "/wall_s",
    "/split/startup_s",
    "/split/gate_s",
    "/split/waiting_s",
    "/split/decoding_s",
    "/split/backoff_s",
    "/split/between_s",
    "/split/exit_s",
    "/requests",
    "/side_requests",
    "/input_tokens",
    "/cached_tokens",
    "/output_tokens",
    "/cpu_s",
    "/peak_rss_bytes",
    "/egress",
    "/tried_to_leave",
    "/checks/0/name",
    "/checks/0/outcome",
    "/checks/0/duration_s",
    "/diff/files",
    "/diff/insertions",
    "/diff/deletions",
    "/diff/protected_touched",
];

fn good_run() -> (Stage, Ran) {
    let stage = Stage::with(&GOOD);
    let ran = stage.pair(&["--fail-above", "100000"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    (stage, ran)
}

fn schema(stage: &Stage, of: &str) -> Validator {
    let printed = stage.run(&["schema", of]);
    assert_eq!(printed.code, Some(0));
    jsonschema::validator_for(&serde_json::from_str(&printed.stdout).unwrap()).unwrap()
}

fn assert_valid(validator: &Validator, value: &Value) {
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?} in {value:#}");
}

#[test]
fn everything_that_is_written_follows_its_printed_schema() {
    let (stage, ran) = good_run();
    let run = schema(&stage, "run");
    assert_valid(&run, &ran.record());
    let mut broken = ran.record();
    broken["rounds"] = "none".into();
    assert!(!run.is_valid(&broken), "the schema accepts anything");
    for (file, of, at_least) in [
        ("events.jsonl", "event", 10),
        ("requests.jsonl", "request", 2),
        ("server.jsonl", "server-line", 4),
    ] {
        let validator = schema(&stage, of);
        let lines = stage.result_text(file);
        assert!(lines.lines().count() >= at_least, "{lines}");
        for line in lines.lines() {
            assert_valid(&validator, &serde_json::from_str(line).unwrap());
        }
    }
}

#[test]
fn every_arm_tells_what_was_seen_of_the_server_and_its_sources_agree() {
    let (stage, ran) = good_run();
    for arm in ran.arms() {
        assert_eq!(arm["idle_by"], "metrics");
        let watched = &arm["watched"];
        assert!(watched["samples"].as_u64().unwrap() >= 2, "{watched}");
        let sessions = arm["sessions"].as_array().unwrap();
        let tokens = sessions
            .iter()
            .map(|s| s["cached_tokens"].as_u64().unwrap());
        let cached = &watched["cached_tokens"];
        assert_eq!(cached["answers"], tokens.sum::<u64>());
        assert_eq!(cached["metrics"], cached["answers"], "{watched}");
        assert_eq!(cached["log"], cached["answers"], "{watched}");
        let none = serde_json::json!({"answers": 0, "metrics": 0, "log": 0});
        assert_eq!(watched["refused"], none);
        assert_eq!(watched["disagreements"], serde_json::json!([]));
        assert_eq!(
            watched["peak_rss_bytes"],
            Value::Null,
            "not ours to look at"
        );
    }
    // Its own log, from before the folder was there, each line behind its second.
    let log = stage.result_text("server.log");
    let (second, boot) = log.lines().next().unwrap().split_once(' ').unwrap();
    assert!(second.parse::<f64>().unwrap() < 0.0, "{log}");
    assert!(boot.starts_with("flashrig-sim "), "{log}");
    let served = log.lines().filter(|line| line.contains(" <- ")).count();
    let requests = stage.result_text("requests.jsonl").lines().count();
    assert!(served >= requests, "{served} of {requests}");
}

#[test]
fn standard_output_holds_the_record_and_nothing_else_and_equals_run_json() {
    let (stage, ran) = good_run();
    let stored: Value = serde_json::from_str(&stage.result_text("run.json")).unwrap();
    assert_eq!(ran.record(), stored);
    assert_eq!(stored["schema"], "flashrig.run/1");
    assert_eq!(stored["state"], "finished");
    assert_eq!(stored["server"]["simulated"], true);
    assert_eq!(
        stored["id"].as_str(),
        stage.results().file_name().unwrap().to_str()
    );
}

#[test]
fn the_stable_names_are_there() {
    let (_stage, ran) = good_run();
    let record = ran.record();
    for name in RUN_NAMES {
        assert!(record.pointer(name).is_some(), "{name}");
    }
    for name in ["valid", "invalid_reasons", "index"] {
        assert!(record["rounds"][0].get(name).is_some(), "{name}");
    }
    for arm in ran.arms() {
        for name in ["kind", "makespan_s", "max_overlap", "start_skew_s"] {
            assert!(arm.get(name).is_some(), "{name}");
        }
    }
    for session in ran.sessions() {
        for name in SESSION_NAMES {
            assert!(session.pointer(name).is_some(), "{name} in {session:#}");
        }
    }
}

#[test]
fn a_session_folder_holds_transcript_patch_checks_and_with_keep_the_workspace() {
    let stage = Stage::with(&GOOD);
    let ran = stage.pair(&["--keep"]);
    for session in ran.sessions() {
        let folder = format!("sessions/{}", text(&session, "folder"));
        let kept = stage.result_text(&format!("{folder}/workspace/greeting.txt"));
        assert_eq!(kept, "hello\n");
        assert!(
            stage
                .result_text(&format!("{folder}/transcript.txt"))
                .contains(r#"{"type":"result"}"#)
        );
        assert!(
            stage
                .result_text(&format!("{folder}/diff.patch"))
                .contains("-nothing\n+hello\n")
        );
        assert_eq!(
            names(&stage.results().join(&folder).join("checks")),
            ["greets.txt", "guard.txt"]
        );
    }
}

#[test]
fn a_report_made_with_the_simulated_server_says_so_on_its_second_line() {
    let stage = Stage::with(&GOOD);
    let ran = stage.run(&["pair", "--task", "tiny", "--agent", "mine", "--speed", "50"]);
    let second = ran.stdout.trim_start().lines().nth(1).unwrap();
    assert!(second.contains("SIMULATED server"), "{}", ran.stdout);
    let report = stage.run(&["report", &stage.results().display().to_string()]);
    assert_eq!(report.code, Some(0));
    let second = report.stdout.trim_start().lines().nth(1).unwrap();
    assert!(second.contains("SIMULATED server"), "{}", report.stdout);
}

#[test]
fn stored_files_are_as_readable_as_the_umask_allows() {
    for (umask, expected) in [("077", 0o600), ("022", 0o644)] {
        let stage = Stage::with(&GOOD);
        let flashrig = stage.flashrig(&[]);
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")])
            .arg(flashrig.get_program())
            .args([
                "pair", "--json", "--agent", "mine", "--task", "tiny", "--speed", "50",
            ])
            .current_dir(stage.project())
            .env_clear();
        for (name, value) in flashrig.get_envs() {
            shell.env(name, value.unwrap());
        }
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let mut folders = vec![stage.results()];
        let mut seen = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                    continue;
                }
                let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
                assert_eq!(mode, expected, "{umask}: {}", entry.path().display());
                seen.push(entry.file_name().into_string().unwrap());
            }
        }
        for name in [
            "run.json",
            "events.jsonl",
            "diff.patch",
            "bodies.zst",
            "transcript.txt",
        ] {
            assert!(seen.iter().any(|seen| seen == name), "{name}: {seen:?}");
        }
    }
}

#[test]
fn a_path_that_is_not_utf_8_is_recorded_and_secrets_of_the_agents_command_are_not() {
    use std::os::unix::ffi::OsStrExt as _;
    let stage = Stage::new();
    let command = "sh -c 'echo hello > greeting.txt' x --api-key sk-typed-secret";
    let mut flashrig = stage.flashrig(&["pair", "--json", "--agent", "command", "--task", "tiny"]);
    flashrig
        .args(["--speed", "50", "--agent-command", command, "--results"])
        .arg(std::ffi::OsStr::from_bytes(b"res\xffults"));
    let ran = Ran::of(flashrig.output().unwrap());
    let record = ran.record();
    let line = record["command_line"].to_string();
    assert!(line.contains("res\u{fffd}ults"), "{line}");
    assert!(line.contains("--api-key '***'"), "{line}");
    assert!(!ran.stdout.contains("sk-typed-secret"), "{line}");
}
