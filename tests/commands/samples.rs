//! Runs that flashrig 0.1.0 stored (`tests/samples/`) open, say what they said, and go on.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::fit::place::Place;

/// Each stored run with what the answer that flashrig 0.1.0 printed holds.
const SAMPLES: [(&str, &[&str]); 10] = [
    ("pair-finished", &["inconclusive", "1.63"]),
    ("pair-gated", &["warning", "1.61"]),
    ("pair-failed", &["fail", "check \"greets\" exited with 1"]),
    ("pair-invalid-round", &["3 of 4 done", "round 1"]),
    ("pair-killed", &["flashrig was killed"]),
    ("fit-finished", &["at least 2 sessions", "warning, 1.63"]),
    (
        "fit-killed",
        &["at least 2 sessions", "flashrig was killed"],
    ),
    ("ttft-finished", &["641 ms", "968 ms", "worst 1.28 s"]),
    (
        "sweep-finished",
        &["max_concurrent=4 is 1.72 times as fast as max_concurrent=1"],
    ),
    ("sweep-killed", &["flashrig was killed"]),
];

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/samples")
        .join(name)
}

/// A copy of a stored run in a place of its own: to go on with it changes it.
fn copied(name: &str) -> (Place, PathBuf) {
    let place = Place::new();
    let copy = place.path().join("results").join(name);
    copy_folder(&stored(name), &copy);
    (place, copy)
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Changes the server and the spec that a run's first event holds.
fn edit_first_event(folder: &Path, edit: impl FnOnce(&mut Value)) {
    let path = folder.join("events.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let mut first: Value = serde_json::from_str(first).unwrap();
    edit(&mut first["what"]["run"]);
    fs::write(&path, format!("{first}\n{rest}")).unwrap();
}

fn sha256(path: impl AsRef<Path>) -> String {
    let digest = Sha256::digest(fs::read(path).unwrap());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn report(folder: &Path, more: &[&str]) -> String {
    let place = Place::new();
    let args = ["report".as_ref(), folder.as_os_str()];
    let ran = place.run(args.into_iter().chain(more.iter().map(AsRef::as_ref)));
    assert_eq!(ran.code, Some(0), "{}: {}", folder.display(), ran.stderr);
    ran.stdout
}

#[test]
fn report_opens_every_stored_run_and_gives_the_answer_that_it_gave() {
    for (name, answer) in SAMPLES {
        let text = report(&stored(name), &[]);
        for part in answer {
            assert!(text.contains(part), "{name} lacks {part:?}: {text}");
        }
    }
}

#[test]
fn the_record_that_report_prints_has_every_figure_of_the_stored_one() {
    for (name, _) in SAMPLES {
        let was: Value =
            serde_json::from_str(&fs::read_to_string(stored(name).join("run.json")).unwrap())
                .unwrap();
        let now: Value = serde_json::from_str(&report(&stored(name), &["--json"])).unwrap();
        for field in ["id", "command", "started_at", "state"] {
            assert_eq!(now[field], was[field], "{name}: {field}");
        }
        same_numbers(name, &was, &now);
    }
}

/// Every number of `was` stands at its place in `now`.
fn same_numbers(place: &str, was: &Value, now: &Value) {
    match was {
        Value::Number(_) => assert_eq!(now, was, "{place}"),
        Value::Object(fields) => {
            for (name, field) in fields {
                same_numbers(&format!("{place}/{name}"), field, &now[name]);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                same_numbers(&format!("{place}/{index}"), item, &now[index]);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[test]
fn the_events_alone_give_the_same_report() {
    for (name, _) in SAMPLES {
        let (_place, copy) = copied(name);
        let with = report(&copy, &[]);
        fs::remove_file(copy.join("run.json")).unwrap();
        assert_eq!(report(&copy, &[]), with, "{name}");
    }
}

#[test]
fn a_stored_fit_that_was_killed_goes_on_to_its_end() {
    let (place, copy) = copied("fit-killed");
    // The embedded server has the version of flashrig.
    edit_first_event(&copy, |run| {
        run["server"]["version"] = json!(env!("CARGO_PKG_VERSION"));
    });
    let before: Value =
        serde_json::from_str(&fs::read_to_string(copy.join("run.json")).unwrap()).unwrap();
    let ran = place.run(["fit", "--json", "--resume", copy.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let after = ran.record();
    assert_eq!(after["state"], "finished");
    let measured = |run: &Value| run["measured"].as_array().unwrap().clone();
    assert_eq!((measured(&before).len(), measured(&after).len()), (2, 4));
    for (index, kept) in measured(&before).iter().enumerate() {
        same_numbers("measured", kept, &measured(&after)[index]);
    }
}

#[test]
fn a_stored_sweep_that_was_killed_goes_on_to_its_end() {
    let (place, copy) = copied("sweep-killed");
    // A sweep goes on with the program and the profile that it began with; here it is another.
    let profile = Path::new(env!("CARGO_MANIFEST_DIR")).join("harness/servers/sim.toml");
    edit_first_event(&copy, |run| {
        run["spec"]["rig_sha256"] = json!(sha256(env!("CARGO_BIN_EXE_flashrig")));
        run["spec"]["profile_sha256"] = json!(sha256(profile));
    });
    let ran = place.run(["sweep", "--json", "--resume", copy.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let after = ran.record();
    assert_eq!(after["state"], "finished");
    let units = after["units"].as_array().unwrap();
    assert_eq!(units.len(), 4);
    assert!(
        units.iter().all(|unit| unit["outcome"] == "measured"),
        "{units:#?}"
    );
}
