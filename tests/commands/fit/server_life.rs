//! A server that flashrig started, and that dies in the middle of a combination; one that is reset.

use std::path::Path;

use flashrig_testkit::waiting::wait_until;
use serde_json::Value;

use crate::fit::place::{EVEN, Place, Ran, cell};
use crate::support::managed::{kill_server, life, profile};

const ARGS: [&str; 16] = [
    "fit",
    "--server",
    "real",
    "--contexts",
    "4k",
    "--sessions",
    "1..2",
    "--checks",
    "2",
    "--answer-tokens",
    "128",
    "--seed",
    "7",
    "--json",
    "--rounds",
    "2",
];

/// A place with the managed server `real`. A combination of it takes a second or two.
fn place(start: &str) -> Place {
    let place = Place::new();
    place.profile("even", EVEN);
    let flashrig = Path::new(env!("CARGO_BIN_EXE_flashrig"));
    let text = profile(flashrig, "even", 3.0, start, "[reset]\nrestart = true\n");
    let file = place.path().join("harness/servers/real.toml");
    std::fs::write(file, text).unwrap();
    place
}

/// Starts a run, and kills its server as soon as the combination number `wanted` has begun.
fn killed_in(place: &Place, wanted: usize) -> Ran {
    let mut child = place.start(ARGS);
    let begun = || {
        let results = place.path().join("results");
        let has_run = std::fs::read_dir(results).is_ok_and(|mut r| r.next().is_some());
        let events = if has_run { place.events() } else { Vec::new() };
        let started = events
            .iter()
            .filter(|e| e["what"]["event"] == "cell_started");
        started.count()
    };
    wait_until("the combination has begun", || {
        assert!(child.try_wait().unwrap().is_none(), "the run is over");
        begun() >= wanted
    });
    let record: Value = serde_json::from_str(&place.result_text("run.json")).unwrap();
    kill_server(&record);
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_death_in_a_combination_is_named_there_and_the_next_one_runs_on_the_server_anew() {
    let place = place("");
    let ran = killed_in(&place, 2);
    let record = ran.record();
    assert_eq!(record["state"], "finished", "{}", ran.stderr);
    assert_eq!(life(&record), ["died", "restarted"]);
    let measured = record["measured"].as_array().unwrap();
    assert_eq!(measured.len(), 4, "each once, in two rounds");
    let stopped: Vec<&Value> = measured
        .iter()
        .filter(|m| !m["stopped"].is_null())
        .collect();
    let [one] = stopped[..] else {
        panic!("{stopped:#?}")
    };
    assert_eq!(one["stopped"]["kind"], "failed");
    let message = one["stopped"]["words"]["text"].as_str().unwrap();
    assert!(
        message.starts_with("the server real died: it was killed by SIGKILL"),
        "{message}"
    );
    assert!(message.contains("; its log ends with \""), "{message}");
    let sessions = one["sessions"].as_u64().unwrap();
    let judged = cell(&record, 4096, sessions);
    assert_eq!(judged["verdict"], "error");
    assert!(judged["reasons"].to_string().contains("died"), "{judged:#}");
    // What was measured afterwards is whole, and does not begin before the server was ready.
    let restarted = record["server"]["life"][1]["at_s"].as_f64().unwrap();
    for later in &measured[2..] {
        for lane in later["lanes"].as_array().unwrap() {
            let turns = lane["turns"].as_array().unwrap();
            assert_eq!(turns.len(), 3, "{lane:#}");
            assert!(turns[0]["sent_at_s"].as_f64().unwrap() > restarted);
        }
    }
}

#[test]
fn a_server_that_may_not_be_started_again_ends_the_run_which_goes_on_with_resume() {
    let place = place("restart = false");
    let ran = killed_in(&place, 2);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let record = ran.record();
    assert_eq!(record["state"], "failed");
    let message = record["stopped_because"]["text"].as_str().unwrap();
    assert!(
        message.contains("killed by SIGKILL") && message.contains("restart = false"),
        "{message}"
    );
    assert_eq!(record["measured"].as_array().unwrap().len(), 2);
    let folder = place.results();
    let ran = place.run(["fit", "--json", "--resume", folder.to_str().unwrap()]);
    let record = ran.record();
    assert_eq!(record["state"], "finished", "{}", ran.stderr);
    assert_eq!(record["measured"].as_array().unwrap().len(), 4);
}

#[test]
fn a_reset_comes_before_each_combination_and_takes_no_time_of_it() {
    let place = place("");
    let ran = place.run(ARGS.iter().chain(&["--reset"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let record = ran.record();
    assert_eq!(life(&record), ["reset"; 4]);
    assert_eq!(record["spec"]["reset"], true);
    let resets = record["server"]["life"].as_array().unwrap();
    for (measured, reset) in record["measured"].as_array().unwrap().iter().zip(resets) {
        assert!(measured["reset_s"].as_f64().unwrap() > 0.0);
        let sent = &measured["lanes"][0]["turns"][0]["sent_at_s"];
        assert!(sent.as_f64().unwrap() > reset["at_s"].as_f64().unwrap());
    }
    let folder = place.results();
    let ran = place.run(["fit", "--server", "even", "--reset", "--contexts", "4k"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(folder.exists());
}
