//! What is known of a process tree: how its leader ended, what it left behind, what it used.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use flashrig_clock::Stamp;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    /// It exited by itself, with this code.
    Exited(i32),
    /// This signal killed it.
    Signalled(i32),
}

impl ExitStatus {
    /// Whether it exited by itself with code 0.
    pub fn is_success(self) -> bool {
        self == Self::Exited(0)
    }
}

impl std::fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Signalled(number) => match nix::sys::signal::Signal::try_from(*number) {
                Ok(signal) => write!(f, "killed by {signal}"),
                Err(_) => write!(f, "killed by signal {number}"),
            },
        }
    }
}

/// The end of the leader: the program that was asked for, not its descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaderExit {
    /// How it ended.
    pub status: ExitStatus,
    /// When, on the shared monotonic clock; measured where it was reaped, not where its output
    /// ended.
    pub stamp: Stamp,
}

/// A process that outlived its leader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// Process id; under bubblewrap it counts within the session's own namespace.
    pub pid: u32,
    /// Its command line, shortened (macOS: the path of its program).
    pub command: String,
}

/// What a tree uses now; a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// When the sample was taken.
    pub stamp: Stamp,
    /// CPU time of the tree so far, processes that are gone included.
    pub cpu: Option<Duration>,
    /// Resident memory of all processes of the tree, in bytes; shared pages count in each.
    pub rss_bytes: u64,
    /// Number of living processes.
    pub processes: u32,
}

/// What a tree used in all. `None` where it could not be measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time, user and system, of every process that was reaped in the tree. Children of a
    /// process that ignores SIGCHLD are reaped by the kernel and missing here, as POSIX
    /// defines it.
    pub cpu: Option<Duration>,
    /// Peak of the resident memory of all processes together, in bytes, from samples; never less
    /// than `largest_process_bytes`.
    pub peak_rss_bytes: Option<u64>,
    /// Peak resident memory of the largest single process, in bytes, exact.
    pub largest_process_bytes: Option<u64>,
    /// Most processes seen alive at once, from samples.
    pub peak_processes: Option<u32>,
}
