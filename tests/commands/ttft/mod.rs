//! `flashrig ttft` as people run it, against simulated servers, faulty ones, and things that are no
//! LLM servers at all.
mod figures;
mod server_life;
mod trouble;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use flashrig_sim::{Faults, Sim, SimConfig, SimHandle, SimProfile, SimTable};
use flashrig_testkit::waiting::wait_for;
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

/// What a run of the command gave.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
    results: PathBuf,
    _folder: TempDir,
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{self:#?}"))
    }

    /// The one results folder.
    fn folder(&self) -> PathBuf {
        let mut entries = std::fs::read_dir(&self.results).unwrap();
        entries.next().unwrap().unwrap().path()
    }
}

/// Runs `flashrig` in a folder of its own with nothing of the environment that tests run in.
fn flashrig(args: &[&str]) -> Ran {
    let folder = TempDir::new().unwrap();
    let results = folder.path().join("results");
    let output = Command::new(env!("CARGO_BIN_EXE_flashrig"))
        .args(args)
        .env_clear()
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        results,
        _folder: folder,
    }
}

fn ttft(args: &[&str]) -> Ran {
    flashrig(&[&["ttft"], args].concat())
}

/// A simulated server with faults; at speed 1000 it answers at once.
fn sim(speed: f64, faults: Faults) -> SimHandle {
    let profile: toml::Table =
        toml::from_str(include_str!("../../../harness/servers/sim.toml")).unwrap();
    let table: SimTable = profile["sim"].clone().try_into().unwrap();
    Sim::start(SimConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        profile: SimProfile::new("sim", "m", 131_072, &table).unwrap(),
        speed,
        scripts: Vec::new(),
        seed: 7,
        log: None,
        server_log: None,
        faults,
    })
    .unwrap()
}

/// Answers every request with the same bytes; what comes after a first `from` requests is `later`.
fn saying(first: &str, from: usize, later: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (first, later) = (first.to_owned(), later.to_owned());
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let answer = if number < from { &first } else { &later };
            let mut seen = Vec::new();
            let mut bytes = [0; 4096];
            // Requests are short: a head, and a body that ends with a brace.
            while !(seen.ends_with(b"}") || seen.starts_with(b"GET") && seen.ends_with(b"\r\n\r\n"))
            {
                match stream.read(&mut bytes) {
                    Ok(0) | Err(_) => break,
                    Ok(n) => seen.extend_from_slice(&bytes[..n]),
                }
            }
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

fn http(status: &str, content_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// Requests by which the rig finds out how the server counts, and warms it up.
const CALIBRATION: u64 = 3;

/// Starts the command, waits until its events tell of `what`, lets `then` happen, and waits for its
/// end: exit code, and the record.
fn while_running(args: &[&str], what: &str, then: impl FnOnce(Pid)) -> (Option<i32>, Value) {
    let folder = TempDir::new().unwrap();
    while_running_in(folder.path(), args, what, |pid, _| then(pid))
}

/// The same in a folder; `then` is told the record so far, too.
fn while_running_in(
    folder: &std::path::Path,
    args: &[&str],
    what: &str,
    then: impl FnOnce(Pid, &Value),
) -> (Option<i32>, Value) {
    let child = Command::new(env!("CARGO_BIN_EXE_flashrig"))
        .arg("ttft")
        .args(args)
        .env_clear()
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    let results = folder.join("results");
    let run = || {
        std::fs::read_dir(&results)
            .ok()?
            .next()?
            .ok()
            .map(|entry| entry.path())
    };
    let is_reported = || {
        let events = std::fs::read_to_string(run()?.join("events.jsonl")).ok()?;
        events.contains(what).then_some(())
    };
    wait_for(&format!("the events report {what}"), is_reported);
    let record = || {
        let text = std::fs::read_to_string(run().unwrap().join("run.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    then(pid, &record());
    let code = child.wait_with_output().unwrap().status.code();
    (code, record())
}
