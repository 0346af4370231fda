//! The messages between flashrig and its supervising helper: JSON lines over a socket pair.
//!
//! Both ends are the same binary, so the format needs no version.

use std::ffi::OsString;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::tree::Identity;
use super::usage::{LeaderExit, Leftover, Reading, Usage};
use flashrig_clock::Stamp;

/// From flashrig to the helper.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Check what is to be run, but wait.
    Prepare(Box<Job>),
    /// Run it now.
    Go,
    /// Ask the leader alone to end: TERM to it, and to no other process.
    AskLeader,
    /// End the whole tree: TERM, then KILL after the grace.
    Stop { grace: Duration },
}

/// What the helper runs, and its time limits.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) dir: OsString,
    /// From TERM to KILL for processes that outlive the leader.
    pub(super) grace: Duration,
    /// From the first KILL until the helper gives up.
    pub(super) kill_bound: Duration,
    /// Between two usage samples.
    pub(super) sample_every: Duration,
}

/// From the helper to flashrig.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Notice {
    /// Waiting for `Go`.
    Ready,
    /// The program cannot be run; nothing is left running.
    Failed(Failure),
    /// The program was exec'd.
    Started { pid: u32, stamp: Stamp },
    /// A usage sample, and the living members of the tree.
    Usage {
        reading: Reading,
        members: Vec<Identity>,
    },
    /// The leader ended.
    Exited(LeaderExit),
    /// Processes that outlived the leader.
    Leftovers(Vec<Leftover>),
    /// The tree has ended, or could not be ended within the bound; the helper exits.
    Finished(FinishedTree),
}

/// Why the program cannot be run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) step: Step,
    pub(super) message: String,
}

/// The step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Step {
    Directory,
    Program,
}

/// The end of the tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FinishedTree {
    pub(super) survivors: Vec<Leftover>,
    /// Whether the system guarantees that no descendant was missed.
    pub(super) proven: bool,
    pub(super) usage: Usage,
}
