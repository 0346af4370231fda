//! Sweeps that are cut short by Ctrl-C or a kill: nothing is left running, what was measured is
//! kept, and the sweep goes on where it was.

use std::collections::BTreeMap;
use std::process::Child;

use flashrig_testkit::waiting::wait_until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::pair::stage::{Ran, Stage, names};
use crate::support::machine::alive;
use crate::sweep::setting::{begun, events, round_and_combination, run_folder, stage};

const OPTIONS: [&str; 9] = [
    "sweep",
    "--json",
    "--server",
    "even",
    "--set",
    "max_concurrent=1,2",
    "--rounds",
    "2",
    "--seed=5",
];

/// A unit takes a while: twelve answers of half a second, one after the other.
const COMMAND: [&str; 11] = [
    "ttft",
    "--agents",
    "1",
    "--rounds",
    "12",
    "--prompt",
    "512",
    "--answer-tokens",
    "50",
    "--speed",
    "1",
];

/// Starts a sweep and waits until so many units are finished and the next one measures.
fn in_the_middle(stage: &Stage, finished: usize) -> Child {
    let args = [&OPTIONS[..], &["--"], &COMMAND].concat();
    let child = stage.flashrig(&args).spawn().unwrap();
    wait_until("a unit measures", || {
        let results = stage.project().join("results");
        if names(&results).is_empty() || !stage.results().join("events.jsonl").exists() {
            return false;
        }
        let all = begun(stage);
        let Some((round, combination)) = all.get(finished) else {
            return false;
        };
        let folder = stage
            .results()
            .join(format!("runs/r{round}-c{combination}"));
        let Some(run) = names(&folder)
            .into_iter()
            .find(|name| name.ends_with("ttft"))
        else {
            return false;
        };
        let events = std::fs::read_to_string(folder.join(run).join("events.jsonl"));
        events.is_ok_and(|text| text.contains("cell_measured"))
    });
    child
}

/// Every file below a unit's folder.
fn files(stage: &Stage, unit: &Value) -> BTreeMap<String, Vec<u8>> {
    let folder = run_folder(stage, unit);
    let read = |name: String| {
        let bytes = std::fs::read(folder.join(&name)).unwrap();
        (name, bytes)
    };
    names(&folder).into_iter().map(read).collect()
}

/// Goes on, and finds that nothing was repeated or changed.
fn goes_on(stage: &Stage, before: &Value) -> Value {
    let finished = before["units"].as_array().unwrap();
    let kept: Vec<_> = finished.iter().map(|unit| files(stage, unit)).collect();
    let folder = stage.results().display().to_string();
    let ran = stage.run(&["sweep", "--json", "--resume", &folder]);
    stage.nothing_left();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let record = ran.record();
    assert_eq!(
        (&record["state"], &record["resumed"]),
        (&"finished".into(), &1.into())
    );
    let units = record["units"].as_array().unwrap();
    assert_eq!(units.len(), 4);
    assert_eq!(&units[..finished.len()], finished.as_slice());
    for (unit, files_before) in finished.iter().zip(kept) {
        assert_eq!(files(stage, unit), files_before, "{unit:#}");
    }
    let mut measured: Vec<_> = units.iter().map(round_and_combination).collect();
    measured.sort_unstable();
    assert_eq!(measured, [(1, 1), (1, 2), (2, 1), (2, 2)]);
    // What was cut short was begun twice, and what it left is kept beside.
    assert_eq!(begun(stage).len(), 5);
    let cut = &record["cut_short"];
    assert_eq!(cut.as_array().unwrap().len(), 1, "{cut:#}");
    assert!(run_folder(stage, &cut[0]).exists());
    let again = units.last_chunk::<4>().unwrap();
    let again = again
        .iter()
        .find(|unit| round_and_combination(unit) == round_and_combination(&cut[0]));
    let again = again.unwrap()["folder"].as_str().unwrap();
    assert_eq!(again, format!("{}-2", cut[0]["folder"].as_str().unwrap()));
    let warnings = record["verdict"]["warnings"].to_string();
    assert!(
        warnings.contains("1 unit was cut short and measured anew"),
        "{warnings}"
    );
    assert!(warnings.contains("taken up again once"), "{warnings}");
    record
}

#[test]
fn kill_9_leaves_no_process_and_the_sweep_goes_on() {
    let stage = stage();
    let mut child = in_the_middle(&stage, 2);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("no process is left", || alive(stage.folder()).is_empty());
    // As a kill in the middle of a line leaves it.
    let path = stage.results().join("events.jsonl");
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("{\"at_s\": 1.0, \"wh");
    std::fs::write(&path, text).unwrap();

    let folder = stage.results().display().to_string();
    let report = stage.run(&["report", &folder]);
    assert!(
        report.stdout.contains("flashrig was killed"),
        "{}",
        report.stdout
    );
    let before = stage.run(&["report", "--json", &folder]).record();
    assert_eq!(before["state"], "unfinished");
    assert_eq!(before["units"].as_array().unwrap().len(), 2);
    assert!(!before["open"].is_null());
    goes_on(&stage, &before);
    let instants: Vec<f64> = events(&stage)
        .iter()
        .map(|event| event["at_s"].as_f64().unwrap())
        .collect();
    assert!(instants.is_sorted(), "{instants:?}");
}

#[test]
fn ctrl_c_lets_the_command_end_in_order_and_the_sweep_goes_on() {
    let stage = stage();
    let child = in_the_middle(&stage, 1);
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    kill(pid, Signal::SIGINT).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    stage.nothing_left();
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    let before = ran.record();
    assert_eq!(before["state"], "interrupted");
    assert_eq!(before["units"].as_array().unwrap().len(), 1);
    // The measured command sealed its own record.
    let run = run_folder(&stage, &before["cut_short"][0]).join("run.json");
    let run: Value = serde_json::from_str(&std::fs::read_to_string(run).unwrap()).unwrap();
    assert_eq!(run["state"], "interrupted");
    assert!(!run["measured"].as_array().unwrap().is_empty());
    goes_on(&stage, &before);
}

#[test]
fn what_differs_from_the_sweep_is_refused_and_nothing_is_changed() {
    let stage = stage();
    let mut child = in_the_middle(&stage, 0);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("no process is left", || alive(stage.folder()).is_empty());
    let before = stage.result_text("events.jsonl");
    let folder = stage.results().display().to_string();
    let refused = |more: &[&str], message: &str| {
        let ran = stage.run(&[&["sweep", "--resume", &folder], more].concat());
        assert_eq!(ran.code, Some(2), "{more:?}: {}", ran.stderr);
        let says = ran.stderr.contains(message) && ran.stderr.contains("without --resume");
        assert!(says, "{more:?}: {}", ran.stderr);
    };
    for more in [
        &["--rounds", "3"][..],
        &["--seed", "6"],
        &["--server", "sim"],
        &["--set", "max_concurrent=1,3"],
        &["--one-at-a-time"],
    ] {
        refused(more, more[0]);
    }
    refused(&["--", "ttft", "--agents", "2"], "the command is not what");
    let even = stage.project().join("harness/servers/even.toml");
    let text = std::fs::read_to_string(&even).unwrap();
    std::fs::write(&even, format!("{text}# changed\n")).unwrap();
    refused(&[], "the profile of the server even is not what it was");
    assert_eq!(stage.result_text("events.jsonl"), before);
}
