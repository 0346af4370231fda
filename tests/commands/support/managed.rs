//! A real server process that flashrig starts: its own simulated server, by a profile.

use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// A profile that starts the simulated server `sim` at `speed`, whose log goes to flashrig. `start`
/// is more of `[start]`, and `more` follows.
pub fn profile(program: &Path, sim: &str, speed: f64, start: &str, more: &str) -> String {
    format!(
        "schema = \"flashrig.server/1\"\nkind = \"managed\"\ntitle = \"a real process\"\n\n\
         [start]\nprogram = {program:?}\nargs = [\"sim\", [\"--listen\", \"{{host}}:{{port}}\"], \
         [\"--profile\", \"{sim}\"], [\"--speed\", \"{speed}\"], [\"--server-log\", \
         \"/dev/stdout\"], [\"--log\", \"{{log}}\"]]\n{start}\n\n\
         [variables.log]\nabout = \"where it tells what it does\"\ndefault = \"{{project}}/sim.jsonl\"\n\
         {more}"
    )
}

/// Kills the server whose process id the record has, as nothing can refuse.
pub fn kill_server(record: &Value) {
    let pid = record["server"]["managed"]["pid"].as_i64().unwrap();
    let pid = Pid::from_raw(i32::try_from(pid).unwrap());
    kill(pid, Signal::SIGKILL).unwrap();
}

/// What became of the server, in order.
pub fn life(record: &Value) -> Vec<String> {
    let life = record["server"]["life"].as_array().unwrap();
    let what = |l: &Value| l["what"].as_str().unwrap().to_owned();
    life.iter().map(what).collect()
}
