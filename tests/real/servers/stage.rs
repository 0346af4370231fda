//! Real servers for tests: installed as `flashrig servers install` does it, started on a free port,
//! ended with the test.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLockReadGuard, RwLockWriteGuard};

use flashrig_testkit::waiting::wait_until;
use serde_json::Value;
use tempfile::TempDir;

use crate::MACHINE;

static TURN: Mutex<()> = Mutex::new(());

/// One test at a time: two servers at once would only time each other's CPU.
pub fn one_at_a_time() -> (MutexGuard<'static, ()>, RwLockReadGuard<'static, ()>) {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    (turn, MACHINE.read().unwrap_or_else(PoisonError::into_inner))
}

/// The same, and no agents beside it: for what compares times.
pub fn alone() -> (MutexGuard<'static, ()>, RwLockWriteGuard<'static, ()>) {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    (
        turn,
        MACHINE.write().unwrap_or_else(PoisonError::into_inner),
    )
}

/// The environment of whoever runs the tests.
pub fn environment() -> BTreeMap<OsString, OsString> {
    std::env::vars_os().collect()
}

/// The cache that servers are installed into: that of whoever runs the tests, so that hundreds of
/// megabytes are fetched once and not for every run.
pub fn cache() -> PathBuf {
    flashrig::agent::cache_folder(&environment())
}

/// The folder of a server, installed by the command unless it is there.
pub fn installed(name: &str) -> PathBuf {
    let reported: Value = serde_json::from_slice(&install("servers", name)).unwrap();
    PathBuf::from(reported[0]["folder"].as_str().unwrap())
}

/// Installs the pinned version of an agent, unless it is there.
pub fn agent(name: &str) {
    install("agents", name);
}

fn install(kind: &str, name: &str) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_flashrig"))
        .env("FLASHRIG_FOREIGN_LOAD", "accept")
        .args([kind, "install", name, "--json"])
        .env("FLASHRIG_CACHE", cache())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// A running server. It is killed when dropped.
pub struct Real {
    child: Child,
    /// Host and port.
    pub addr: String,
    folder: TempDir,
}

impl Real {
    /// Starts a program with these arguments and a port, and waits until it says that it is well.
    pub fn start(program: &Path, args: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let port = {
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap().port()
        };
        let log = File::create(folder.path().join("log")).unwrap();
        let child = Command::new(program)
            .args(args)
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut server = Self {
            child,
            addr: format!("127.0.0.1:{port}"),
            folder,
        };
        wait_until("it is ready", || {
            let ended = server.child.try_wait().unwrap();
            assert_eq!(ended, None, "{}", server.log());
            server.is_well()
        });
        server
    }

    fn is_well(&self) -> bool {
        std::net::TcpStream::connect(&self.addr).is_ok() && self.get("/health").0 == 200
    }

    /// llama.cpp's server with the small model.
    pub fn llama(args: &[&str]) -> Self {
        let folder = installed("llama-server");
        let model = folder.join("model.gguf");
        let usual = ["-m", model.to_str().unwrap(), "-a", "tiny", "-lv", "4"];
        let always = ["--metrics", "--slots"];
        let program = folder.join("bin/llama-server");
        Self::start(&program, &[&usual[..], &always, args].concat())
    }

    /// mlx-lm's server with its tiny model, from this folder.
    pub fn mlx(folder: &Path) -> Self {
        let model = folder.join("model");
        let program = folder.join("bin/mlx_lm.server");
        Self::start(&program, &["--model", model.to_str().unwrap()])
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// What a plain GET shows.
    pub fn get(&self, path: &str) -> (u16, String) {
        crate::support::http::fetch(&self.addr, "GET", path, "")
    }

    pub fn get_json(&self, path: &str) -> Value {
        serde_json::from_str(&self.get(path).1).unwrap()
    }

    /// The file that it writes its log to.
    pub fn log_file(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// All that it has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap()
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a run of the command gave.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
    pub folder: TempDir,
}

impl Ran {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{self:#?}"))
    }

    /// The lines of the run's `requests.jsonl`.
    pub fn requests(&self) -> Vec<Value> {
        let run = run_in(self.folder.path()).unwrap();
        let lines = std::fs::read_to_string(run.join("requests.jsonl")).unwrap();
        let read = |line: &str| serde_json::from_str(line).unwrap();
        lines.lines().map(read).collect()
    }
}

/// Runs `flashrig` in a folder of its own.
pub fn flashrig(args: &[&str]) -> Ran {
    flashrig_in(TempDir::new().unwrap(), args)
}

/// Runs `flashrig` in this folder.
pub fn flashrig_in(folder: TempDir, args: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_flashrig"))
        .env("FLASHRIG_FOREIGN_LOAD", "accept")
        .args(args)
        .env("FLASHRIG_CACHE", cache())
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        folder,
    }
}

/// The one run in the results folder of a project, once it is there.
pub fn run_in(project: &Path) -> Option<PathBuf> {
    let mut runs = std::fs::read_dir(project.join("results")).ok()?;
    Some(runs.next()?.ok()?.path())
}

/// Gives a project the agent `short`: the shipped Claude Code with one more setting, since a model
/// that talks nonsense does not end by itself.
pub fn short_claude(project: &Path) {
    let profile = include_str!("../../../harness/agents/claude.toml");
    let short = profile.replace("[env]\n", "[env]\nCLAUDE_CODE_MAX_OUTPUT_TOKENS = \"32\"\n");
    assert_ne!(short, profile);
    let folder = project.join("harness/agents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("short.toml"), short).unwrap();
}
