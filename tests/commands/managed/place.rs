//! A project with server profiles, to run `flashrig` in.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use flashrig_testkit::waiting::wait_until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

/// The flashrig that is tested, and that plays the server.
pub const FLASHRIG: &str = env!("CARGO_BIN_EXE_flashrig");

pub struct Place(TempDir);

/// What a run of the command gave.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{}{}", self.out, self.err))
    }

    pub fn says(&self, message: &[&str]) {
        for word in message {
            assert!(self.err.contains(word), "{word:?} is not in: {}", self.err);
        }
    }
}

/// A profile that starts flashrig's simulated server as a process of its own.
pub fn real() -> String {
    format!(
        r#"schema = "flashrig.server/1"
kind = "managed"
title = "a process of the simulated server"

[start]
program = "{FLASHRIG}"
args = [
  "sim",
  ["--listen", "{{host}}:{{port}}"],
  ["--speed", "{{speed}}"],
  ["--set", "max_concurrent={{max_concurrent}}"],
  ["--set", "prefill_decode_share={{share}}"],
  ["--server-log", "/dev/stderr"],
  ["--log", "{{truth}}"],
]

[variables.speed]
about = "time factor"
default = 50.0

[variables.max_concurrent]
about = "requests at once"
default = 4
values = [1, 2, 4]

[variables.share]
about = "share of decoding"

[variables.truth]
about = "a file for the log of its truth"

[identity]
version = ["--version"]
pattern = 'flashrig (\S+)'

[reset]
restart = true

[[log]]
event = "setting"
pattern = '^Concurrency: --max-concurrent=(?<max_concurrent>\d+)'
"#
    )
}

/// A profile that starts a script, with a model and a flag, ready within `limit`.
pub fn scripted(script: &Path, limit: &str) -> String {
    format!(
        r#"schema = "flashrig.server/1"
kind = "managed"
title = "a script"

[start]
program = "{}"
args = [["--port", "{{port}}"], ["--model", "{{model}}"], ["--parallel", "{{parallel}}"]]

[variables.model]
about = "model"
file = true

[variables.parallel]
about = "requests at once"

[ready]
path = "/health"
limit = "{limit}"

[identity]
version = ["--version"]
pattern = 'fake (\S+)'
"#,
        script.display()
    )
}

impl Place {
    pub fn new() -> Self {
        let place = Self(TempDir::new().unwrap());
        fs::create_dir_all(place.path().join("harness/servers")).unwrap();
        place
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn profile(&self, name: &str, text: &str) {
        let file = self.path().join(format!("harness/servers/{name}.toml"));
        fs::write(file, text).unwrap();
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let file = self.path().join(name);
        fs::write(&file, text).unwrap();
        file
    }

    /// A server's program that lists its flags and tells its version, and otherwise does `body`.
    pub fn script(&self, body: &str) -> PathBuf {
        let text = format!(
            "#!/bin/sh\ncase \"$*\" in\n\
             *--help*) echo 'usage: fake [--port N] [--model FILE] [--parallel N]'; exit 0;;\n\
             *--version*) echo 'fake 1.2.3'; exit 0;;\nesac\n{body}\n"
        );
        let file = self.file("fake-server", &text);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(FLASHRIG);
        command
            .args(args)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("FLASHRIG_CACHE", cache())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        let output = self.command(args).output().unwrap();
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The only results folder; `None` as long as there is none.
    pub fn results(&self) -> Option<PathBuf> {
        let mut all = fs::read_dir(self.path().join("results")).ok()?;
        Some(all.next()?.ok()?.path())
    }
}

/// One cache folder for all tests: the test binary is hashed once.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("managed-room-cache")
}

pub fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal).unwrap();
}

/// Whether a process is there and no zombie.
pub fn is_alive(pid: u32) -> bool {
    let Ok(output) = Command::new("ps")
        .args(["-o", "stat=", "-p", &pid.to_string()])
        .output()
    else {
        panic!("no ps");
    };
    let state = String::from_utf8_lossy(&output.stdout);
    !state.trim().is_empty() && !state.trim().starts_with('Z')
}

/// The exit code of a child that is waited for with patience.
pub fn ended(mut child: Child) -> Option<i32> {
    let mut code = None;
    wait_until("the command ends", || {
        let status = child.try_wait().unwrap();
        code = status.and_then(|status| status.code());
        status.is_some()
    });
    code
}
