//! What is measured, and in which order.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::sweep::setting::{QUICK, begun, stage, sweep};

const TWO: [&str; 6] = [
    "--server",
    "even",
    "--set",
    "max_concurrent=1,2",
    "--set",
    "cache_tokens=5000,6000,7000",
];

fn combinations(record: &Value) -> Vec<String> {
    let rows = record["rows"].as_array().unwrap();
    let join = |row: &Value| {
        let settings = row["settings"].as_array().unwrap().iter();
        let settings: Vec<&str> = settings.map(|s| s.as_str().unwrap()).collect();
        settings.join(" ")
    };
    rows.iter().map(join).collect()
}

#[test]
fn a_grid_measures_every_combination_once_a_round_with_a_server_of_its_own() {
    let stage = stage();
    let ran = sweep(&stage, &[&TWO[..], &["--rounds", "2"]].concat(), &QUICK);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let record = ran.record();
    assert_eq!(record["state"], "finished");
    assert_eq!(
        combinations(&record),
        [
            "max_concurrent=1 cache_tokens=5000",
            "max_concurrent=1 cache_tokens=6000",
            "max_concurrent=1 cache_tokens=7000",
            "max_concurrent=2 cache_tokens=5000",
            "max_concurrent=2 cache_tokens=6000",
            "max_concurrent=2 cache_tokens=7000",
        ]
    );
    let units = record["units"].as_array().unwrap();
    assert_eq!(units.len(), 12);
    // Every server was another one: it listened elsewhere, with its own settings.
    let mut names = BTreeSet::new();
    for unit in units {
        let path = stage.results().join(unit["run"].as_str().unwrap());
        let text = std::fs::read_to_string(path.join("run.json")).unwrap();
        let run: Value = serde_json::from_str(&text).unwrap();
        let settings = run["server"]["settings"].as_array().unwrap();
        let combination = unit["combination"].as_u64().unwrap() as usize - 1;
        assert_eq!(
            settings,
            record["rows"][combination]["settings"].as_array().unwrap()
        );
        names.insert(run["server"]["name"].as_str().unwrap().to_owned());
        assert_eq!(unit["server"]["name"], run["server"]["name"]);
    }
    assert_eq!(names.len(), 6);
    let begun = begun(&stage);
    assert!(begun[..6].iter().all(|(round, _)| *round == 1), "{begun:?}");
    assert!(begun[6..].iter().all(|(round, _)| *round == 2), "{begun:?}");
    assert_eq!(begun.iter().collect::<BTreeSet<_>>().len(), 12);
    // How much there is to do is told before, and how long it takes after the first one.
    assert!(
        ran.stderr
            .contains("6 combinations × 2 rounds: 12 runs of ttft"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains(" left\n2 of 12, round 1: "),
        "{}",
        ran.stderr
    );
}

#[test]
fn one_at_a_time_changes_one_setting_of_the_first_combination() {
    let stage = stage();
    let options = [&TWO[..], &["--one-at-a-time", "--rounds", "1"]].concat();
    let ran = sweep(&stage, &options, &QUICK);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(
        combinations(&ran.record()),
        [
            "max_concurrent=1 cache_tokens=5000",
            "max_concurrent=2 cache_tokens=5000",
            "max_concurrent=1 cache_tokens=6000",
            "max_concurrent=1 cache_tokens=7000",
        ]
    );
}

#[test]
fn the_seed_decides_the_order_and_no_two_rounds_need_to_have_the_same() {
    let order = |seed: &str| {
        let stage = stage();
        let options = [
            "--server",
            "even",
            "--set",
            "max_concurrent=1,2,3,4",
            "--rounds",
            "2",
            "--seed",
            seed,
        ];
        let ran = sweep(&stage, &options, &QUICK);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let combinations = begun(&stage)
            .into_iter()
            .map(|(_, combination)| combination);
        combinations.collect::<Vec<_>>()
    };
    let first = order("3");
    assert_eq!(first, order("3"));
    assert_ne!(first, order("4"));
    assert_ne!(first[..4], first[4..]);
}
