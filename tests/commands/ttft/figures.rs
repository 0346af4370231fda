//! What is measured and stored.

use std::path::Path;

use flashrig_sim::Faults;
use serde_json::Value;

use crate::ttft::{flashrig, sim, ttft};

#[test]
fn each_number_of_requests_at_once_has_its_line_with_times_and_tokens() {
    let ran = ttft(&[
        "--speed", "200", "--agents", "1,3", "--rounds", "2", "--json",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let run = ran.json();
    assert_eq!(
        (run["command"].as_str(), run["state"].as_str()),
        (Some("ttft"), Some("finished"))
    );
    let rows = run["ttft"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for (row, agents) in rows.iter().zip([1, 3]) {
        assert_eq!(
            (&row["agents"], &row["rounds"]),
            (&agents.into(), &2.into())
        );
        assert_eq!(
            (&row["asked"], &row["answered"]),
            (&(2 * agents).into(), &(2 * agents).into())
        );
        let ttft = |name: &str| row["ttft_s"][name].as_f64().unwrap();
        assert!(
            ttft("best") <= ttft("median") && ttft("median") <= ttft("worst"),
            "{row}"
        );
        assert!(
            ttft("best") > 0.6,
            "2,048 tokens take 0.63 s of the server's time: {row}"
        );
        let input = row["input_tokens"].as_u64().unwrap();
        assert!(input.abs_diff(2048 * 2 * agents) <= 2 * 2 * agents, "{row}");
        assert_eq!(
            row["cached_tokens"], 0,
            "no prompt shares its beginning: {row}"
        );
        assert_eq!(
            row["output_tokens"].as_u64(),
            Some(64 * 2 * agents),
            "{row}"
        );
        assert!(row["tokens_per_s"].as_f64().unwrap() > 0.0);
    }
    assert!(
        run["verdict"]["answer"]
            .as_str()
            .unwrap()
            .contains("3 at once")
    );
}

#[test]
fn the_record_follows_the_schema_and_the_report_can_be_made_again() {
    let ran = ttft(&["--speed", "200", "--agents", "1,2"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let folder = ran.folder();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    for (file, of) in [
        ("run.json", "run"),
        ("events.jsonl", "event"),
        ("requests.jsonl", "request"),
    ] {
        let schema: Value = serde_json::from_str(&flashrig(&["schema", of]).out).unwrap();
        let schema = jsonschema::validator_for(&schema).unwrap();
        let text = read(&folder.join(file));
        let values: Vec<Value> = if file == "run.json" {
            vec![serde_json::from_str(&text).unwrap()]
        } else {
            text.lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect()
        };
        assert!(!values.is_empty());
        for value in values {
            let errors: Vec<String> = schema.iter_errors(&value).map(|e| e.to_string()).collect();
            assert!(errors.is_empty(), "{file}: {errors:#?}");
        }
    }
    assert_eq!(read(&folder.join("requests.jsonl")).lines().count(), 3);
    let again = flashrig(&["report", folder.to_str().unwrap()]);
    let shown = ran.out.trim().rsplit_once("Results:").unwrap().0;
    assert!(
        !shown.is_empty() && again.out.starts_with(shown),
        "{}\n{}",
        again.out,
        ran.out
    );

    std::fs::remove_file(folder.join("run.json")).unwrap();
    let from_events = flashrig(&["report", folder.to_str().unwrap()]);
    assert_eq!(from_events.out, again.out, "folded from the events");
}

#[test]
fn a_long_prompt_among_short_ones_is_told_apart() {
    let ran = ttft(&[
        "--speed", "200", "--agents", "1,3", "--long", "16k", "--json",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let run = ran.json();
    assert_eq!(
        run["ttft"][0]["long_ttft_s"],
        Value::Null,
        "alone there is only a short one"
    );
    let row = &run["ttft"][1];
    let long = row["long_ttft_s"].as_f64().unwrap();
    assert!(long > 5.0, "16K tokens take 5.2 s: {row}");
    assert_eq!(
        row["ttft_s"]["n"], 2,
        "the long one is not among the others: {row}"
    );
}

#[test]
fn prompts_that_begin_alike_are_found_in_the_cache_by_those_that_come_later() {
    let cached = |extra: &[&str]| {
        // Twice as many as there are slots: half of them come when others are over.
        let args = ["--speed", "200", "--agents", "8", "--json"];
        let run = ttft(&[&args, extra].concat()).json();
        run["ttft"][0]["cached_tokens"].as_u64().unwrap()
    };
    assert_eq!(cached(&[]), 0);
    assert!(cached(&["--shared-prefix"]) > 1500);
}

#[test]
fn a_server_that_does_not_take_the_length_fields_is_measured_and_the_reader_told() {
    let server = sim(
        1000.0,
        Faults {
            refused_shapes: vec![flashrig_sim::RefusedShape::FixedLength],
            ..Faults::default()
        },
    );
    let ran = ttft(&["--server", &server.base_url(), "--agents", "1", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let run = ran.json();
    assert_eq!(run["calibration"]["fixed_output"], false);
    let warnings = run["verdict"]["warnings"].to_string();
    assert!(
        warnings.contains("answers are as long as the model made them"),
        "{warnings}"
    );
}
