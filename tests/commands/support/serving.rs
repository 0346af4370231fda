//! A `flashrig` that serves until it is told to stop, started as people start it.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A serving process; killed when it is dropped before it was stopped.
pub struct Serving {
    child: Child,
    /// Host and port.
    pub addr: String,
}

impl Serving {
    /// Starts `flashrig` with these arguments and reads the address off its first line.
    pub fn start(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        Self::start_told(args).0
    }

    /// The same, with its first line.
    pub fn start_told(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> (Self, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flashrig"));
        command.args(args);
        Self::run(command)
    }

    /// The same of a command that is prepared.
    pub fn run(mut command: Command) -> (Self, String) {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap());
        lines.read_line(&mut line).unwrap();
        let url = line
            .split([' ', ',', '"'])
            .find_map(|word| word.strip_prefix("http://"));
        let addr = url.unwrap_or_else(|| panic!("{line}")).to_owned();
        (Self { child, addr }, line)
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// As Ctrl-C does.
    pub fn interrupt(&self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        kill(pid, Signal::SIGINT).unwrap();
    }

    /// Waits for its end; exit code and what it said on standard error.
    pub fn ended(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
