//! A change whose effect is known is found, with its size; and what failed is a row.

use serde_json::{Value, json};

use crate::pair::stage::GOOD;
use crate::sweep::setting::{EVEN, QUICK, figure, profile, stage, sweep};

fn near(value: &Value, wanted: f64, tolerance: f64) {
    let value = value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"));
    assert!(
        (value / wanted - 1.0).abs() <= tolerance,
        "{value} is not within {tolerance} of {wanted}"
    );
}

/// Reading a prompt twice as slowly doubles first-token times, and nothing else changes them: the
/// prompt of 4,096 tokens takes 4.1 s and 8.2 s of the server's time.
#[test]
fn a_first_token_that_takes_twice_as_long_is_found_to() {
    let stage = stage();
    let options = [
        "--server",
        "even",
        "--set",
        "prefill_s_per_token=2e-3,1e-3",
        "--rounds",
        "3",
    ];
    let command = [
        "ttft",
        "--agents",
        "1",
        "--prompt",
        "4k",
        "--answer-tokens",
        "4",
        "--speed",
        "10",
    ];
    let ran = sweep(&stage, &options, &command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let record = ran.record();
    let slow = figure(&record, 1, "ttft_median_s", json!(1));
    near(&slow["value"], 8.19, 0.05);
    assert_eq!(slow["of_first"]["ci95"], Value::Null);
    let fast = figure(&record, 2, "ttft_median_s", json!(1));
    near(&fast["of_first"]["value"], 0.5, 0.05);
    assert_eq!(fast["of_first"]["n"], 3);
    near(&fast["of_first"]["ci95"][0], 0.5, 0.15);
    near(&fast["of_first"]["ci95"][1], 0.5, 0.15);
    assert_eq!(record["verdict"]["best"], 2);
    let answer = record["verdict"]["answer"][0].as_str().unwrap();
    assert!(
        answer.starts_with("prefill_s_per_token=1e-3 is ")
            && answer.contains("times as fast as prefill_s_per_token=2e-3"),
        "{answer}"
    );
}

/// Two sessions beside a cache of 6 GB find no room in 18 GB (2 GB each and a working set of 4 GB,
/// beside weights of 4 GB), and with 1 GB they do.
#[test]
fn a_combination_that_refuses_is_a_row_and_the_one_that_serves_is_the_best() {
    let stage = stage();
    let memory = "memory = \"18GB\"\nweights = \"4GB\"\nkv_bytes_per_token = 500000\nkv_bits = 16\n\
                  working_bytes_per_token = 1000000\nmemory_margin = \"0.5GB\"\n";
    let even = EVEN.replace("cache_tokens = 1000000\n", "cache_ram = \"6GB\"\n");
    profile(&stage, "small", &format!("{even}{memory}"));
    let options = [
        "--server",
        "small",
        "--set",
        "cache_ram=6GB,1GB",
        "--rounds",
        "1",
    ];
    let command = [
        "fit",
        "--contexts",
        "4k",
        "--sessions",
        "1..2",
        "--checks",
        "2",
        "--answer-tokens",
        "16",
        "--speed",
        "20",
        "--no-side",
        "--recall",
        "off",
    ];
    let ran = sweep(&stage, &options, &command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let record = ran.record();
    let fits = |combination| {
        let figures = record["rows"][combination]["figures"].as_array().unwrap();
        let fits = figures.iter().find(|f| f["kind"] == "fits").unwrap();
        fits["value"].clone()
    };
    assert_eq!((fits(0), fits(1)), (json!(1.0), json!(2.0)));
    let faults = record["rows"][0]["faults"].to_string();
    assert!(faults.contains("2 × 4K: refused: "), "{faults}");
    let verdict = &record["verdict"];
    assert_eq!(verdict["best"], 2);
    assert_eq!(verdict["by"]["sessions"], 2);
    let answer = verdict["answer"][0].as_str().unwrap();
    assert!(
        answer.starts_with("cache_ram=1GB is the only one"),
        "{answer}"
    );
    assert!(record["rows"][0]["peak_memory_bytes"].as_u64() > Some(4_000_000_000));
    assert_eq!(record["rows"][0]["peak_memory_by"], "server");
}

#[test]
fn a_combination_that_fails_is_kept_with_the_words_of_its_command() {
    let stage = stage();
    let options = [
        "--server",
        "even",
        "--set",
        "context=65536,256",
        "--rounds",
        "2",
    ];
    let ran = sweep(&stage, &options, &QUICK);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let record = ran.record();
    let row = &record["rows"][1];
    assert_eq!((&row["measured"], &row["failed"]), (&json!(0), &json!(2)));
    let units = record["units"].as_array().unwrap();
    let failed: Vec<&Value> = units.iter().filter(|u| u["combination"] == 2).collect();
    assert_eq!(failed.len(), 2);
    for unit in failed {
        assert_eq!(
            (&unit["outcome"], &unit["exit_code"]),
            (&json!("failed"), &json!(2))
        );
        let message = unit["words"]["text"].as_str().unwrap();
        assert!(
            message.starts_with("--prompt 512 and an answer of 4 tokens are beyond"),
            "{message}"
        );
    }
    assert!(
        row["faults"][0]["text"]
            .as_str()
            .unwrap()
            .contains(": --prompt 512")
    );
    assert_eq!(record["verdict"]["best"], 1);
    let folder = stage.results().display().to_string();
    let report = stage.run(&["report", &folder]).stdout;
    assert!(
        report.contains("context=256: rounds 1 and 2: --prompt 512"),
        "{report}"
    );
    assert!(report.contains("0 of 2, 2 failed"), "{report}");
}

#[test]
fn a_sweep_of_which_nothing_could_be_measured_exits_with_3() {
    let stage = stage();
    let options = [
        "--server",
        "even",
        "--set",
        "context=128,256",
        "--rounds",
        "1",
    ];
    let ran = sweep(&stage, &options, &QUICK);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let record = ran.record();
    assert_eq!(record["state"], "finished");
    assert_eq!(record["verdict"]["answer"][0], "Nothing could be measured.");
}

#[test]
fn a_pair_whose_tasks_are_not_done_is_never_the_best() {
    let stage = crate::pair::stage::Stage::with(&GOOD);
    let options = ["--set", "max_concurrent=1,2", "--rounds", "1"];
    let pair = [
        "pair",
        "--task",
        "tiny",
        "--agent",
        "mine",
        "--speed",
        "50",
        "--foreign-load",
        "accept",
    ];
    let ran = sweep(&stage, &options, &pair);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let record = ran.record();
    for combination in [1, 2] {
        let done = figure(&record, combination, "done_share", Value::Null);
        assert_eq!(done["value"], 1.0);
        let together = figure(&record, combination, "together_s", Value::Null);
        assert!(together["value"].as_f64() > Some(0.0));
    }

    let stage = crate::pair::stage::Stage::with(&["ask", "result"]);
    let ran = sweep(&stage, &options, &pair);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let record = ran.record();
    assert_eq!(record["verdict"]["best"], Value::Null);
    assert_eq!(figure(&record, 1, "done_share", Value::Null)["value"], 0.0);
    let faults = record["rows"][0]["faults"].to_string();
    assert!(
        faults.contains("round 1: 0 of 2 sessions are done"),
        "{faults}"
    );
}
