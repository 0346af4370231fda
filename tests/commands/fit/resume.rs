//! A run that was stopped or killed goes on, and repeats nothing that it had finished.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Child;

use flashrig_testkit::waiting::wait_until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::fit::place::{EVEN, Place, Ran};

const ARGS: [&str; 19] = [
    "fit",
    "--server",
    "even",
    "--contexts",
    "4k",
    "--sessions",
    "1..2",
    "--rounds",
    "3",
    "--checks",
    "2",
    "--answer-tokens",
    "32",
    "--seed",
    "7",
    "--speed",
    "2",
    "--json",
    "--no-side",
];

fn place() -> Place {
    let place = Place::new();
    place.profile("even", EVEN);
    place
}

/// Starts a run and waits until so many combinations are measured and one more has begun.
fn in_the_middle(place: &Place, finished: usize) -> Child {
    begun(place, &ARGS, finished)
}

fn begun(place: &Place, args: &[&str], finished: usize) -> Child {
    let mut child = place.start(args);
    wait_until("the next combination has begun", || {
        assert!(child.try_wait().unwrap().is_none(), "the run is over");
        place.path().join("results").exists() && count(place, "cell_started") > finished
    });
    child
}

fn count(place: &Place, event: &str) -> usize {
    let events = std::fs::read_dir(place.path().join("results"))
        .unwrap()
        .next()
        .map(|_| place.events())
        .unwrap_or_default();
    events
        .iter()
        .filter(|e| e["what"]["event"] == event)
        .count()
}

fn resumed(place: &Place, more: &[&str]) -> Ran {
    let folder = place.results();
    let folder = folder.to_str().unwrap();
    place.run(["fit", "--resume", folder, "--json"].iter().chain(more))
}

/// What was measured to its end, by round and sessions.
fn finished(record: &Value) -> BTreeMap<(u64, u64), Vec<Value>> {
    let mut all: BTreeMap<_, Vec<Value>> = BTreeMap::new();
    for measured in record["measured"].as_array().unwrap() {
        if measured["stopped"]["kind"] != "interrupted" {
            let key = (
                measured["round"].as_u64().unwrap(),
                measured["sessions"].as_u64().unwrap(),
            );
            all.entry(key).or_default().push(measured.clone());
        }
    }
    all
}

/// All six combinations are there once, and those of before as they were.
fn went_on(before: &Value, ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let record = ran.record();
    assert_eq!(record["schema"], "flashrig.load/1");
    assert_eq!(record["state"], "finished");
    assert_eq!(record["resumed"], 1);
    let (kept, all) = (finished(before), finished(&record));
    assert!(!kept.is_empty() && kept.len() < 6, "{}", kept.len());
    assert_eq!(all.len(), 6);
    assert!(all.values().all(|m| m.len() == 1), "something was repeated");
    for (key, measured) in kept {
        assert_eq!(all[&key], measured, "{key:?} was changed");
    }
    let cells = record["cells"].as_array().unwrap();
    assert!(cells.iter().all(|c| c["slowdown"]["n"] == 3), "{cells:#?}");
    let warnings = record["verdict"]["warnings"].to_string();
    assert!(warnings.contains("taken up again once"), "{warnings}");
}

#[test]
fn after_ctrl_c_what_was_measured_is_kept_and_the_run_goes_on() {
    let place = place();
    let child = in_the_middle(&place, 2);
    kill(
        Pid::from_raw(child.id().try_into().unwrap()),
        Signal::SIGINT,
    )
    .unwrap();
    let stopped: Ran = child.wait_with_output().unwrap().into();
    assert_eq!(stopped.code, Some(130), "{}", stopped.stderr);
    let before = stopped.record();
    assert_eq!(before["state"], "interrupted");
    assert!(before["cells"][0]["slowdown"]["n"].as_u64().unwrap() >= 1);
    went_on(&before, &resumed(&place, &[]));
}

#[test]
fn after_kill_9_the_events_tell_what_was_measured_and_the_run_goes_on() {
    let place = place();
    let mut child = in_the_middle(&place, 3);
    child.kill().unwrap();
    child.wait().unwrap();
    // As a kill in the middle of a line leaves it.
    let events = place.results().join("events.jsonl");
    let mut text = std::fs::read_to_string(&events).unwrap();
    text.push_str("{\"at_s\": 1.0, \"wh");
    std::fs::write(&events, text).unwrap();
    let folder = place.results();
    let reported = place.run(["report".as_ref(), folder.as_os_str(), "--json".as_ref()]);
    let before = reported.record();
    assert_eq!(before["state"], "unfinished");
    let shown = place.run(["report".as_ref(), folder.as_os_str()]);
    assert!(
        shown.stdout.contains("flashrig was killed"),
        "{}",
        shown.stdout
    );
    assert!(shown.stdout.contains("4K context"), "{}", shown.stdout);
    went_on(&before, &resumed(&place, &[]));
    // No request is there twice: those of a combination that is measured again say so.
    let requests = place.result_text("requests.jsonl");
    let rows = requests.lines().map(|line| {
        let row: Value = serde_json::from_str(line).unwrap();
        ["round", "arm", "session", "number", "cell_attempt"].map(|name| row[name].to_string())
    });
    let rows: Vec<_> = rows.collect();
    let distinct: BTreeSet<_> = rows.iter().collect();
    assert_eq!(distinct.len(), rows.len());
    // Every line is whole again.
    let text = place.result_text("events.jsonl");
    assert!(
        text.lines()
            .all(|line| serde_json::from_str::<Value>(line).is_ok())
    );
    let instants: Vec<f64> = place
        .events()
        .iter()
        .map(|e| e["at_s"].as_f64().unwrap())
        .collect();
    assert!(instants.is_sorted(), "{instants:?}");
}

#[test]
fn values_that_were_changed_with_set_are_changed_again() {
    let place = place();
    let mut args = ARGS.to_vec();
    args.extend(["--set", "cache_tokens=500000"]);
    let mut child = begun(&place, &args, 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = resumed(&place, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let server = &ran.record()["server"];
    assert_eq!(server["name"], "even with cache_tokens=500000");
    assert_eq!(server["settings"][0], "cache_tokens=500000");
}

#[test]
fn what_differs_from_the_run_is_refused_and_nothing_is_written() {
    let place = place();
    let mut child = in_the_middle(&place, 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let before = place.result_text("run.json");
    for (more, word) in [
        (["--rounds", "5"], "--rounds"),
        (["--contexts", "8k"], "--contexts"),
        (["--sessions", "1..3"], "--sessions"),
        (["--seed", "8"], "--seed"),
        (["--speed", "3"], "--speed"),
        (["--server", "sim"], "--server"),
        (["--server", "http://127.0.0.1:1"], "--server"),
        (["--set", "cache_tokens=5"], "--set"),
    ] {
        let ran = resumed(&place, &more);
        assert_eq!(ran.code, Some(2), "{more:?}: {}", ran.stderr);
        let says = ran.stderr.contains(word) && ran.stderr.contains("without --resume");
        assert!(says, "{more:?}: {}", ran.stderr);
    }
    // The same name, another server.
    place.profile(
        "even",
        &EVEN.replace("max_concurrent = 8", "max_concurrent = 7"),
    );
    let profile = place.path().join("harness/servers/even.toml");
    let text = std::fs::read_to_string(&profile).unwrap();
    std::fs::write(&profile, text.replace("context = 65536", "context = 32768")).unwrap();
    let ran = resumed(&place, &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("its context was 65536 and is 32768 now"),
        "{}",
        ran.stderr
    );
    assert_eq!(place.result_text("run.json"), before);
}

#[test]
fn a_finished_run_is_not_taken_up_again() {
    let place = place();
    let ran = place.run(ARGS);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let again = resumed(&place, &[]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("is finished"), "{}", again.stderr);
    let nowhere = place.run(["fit", "--resume", "nowhere"]);
    assert_eq!(nowhere.code, Some(2));
    assert!(nowhere.stderr.contains("nowhere"), "{}", nowhere.stderr);
}
