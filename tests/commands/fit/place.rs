//! A folder to run `flashrig fit` in.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A small and quick experiment: what it comes to does not matter.
pub const QUICK: [&str; 12] = [
    "--contexts",
    "4k",
    "--checks",
    "2",
    "--answer-tokens",
    "16",
    "--sessions",
    "1..2",
    "--rounds",
    "2",
    "--seed",
    "7",
];

pub struct Place(TempDir);

/// What a run came to.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn record(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}\n{}", self.stdout, self.stderr))
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Place {
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flashrig"));
        command
            .args(args)
            .current_dir(self.path())
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
        self.command(args).output().unwrap().into()
    }

    pub fn start(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Child {
        self.command(args).spawn().unwrap()
    }

    /// A server profile of this place.
    pub fn profile(&self, name: &str, sim: &str) {
        let folder = self.path().join("harness/servers");
        fs::create_dir_all(&folder).unwrap();
        let text = format!(
            "schema = \"flashrig.server/1\"\nkind = \"simulated\"\ntitle = \"{name}\"\n\
             model = \"m\"\ncontext = 65536\n\n[sim]\n{sim}"
        );
        fs::write(folder.join(format!("{name}.toml")), text).unwrap();
    }

    /// The only results folder.
    pub fn results(&self) -> PathBuf {
        let mut all: Vec<PathBuf> = fs::read_dir(self.path().join("results"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    pub fn result_text(&self, file: &str) -> String {
        fs::read_to_string(self.results().join(file)).unwrap()
    }

    /// The events so far; a last line that is being written is left out.
    pub fn events(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.results().join("events.jsonl")).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }
}

/// The judged combination.
pub fn cell(record: &Value, context: u64, sessions: u64) -> &Value {
    record["cells"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["context_tokens"] == context && c["sessions"] == sessions)
        .unwrap_or_else(|| panic!("no {sessions} x {context} in {record:#}"))
}

/// A profile whose times are all short and even: reading is free, a token takes 10 ms.
pub const EVEN: &str = "max_concurrent = 8\nprefill_s_per_token = 1e-5\nprefill_s_per_token_squared = 0.0\n\
     prefill_chunk_tokens = 4096\nrequest_overhead_ms = 1.0\n\
     decode = [{ batch = 1, step_ms = 10.0 }]\ncache_tokens = 1000000\ncache_block_tokens = 64\n";
