//! Watching a server that runs already: `--server-log`, its metrics, and both sides' words. The
//! servers are `flashrig sim` as people start it, some behind a proxy that changes what they say.

mod log;
mod proxy;
mod sources;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use flashrig_testkit::waiting::wait_until;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::serving::Serving;

/// A server with its log, and a folder to run `flashrig` in.
struct Place {
    folder: TempDir,
    sim: Serving,
}

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn record(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{}{}", self.out, self.err))
    }

    /// What was seen of the server, in the order of the combinations.
    fn watched(&self) -> Vec<Value> {
        let record = self.record();
        let measured = record["measured"].as_array().unwrap();
        measured.iter().map(|m| m["watched"].clone()).collect()
    }
}

impl Place {
    fn new(more: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let log = folder.path().join("sim.log");
        let mut args = vec!["sim", "--listen", "127.0.0.1:0", "--server-log"];
        args.push(log.to_str().unwrap());
        let sim = Serving::start(args.iter().chain(more));
        Self { folder, sim }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("sim.log")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flashrig"));
        command
            .args(args)
            .env_clear()
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        let output = self.command(args).output().unwrap();
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Starts a run and waits until its events tell of `what`.
    fn begin(&self, args: &[&str], what: &str) -> Child {
        let child = self.command(args).spawn().unwrap();
        wait_until(what, || {
            let events = self.results().map(|folder| folder.join("events.jsonl"));
            let reported = events.and_then(|file| fs::read_to_string(file).ok());
            reported.is_some_and(|reported| reported.contains(what))
        });
        child
    }

    /// The one results folder.
    fn results(&self) -> Option<PathBuf> {
        let mut entries = fs::read_dir(self.folder.path().join("results")).ok()?;
        Some(entries.next()?.ok()?.path())
    }

    fn result_text(&self, name: &str) -> String {
        let path: &Path = &self.results().unwrap().join(name);
        fs::read_to_string(path).unwrap()
    }
}
