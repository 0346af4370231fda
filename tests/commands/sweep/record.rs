//! The stored record of a sweep.

use serde_json::{Value, json};

use crate::sweep::setting::{QUICK, events, stage, sweep};

const OPTIONS: [&str; 6] = [
    "--server",
    "even",
    "--set",
    "max_concurrent=1,2",
    "--rounds",
    "2",
];

#[test]
fn the_record_is_stored_has_its_schema_and_is_what_the_report_shows() {
    let stage = stage();
    let ran = sweep(&stage, &OPTIONS, &QUICK);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let record = ran.record();
    let stored: Value = serde_json::from_str(&stage.result_text("run.json")).unwrap();
    assert_eq!(stored, record);
    assert_eq!(record["schema"], "flashrig.sweep/1");
    assert!(record["id"].as_str().unwrap().ends_with("-sweep-ttft"));
    let schema = stage.run(&["schema", "sweep"]).record();
    let valid = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = valid.iter_errors(&record).map(|e| e.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
    let schema = stage.run(&["schema", "event"]).record();
    let valid = jsonschema::validator_for(&schema).unwrap();
    for event in events(&stage) {
        assert!(valid.is_valid(&event), "{event:#}");
    }
    let folder = stage.results().display().to_string();
    let again = stage.run(&["report", "--json", &folder]).record();
    assert_eq!(again, record);
    // The folder alone tells all when the record is gone.
    std::fs::remove_file(stage.results().join("run.json")).unwrap();
    let folded = stage.run(&["report", "--json", &folder]).record();
    assert_eq!(folded, record);
}

#[test]
fn units_keep_their_own_results_and_what_they_printed() {
    let stage = stage();
    let ran = sweep(&stage, &OPTIONS, &QUICK);
    let record = ran.record();
    for unit in record["units"].as_array().unwrap() {
        let run = stage.results().join(unit["run"].as_str().unwrap());
        let report = stage.run(&["report", &run.display().to_string()]);
        assert_eq!(report.code, Some(0), "{}", report.stderr);
        assert!(report.stdout.contains("\nttft · "), "{}", report.stdout);
        let of_unit = stage.results().join(unit["folder"].as_str().unwrap());
        let of_unit = stage.run(&["report", &of_unit.display().to_string()]);
        assert_eq!((of_unit.code, of_unit.stdout), (Some(0), report.stdout));
        let printed = stage.results().join(unit["folder"].as_str().unwrap());
        let printed = std::fs::read_to_string(printed.join("stderr.txt")).unwrap();
        assert!(
            printed.contains("1 at once: first tokens within"),
            "{printed}"
        );
        assert_eq!(unit["exit_code"], 0);
        assert_eq!(unit["server"]["simulated"], true);
    }
    // Its progress is seen, indented.
    assert!(
        ran.stderr.contains("\n    1 at once: first tokens within"),
        "{}",
        ran.stderr
    );
    assert_eq!(record["spec"]["added"], json!(["--rounds", "1"]));
}

#[test]
fn the_report_names_the_best_and_no_table_is_wider_than_100_columns() {
    let stage = stage();
    let options = [&OPTIONS[..], &["--set", "cache_tokens=1000000"]].concat();
    let json = sweep(&stage, &options, &QUICK).record();
    let folder = stage.results().display().to_string();
    let text = stage.run(&["report", "--wide", &folder]).stdout;
    for message in [
        "4 of 4 measured · ",
        "\nsweep · SIMULATED server even 0.1.0 at speed 100 · 2 combinations · 2 rounds\n",
        "model m · context 65,536 · always cache_tokens=1000000",
        "measuring: ttft --agents 1 --prompt 512 --answer-tokens 4 --speed 100 --rounds 1",
        "\n1 request\n",
        "\n  max_concurrent ",
        "  of first ",
        "\n  1 ",
        "\nThe server\n",
        "\n  max_concurrent  proven by the log\n",
        "\n  cache_tokens    not proven: the server says nothing of it",
    ] {
        assert!(text.contains(message), "no {message:?} in {text}");
    }
    let answer = json["verdict"]["answer"][0].as_str().unwrap();
    assert!(text.contains(answer.trim_end_matches('.')), "{text}");
    for line in stage.run(&["report", &folder]).stdout.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn fit_does_not_take_up_a_sweep_nor_a_sweep_a_fit() {
    let stage = stage();
    sweep(&stage, &OPTIONS, &QUICK);
    let folder = stage.results();
    let ran = stage.run(&["fit", "--resume", &folder.display().to_string()]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("is a run of sweep, not of fit"),
        "{}",
        ran.stderr
    );
    let ran = stage.run(&["sweep", "--resume", &folder.display().to_string()]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("is finished"), "{}", ran.stderr);
    let record: Value = serde_json::from_str(&stage.result_text("run.json")).unwrap();
    let unit = folder.join(record["units"][0]["run"].as_str().unwrap());
    let ran = stage.run(&["sweep", "--resume", &unit.display().to_string()]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("is not a sweep"), "{}", ran.stderr);
}
