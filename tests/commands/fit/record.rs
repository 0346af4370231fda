//! What is printed and stored.

use jsonschema::Validator;
use serde_json::Value;

use crate::fit::place::{Place, QUICK, cell};

fn schema(place: &Place, of: &str) -> Validator {
    let printed = place.run(["schema", of]);
    assert_eq!(printed.code, Some(0));
    jsonschema::validator_for(&serde_json::from_str(&printed.stdout).unwrap()).unwrap()
}

fn quick(place: &Place) -> crate::fit::place::Ran {
    let args = ["fit", "--speed", "50", "--json"];
    place.run(args.iter().chain(&QUICK))
}

/// Names that scripts rely on.
const STABLE: [&str; 22] = [
    "/context_tokens",
    "/sessions",
    "/slowdown/worst",
    "/slowdown/median",
    "/slowdown/ci95",
    "/slowdown/n",
    "/growth",
    "/ttft_cold_s",
    "/ttft_warm_s",
    "/side/n",
    "/side/p50_s",
    "/side/p95_s",
    "/side/max_s",
    "/side/over_60s",
    "/recall/right",
    "/recall/asked",
    "/refused/client",
    "/refused/server",
    "/verdict",
    "/turn_s",
    "/cached_share",
    "/reasons",
];

#[test]
fn everything_that_is_written_follows_its_printed_schema_and_has_the_stable_names() {
    let place = Place::new();
    let ran = quick(&place);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let record = ran.record();
    let validator = schema(&place, "run");
    let errors: Vec<String> = validator
        .iter_errors(&record)
        .map(|e| e.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    let mut broken = record.clone();
    broken["cells"] = "none".into();
    assert!(!validator.is_valid(&broken), "the schema accepts anything");

    for name in STABLE {
        assert!(cell(&record, 4096, 2).pointer(name).is_some(), "{name}");
    }
    for (file, of, at_least) in [
        ("events.jsonl", "event", 6),
        ("requests.jsonl", "request", 18),
    ] {
        let validator = schema(&place, of);
        let lines = place.result_text(file);
        assert!(lines.lines().count() >= at_least, "{lines}");
        for line in lines.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            assert!(validator.is_valid(&line), "{line:#}");
        }
    }
    let stored: Value = serde_json::from_str(&place.result_text("run.json")).unwrap();
    assert_eq!(stored, record);
}

#[test]
fn the_events_alone_tell_the_same_and_the_report_says_that_times_are_simulated() {
    let place = Place::new();
    let record = quick(&place).record();
    let folder = place.results();
    let shown = place.run(["report".as_ref(), folder.as_os_str()]);
    assert!(
        shown.stdout.contains("SIMULATED server") && shown.stdout.contains(" at speed 50 "),
        "{}",
        shown.stdout
    );
    assert!(shown.stdout.contains("4K context"), "{}", shown.stdout);

    std::fs::remove_file(folder.join("run.json")).unwrap();
    let reported = place.run(["report".as_ref(), folder.as_os_str(), "--json".as_ref()]);
    assert_eq!(reported.record(), record);
}

#[test]
fn the_picture_stands_beside_the_record() {
    let place = Place::new();
    quick(&place);
    let picture = place.result_text("slowdown.svg");
    assert!(picture.starts_with("<svg") && picture.contains("4K context"));
    let folder = place.results();
    let folder = folder.to_str().unwrap();
    let again = place.run(["report", folder, "--format", "svg"]);
    assert_eq!(again.stdout.trim_end(), picture.trim_end());
}

#[test]
fn times_are_in_the_servers_own_seconds_whatever_the_speed() {
    let turn = |speed: &str| {
        let place = Place::new();
        place.profile("even", crate::fit::place::EVEN);
        let args = [
            "fit",
            "--server",
            "even",
            "--contexts",
            "4k",
            "--sessions",
            "1",
            "--rounds",
            "1",
            "--checks",
            "2",
            "--answer-tokens",
            "64",
            "--no-side",
            "--json",
            "--speed",
            speed,
        ];
        let record = place.run(args).record();
        cell(&record, 4096, 1)["turn_s"].as_f64().unwrap()
    };
    let (real, quick) = (turn("1"), turn("4"));
    // 64 tokens of 10 ms; the slack is the machine's.
    assert!((0.63..0.9).contains(&real), "{real}");
    assert!((0.63..1.2).contains(&quick), "{quick}");
}
