//! Sweeps over a server that is a process of its own: `flashrig sim`, started by a profile.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use flashrig_testkit::waiting::wait_until;
use serde_json::Value;

use crate::pair::stage::{Stage, names};
use crate::support::machine::alive;
use crate::sweep::setting::{begun, figure, stage, sweep};

/// A stage with the server `own`, a script that becomes `flashrig sim`.
fn with_own() -> Stage {
    let stage = stage();
    let script = format!(
        "#!/bin/sh\nexec '{}' \"$@\"\n",
        env!("CARGO_BIN_EXE_flashrig")
    );
    stage.write("own.sh", &script);
    let path = stage.project().join("own.sh");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let text = format!(
        r#"schema = "flashrig.server/1"
kind = "managed"
title = "own"

[start]
program = "{}"
args = [
  "sim",
  ["--profile", "even"],
  ["--listen", "{{host}}:{{port}}"],
  ["--speed", "10"],
  ["--set", "max_concurrent={{max_concurrent}}"],
  ["--set", "cache_tokens={{cache_tokens}}"],
  ["--frobnicate", "{{frobnicate}}"],
  ["--server-log", "/dev/stderr"],
]

[variables.max_concurrent]
about = "requests worked on at once"
default = 4
values = [1, 4]

[variables.cache_tokens]
about = "tokens of its cache"
default = 1000000

[variables.frobnicate]
about = "a flag that no build knows"

[ready]
path = "/v1/models"
status = 200

[identity]
version = ["--version"]
pattern = 'flashrig (.+)'

[[log]]
event = "setting"
pattern = 'Concurrency: --max-concurrent=(?<max_concurrent>\d+)'
"#,
        path.display()
    );
    stage.write("harness/servers/own.toml", &text);
    stage
}

const TTFT: [&str; 7] = [
    "ttft",
    "--agents",
    "4",
    "--prompt",
    "512",
    "--answer-tokens",
    "32",
];

/// Four answers of 0.32 s: one after the other the last one's first token comes after 0.96 s, all
/// together at once.
#[test]
fn the_server_is_started_anew_for_each_unit_and_its_settings_are_proven() {
    let stage = with_own();
    // The profile's own values.
    let options = [
        "--server",
        "own",
        "--set",
        "max_concurrent",
        "--set",
        "cache_tokens=500000",
    ];
    let ran = sweep(&stage, &[&options[..], &["--rounds", "2"]].concat(), &TTFT);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let record = ran.record();
    let mut pids = BTreeSet::new();
    for unit in record["units"].as_array().unwrap() {
        let path = stage.results().join(unit["run"].as_str().unwrap());
        let text = fs::read_to_string(path.join("run.json")).unwrap();
        let run: Value = serde_json::from_str(&text).unwrap();
        pids.insert(run["server"]["managed"]["pid"].as_u64().unwrap());
        assert!(unit["server"]["ready_after_s"].as_f64() > Some(0.0));
        assert_eq!(
            unit["server"]["program_sha256"],
            run["server"]["managed"]["program_sha256"]
        );
    }
    assert_eq!(pids.len(), 4);
    let rows = record["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for (row, value) in rows.iter().zip(["1", "4"]) {
        assert_eq!(row["settings"][0], format!("max_concurrent={value}"));
        assert_eq!(row["proofs"][0]["proven"], "proven");
        let by = row["proofs"][0]["by"]["text"].as_str().unwrap();
        assert!(by.contains(&format!("--max-concurrent={value}")), "{by}");
        assert_eq!(row["proofs"][1]["proven"], "not_proven");
        assert_eq!(row["peak_memory_by"], "system");
        assert!(row["peak_memory_bytes"].as_u64() > Some(1_000_000));
    }
    let slow = figure(&record, 1, "ttft_worst_s", 4.into());
    let fast = figure(&record, 2, "ttft_worst_s", 4.into());
    assert!(slow["value"].as_f64() > Some(0.9), "{slow:#}");
    assert!(fast["of_first"]["value"].as_f64() < Some(0.6), "{fast:#}");
    assert_eq!(record["verdict"]["best"], 2);
}

#[test]
fn kill_9_takes_the_server_along_and_another_program_is_not_gone_on_with() {
    let stage = with_own();
    let args = [
        "sweep",
        "--server",
        "own",
        "--set",
        "max_concurrent",
        "--rounds",
        "1",
        "--",
    ];
    let args = [&args[..], &TTFT, &["--rounds", "50"]].concat();
    let mut child = stage.flashrig(&args).spawn().unwrap();
    wait_until("the first unit measures", || {
        let results = stage.project().join("results");
        if names(&results).is_empty() || !stage.results().join("events.jsonl").exists() {
            return false;
        }
        let Some((round, combination)) = begun(&stage).first().copied() else {
            return false;
        };
        let folder = stage
            .results()
            .join(format!("runs/r{round}-c{combination}"));
        names(&folder).iter().any(|name| name.ends_with("-ttft"))
    });
    let servers = || {
        let all = alive(stage.folder()).into_iter();
        all.filter(|line| line.contains("--listen")).count()
    };
    assert_eq!(servers(), 1, "{:#?}", alive(stage.folder()));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("no process is left", || alive(stage.folder()).is_empty());

    let script = stage.project().join("own.sh");
    let text = fs::read_to_string(&script).unwrap();
    fs::write(&script, format!("{text}# another build\n")).unwrap();
    let folder = stage.results().display().to_string();
    let ran = stage.run(&["sweep", "--resume", &folder]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("own.sh is not what it was when the sweep"),
        "{}",
        ran.stderr
    );
}

#[test]
fn flags_and_variables_that_do_not_exist_are_refused_by_name_before_the_first_unit() {
    let stage = with_own();
    for (sets, message) in [
        (
            &["--set", "max_concurrent=1,4", "--set", "frobnicate=1"][..],
            &["unknown flag \"--frobnicate\"", "0.1.0"][..],
        ),
        (
            &["--set", "max_concurent=1,4"],
            &["did you mean \"max_concurrent\"?"],
        ),
        (
            &["--set", "max_concurent"],
            &["did you mean \"max_concurrent\"?"],
        ),
        (
            &["--set", "cache_tokens"],
            &["offers no values of \"cache_tokens\""],
        ),
    ] {
        let args = [&["sweep", "--server", "own"], sets, &["--"], &TTFT].concat();
        let ran = stage.run(&args);
        assert_eq!(ran.code, Some(2), "{sets:?}: {}", ran.stderr);
        for word in message {
            assert!(ran.stderr.contains(word), "{sets:?}: {}", ran.stderr);
        }
        assert!(!stage.project().join("results").exists(), "{sets:?}");
    }
}
