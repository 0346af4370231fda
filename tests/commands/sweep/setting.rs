//! What these tests have in common: a server whose times are known, and a look at a sweep.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::pair::stage::{Ran, Stage};

/// A server whose times are all short and even: reading is cheap, a token takes 10 ms.
pub const EVEN: &str = "max_concurrent = 8\nprefill_s_per_token = 1e-5\n\
     prefill_s_per_token_squared = 0.0\nprefill_chunk_tokens = 4096\nrequest_overhead_ms = 1.0\n\
     decode = [{ batch = 1, step_ms = 10.0 }]\ncache_tokens = 1000000\ncache_block_tokens = 64\n";

/// A quick measurement: what it comes to does not matter.
pub const QUICK: [&str; 9] = [
    "ttft",
    "--agents",
    "1",
    "--prompt",
    "512",
    "--answer-tokens",
    "4",
    "--speed",
    "100",
];

/// A stage with the server `even`.
pub fn stage() -> Stage {
    let stage = Stage::new();
    profile(&stage, "even", EVEN);
    stage
}

/// A profile of a simulated server.
pub fn profile(stage: &Stage, name: &str, sim: &str) {
    let text = format!(
        "schema = \"flashrig.server/1\"\nkind = \"simulated\"\ntitle = \"{name}\"\nmodel = \"m\"\n\
         context = 65536\n\n[sim]\n{sim}"
    );
    stage.write(&format!("harness/servers/{name}.toml"), &text);
}

/// Runs a sweep with its record on standard output; nothing may be left of it.
pub fn sweep(stage: &Stage, options: &[&str], command: &[&str]) -> Ran {
    let ran = stage.run(&[&["sweep", "--json"], options, &["--"], command].concat());
    stage.nothing_left();
    ran
}

/// The events of the only sweep; a last line that is being written is left out.
pub fn events(stage: &Stage) -> Vec<Value> {
    let text = stage.result_text("events.jsonl");
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Round and combination of each unit that began, in order.
pub fn begun(stage: &Stage) -> Vec<(u64, u64)> {
    events(stage)
        .iter()
        .filter(|event| event["what"]["event"] == "unit_started")
        .map(|event| round_and_combination(&event["what"]["unit"]))
        .collect()
}

pub fn round_and_combination(unit: &Value) -> (u64, u64) {
    let number = |field: &str| unit[field].as_u64().unwrap();
    (number("round"), number("combination"))
}

/// The folder of the run that a unit left.
pub fn run_folder(stage: &Stage, unit: &Value) -> PathBuf {
    let folder = stage.results().join(unit["folder"].as_str().unwrap());
    let mut entries = fs::read_dir(folder).unwrap().flatten().map(|e| e.path());
    entries.find(|path| path.is_dir()).unwrap()
}

/// A figure of a combination (from 1).
pub fn figure<'r>(record: &'r Value, combination: usize, kind: &str, sessions: Value) -> &'r Value {
    let figures = record["rows"][combination - 1]["figures"]
        .as_array()
        .unwrap();
    let is_it = |figure: &&Value| figure["kind"] == kind && figure["sessions"] == sessions;
    figures
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("no {kind} of {sessions} in {figures:#?}"))
}
