//! A running program, until its whole tree has ended.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::control::KILL_BOUND;
use super::control::{Control, View};
use super::drain::Drain;
use super::ipc::Order;
use super::lines::{Lines, StreamReport};
use super::sandbox::Sandbox;
use super::spec::Spec;
use super::usage::{LeaderExit, Leftover, Reading, Usage};
use flashrig_clock::Stamp;

/// Beyond the helper's own bounds, before it is held to be stuck.
const HELPER_MARGIN: Duration = Duration::from_secs(1);
/// For killing a tree from outside when its helper is stuck or lost.
const FORCE_BOUND: Duration = Duration::from_secs(2);

/// Why a tree was ended from outside. This crate only carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It ran longer than it may in all.
    TimeLimit,
    /// It did not do in time what it must do first.
    FirstDeadline,
    /// It did nothing for too long.
    Idle,
    /// Its work was done but it did not exit.
    Lingering,
    /// The user, or the end of the whole run, asked for it.
    Interrupted,
}

/// The helper was lost before the leader's end was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the supervising helper was lost; the end of the program it ran is unknown")]
pub struct Lost;

/// Whether anything of the tree is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeEnd {
    /// The system guarantees that no process of it is left.
    Gone,
    /// Every process of it that was ever seen is gone. A process that came and hid between two
    /// samples would have been missed (macOS, or a helper that was itself killed).
    GoneAsFarAsSeen,
    /// These could not be killed within the bound.
    Survivors(Vec<Leftover>),
}

/// All that is known when the tree has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// When the leader was exec'd.
    pub started: Stamp,
    /// The leader's end; `None` when the helper was lost before it.
    pub leader: Option<LeaderExit>,
    /// Why it was stopped; `None` when it ended by itself.
    pub stopped: Option<StopReason>,
    /// Processes that outlived the leader by itself, or, after a stop, TERM and the grace.
    pub leftovers: Vec<Leftover>,
    /// Whether anything is left.
    pub tree: TreeEnd,
    /// CPU and memory of the whole tree.
    pub usage: Usage,
    /// Standard output.
    pub stdout: StreamReport,
    /// Standard error; an empty stream when both are merged.
    pub stderr: StreamReport,
}

/// A program that runs. Dropping it kills the whole tree, without grace and without proof.
#[derive(Debug)]
pub struct Running {
    /// When it was exec'd, on the shared monotonic clock.
    pub started: Stamp,
    /// The leader's pid; under bubblewrap it counts within the session's own namespace.
    pub pid: u32,
    /// Its standard output; read whether or not lines are fetched.
    pub stdout: Lines,
    /// Its standard error.
    pub stderr: Lines,
    control: Control,
    drains: [Drain; 2],
    namespaced: bool,
    grace: Duration,
    stop: Mutex<Stop>,
}

/// What was asked for so far: the first reason, the shortest grace.
#[derive(Clone, Copy, Debug, Default)]
struct Stop {
    reason: Option<StopReason>,
    grace: Option<Duration>,
}

impl Running {
    pub(super) fn new(
        spec: &Spec,
        control: Control,
        pid: u32,
        started: Stamp,
        stdout: Drain,
        stderr: Drain,
    ) -> Self {
        Self {
            started,
            pid,
            stdout: stdout.lines.clone(),
            stderr: stderr.lines.clone(),
            control,
            drains: [stdout, stderr],
            namespaced: matches!(spec.sandbox, Sandbox::Bubblewrap { .. }),
            grace: spec.grace,
            stop: Mutex::default(),
        }
    }

    /// Waits for the leader's exit: the process, not its output. May be dropped and called again.
    ///
    /// # Errors
    /// When the helper is lost, so that the exit is unknown.
    pub async fn wait_leader(&self) -> Result<LeaderExit, Lost> {
        self.control
            .until(|view| view.exited.is_some())
            .await
            .exited
            .ok_or(Lost)
    }

    /// The leader's exit, if it has ended.
    pub fn leader_exit(&self) -> Option<LeaderExit> {
        self.control.view().exited
    }

    /// The latest sample of what the tree uses, up to about a quarter of a second old.
    pub fn usage_now(&self) -> Option<Reading> {
        self.control.view().reading
    }

    /// Asks the leader alone to end: TERM to it. For a leader that has a tree of its own to bring
    /// to an end in order; whoever asks waits for its exit, and stops the tree when that takes too
    /// long. Nothing happens if it has ended already.
    pub fn ask_leader(&self) {
        self.control.order(Order::AskLeader);
    }

    /// Asks the whole tree to end: TERM now, KILL after the spec's grace. Returns at once; the
    /// first reason counts, and nothing happens if the leader has ended already.
    pub fn stop(&self, reason: StopReason) {
        self.stop_within(reason, self.grace);
    }

    /// The same with another grace; a second call can shorten the first one's.
    pub fn stop_within(&self, reason: StopReason, grace: Duration) {
        let mut stop = self.asked();
        if self.leader_exit().is_none() {
            stop.reason.get_or_insert(reason);
        }
        stop.grace = Some(stop.grace.map_or(grace, |earlier| earlier.min(grace)));
        drop(stop);
        self.control.order(Order::Stop { grace });
    }

    /// Ends what is left of the tree and returns when it is proven gone, or when the bounds of
    /// killing it have passed. A leader that still runs is stopped, as interrupted.
    ///
    /// Output is read for at most `drain_limit` after that.
    pub async fn finish(mut self, drain_limit: Duration) -> Ended {
        if self.leader_exit().is_none() && self.asked().reason.is_none() {
            self.stop(StopReason::Interrupted);
        }
        let asked = *self.asked();
        let grace = asked.grace.unwrap_or(self.grace);
        let deadline = Instant::now() + grace + KILL_BOUND + HELPER_MARGIN;
        // A namespace is gone when the sandbox's own process has ended, which `closed` shows.
        let reported = self.control.until_at(deadline, |_| false).await;
        let (view, tree) = match reported {
            Some(view) => {
                let tree = self.judge(&view).await;
                (view, tree)
            }
            None => {
                tracing::warn!(
                    pid = self.pid,
                    "the supervising helper is stuck; killing its tree from outside"
                );
                let survivors = self.control.force(self.namespaced, FORCE_BOUND).await;
                let view: View = self.control.view().clone();
                let tree = judge_forced(survivors);
                (view, tree)
            }
        };
        let drain_deadline = Instant::now() + drain_limit;
        for drain in &mut self.drains {
            drain.finish(drain_deadline).await;
        }
        let reading = view.reading;
        let usage = view.finished.map_or_else(
            || Usage {
                cpu: reading.and_then(|r| r.cpu),
                peak_rss_bytes: reading.map(|r| r.rss_bytes),
                ..Usage::default()
            },
            |finished| finished.usage,
        );
        Ended {
            started: self.started,
            leader: view.exited,
            stopped: asked.reason,
            leftovers: view.leftovers,
            tree,
            usage,
            stdout: self.stdout.report(),
            stderr: self.stderr.report(),
        }
    }

    fn asked(&self) -> MutexGuard<'_, Stop> {
        self.stop.lock()
    }

    /// The helper has ended.
    async fn judge(&self, view: &View) -> TreeEnd {
        match &view.finished {
            // Bubblewrap exits after the namespace's first process was reaped, and the kernel lets
            // that be reaped only when the namespace is empty.
            _ if self.namespaced && view.exited_by_itself => TreeEnd::Gone,
            Some(finished) if !finished.survivors.is_empty() => {
                TreeEnd::Survivors(finished.survivors.clone())
            }
            Some(finished) if finished.proven => TreeEnd::Gone,
            Some(_) => TreeEnd::GoneAsFarAsSeen,
            None => {
                tracing::warn!(
                    pid = self.pid,
                    "the supervising helper was lost; killing what is known of its tree"
                );
                judge_forced(self.control.force(self.namespaced, FORCE_BOUND).await)
            }
        }
    }
}

fn judge_forced(survivors: Vec<Leftover>) -> TreeEnd {
    if survivors.is_empty() {
        TreeEnd::GoneAsFarAsSeen
    } else {
        TreeEnd::Survivors(survivors)
    }
}
