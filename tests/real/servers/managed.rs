//! The real llama.cpp as flashrig starts it itself: its settings proven, swept over, and killed.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use flashrig_testkit::waiting::wait_for;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::servers::stage::{
    agent, cache, flashrig, installed, one_at_a_time, run_in, short_claude,
};

fn pid(value: &Value) -> Pid {
    let number = value.as_i64().unwrap_or_else(|| panic!("{value}"));
    Pid::from_raw(i32::try_from(number).unwrap())
}

/// Whether a process of this number is there.
fn is_there(pid: Pid) -> bool {
    kill(pid, None).is_ok()
}

#[test]
fn a_sweep_over_slots_starts_a_server_for_each_and_proves_what_was_set() {
    let _turn = one_at_a_time();
    installed("llama-server");
    let args = [
        "sweep",
        "--server=llama-server",
        "--set=parallel=1,4",
        "--set=threads=1",
        "--rounds=1",
        "--json",
        "--",
        "ttft",
        "--agents=4",
        "--prompt=256",
    ];
    let ran = flashrig(&args);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let record = ran.json();
    let rows = record["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for (row, slots) in rows.iter().zip(["1", "4"]) {
        assert_eq!(row["settings"][0], format!("parallel={slots}"));
        for proof in row["proofs"].as_array().unwrap() {
            assert_eq!(proof["proven"], "proven", "{row:#}");
        }
        assert!(
            row["peak_memory_bytes"].as_u64() > Some(50_000_000),
            "{row:#}"
        );
    }
    let units = record["units"].as_array().unwrap();
    let pids: Vec<Pid> = units
        .iter()
        .map(|unit| server_of(&ran.folder, unit))
        .collect();
    assert_ne!(pids[0], pids[1]);
    assert!(!pids.into_iter().any(is_there));
}

/// The process that served a unit of a sweep.
fn server_of(folder: &TempDir, unit: &Value) -> Pid {
    let sweep = run_in(folder.path()).unwrap();
    let file = sweep.join(unit["run"].as_str().unwrap()).join("run.json");
    let run: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    pid(&run["server"]["managed"]["pid"])
}

#[test]
fn a_sweep_that_was_killed_leaves_no_server_and_goes_on_where_it_was() {
    let _turn = one_at_a_time();
    installed("llama-server");
    let folder = TempDir::new().unwrap();
    let args = [
        "sweep",
        "--server=llama-server",
        "--set=batch=512,256",
        "--set=threads=1",
        "--rounds=1",
        "--seed=5",
        "--",
        "ttft",
        "--agents=1",
        "--prompt=1k",
    ];
    let mut child = start(&folder, &args);
    let record = || {
        let text = fs::read_to_string(run_in(folder.path())?.join("run.json")).ok()?;
        serde_json::from_str::<Value>(&text).ok()
    };
    let second_is_measured = || {
        let record = record()?;
        let units = record["units"].as_array()?.len();
        (units == 1 && !record["open"].is_null()).then_some(record)
    };
    let before = wait_for("the second unit has begun", second_is_measured);
    child.kill().unwrap();
    child.wait().unwrap();
    let sweep = run_in(folder.path()).unwrap();
    wait_for("no server is left", || {
        servers_below(&sweep).is_empty().then_some(())
    });

    let output = command(
        &folder,
        &["sweep", "--resume", sweep.to_str().unwrap(), "--json"],
    )
    .output()
    .unwrap();
    assert!(output.status.success(), "{output:?}");
    let after: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(after["resumed"], 1);
    assert_eq!(after["units"].as_array().unwrap().len(), 2, "{after:#}");
    assert_eq!(
        after["units"][0], before["units"][0],
        "what was measured stays"
    );
    for row in after["rows"].as_array().unwrap() {
        assert_eq!(row["proofs"][0]["proven"], "proven", "{row:#}");
    }
}

/// Processes of servers that the runs below a folder tell of, those that are there.
fn servers_below(folder: &Path) -> Vec<Pid> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(servers_below(&path));
        } else if path.ends_with("run.json") {
            let run: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
            let reported = &run["server"]["managed"]["pid"];
            found.extend((!reported.is_null()).then(|| pid(reported)));
        }
    }
    found.retain(|pid| is_there(*pid));
    found
}

#[test]
fn a_server_killed_in_mid_arm_makes_its_round_invalid_and_the_next_one_runs() {
    let _turn = one_at_a_time();
    agent("claude");
    installed("llama-server");
    let folder = TempDir::new().unwrap();
    short_claude(folder.path());
    let args = [
        "pair",
        "--server=llama-server",
        "--set=threads=1",
        "--task=fix-bug@short",
        "--rounds=2",
        "--json",
    ];
    let mut child = start(&folder, &args);
    let record = || {
        let text = fs::read_to_string(run_in(folder.path())?.join("run.json")).ok()?;
        serde_json::from_str::<Value>(&text).ok()
    };
    let asks = || {
        let requests = run_in(folder.path())?.join("requests.jsonl");
        let lines = fs::read_to_string(requests).ok()?;
        (!lines.is_empty()).then(record)?
    };
    // Its first answer is there, and three more are to come.
    let begun = wait_for("the agent has been answered", asks);
    let first = pid(&begun["server"]["managed"]["pid"]);
    kill(first, Signal::SIGKILL).unwrap();
    let status = child.wait().unwrap();
    let record = record().unwrap();
    assert_eq!(status.code(), Some(1), "{record:#}");
    let rounds = record["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), 2, "{record:#}");
    assert_eq!(rounds[0]["valid"], false);
    let life = record["server"]["life"].as_array().unwrap();
    assert_eq!(life[0]["what"], "died", "{life:#?}");
    assert!(
        life[0]["words"]["text"]
            .as_str()
            .unwrap()
            .contains("SIGKILL"),
        "{life:#?}"
    );
    assert!(!life[0]["last_lines"].as_array().unwrap().is_empty());
    assert_eq!(life[1]["what"], "restarted", "{life:#?}");
    let reasons = record["verdict"]["reasons"].to_string();
    assert!(reasons.contains("SIGKILL"), "{reasons}");
    // The next round was measured on the server that was started again.
    let arms = rounds[1]["arms"].as_array().unwrap();
    assert_eq!(arms.len(), 2, "{record:#}");
    for arm in arms {
        assert_eq!(arm["sessions"][0]["status"], "agent_error", "{arm:#}");
        assert!(arm["sessions"][0]["requests"].as_u64() > Some(1), "{arm:#}");
    }
    assert!(!is_there(first));
    assert_eq!(servers_below(&run_in(folder.path()).unwrap()), []);
}

fn start(folder: &TempDir, args: &[&str]) -> Child {
    let mut command = command(folder, args);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn command(folder: &TempDir, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashrig"));
    command.env("FLASHRIG_FOREIGN_LOAD", "accept");
    command
        .args(args)
        .env("FLASHRIG_CACHE", cache())
        .current_dir(folder.path())
        .stdin(Stdio::null());
    command
}
