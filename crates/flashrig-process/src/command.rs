//! Runs one command to its end under the same supervision as an agent: what checks are made of.

use std::time::Duration;

use super::lines::Lines;
use super::prepared::Prepared;
use super::running::{Ended, StopReason, TreeEnd};
use super::spec::{Output, OutputLimits, SpawnError, Spec};
use super::usage::{ExitStatus, Leftover, Usage};

/// Bytes of output that are kept: its end, where test programs say what went wrong.
const TAIL_BYTES: usize = 64 * 1024;
const LINE_BYTES: usize = 8 * 1024;
const DRAIN_LIMIT: Duration = Duration::from_millis(500);

/// How a command ended.
#[derive(Debug)]
pub enum CommandExit {
    /// By itself, with this code.
    Exited(i32),
    /// Killed by this signal, which was not ours.
    Signalled(i32),
    /// It took longer than its limit and was killed, with everything it had started.
    TimedOut,
    /// It could not be run.
    NotStarted(SpawnError),
    /// Its supervisor was killed, so that its end is unknown.
    Lost,
}

/// What a command did.
#[derive(Debug)]
pub struct CommandOutcome {
    /// How it ended.
    pub exit: CommandExit,
    /// The end of its output: both streams in the order of writing, or, when the spec keeps them
    /// apart, standard output and then standard error.
    pub output: String,
    /// Whether `output` lacks anything.
    pub output_cut: bool,
    /// From exec to exit.
    pub duration: Duration,
    /// Processes that it left behind.
    pub leftovers: Vec<Leftover>,
    /// Whether everything it started is gone.
    pub tree: TreeEnd,
    /// What it used.
    pub usage: Usage,
}

impl CommandOutcome {
    /// Whether it exited by itself with code 0.
    pub fn is_success(&self) -> bool {
        matches!(self.exit, CommandExit::Exited(0))
    }
}

/// Runs `spec` for at most `limit`, and returns when its whole tree is gone.
///
/// The end of its output is kept in memory, and files named by the spec are written. Unless the
/// spec names files for both streams apart, the output is merged in the order of writing.
pub async fn run_command(mut spec: Spec, limit: Duration) -> CommandOutcome {
    if spec.output == Output::default() {
        spec.output = Output::Merged { file: None };
    }
    spec.limits = OutputLimits {
        line_bytes: LINE_BYTES,
        waiting_bytes: TAIL_BYTES,
        ..spec.limits
    };
    let running = match Prepared::new(spec).await {
        Ok(prepared) => prepared.go().await,
        Err(error) => Err(error),
    };
    let running = match running {
        Ok(running) => running,
        Err(error) => return not_started(error),
    };
    if tokio::time::timeout(limit, running.wait_leader())
        .await
        .is_err()
    {
        running.stop(StopReason::TimeLimit);
    }
    let streams = [running.stdout.clone(), running.stderr.clone()];
    let ended = running.finish(DRAIN_LIMIT).await;
    let (output, output_cut) = tail(&streams);
    CommandOutcome {
        exit: exit_of(&ended),
        output,
        output_cut,
        duration: ended
            .leader
            .map_or(Duration::ZERO, |leader| leader.stamp.since(ended.started)),
        leftovers: ended.leftovers,
        tree: ended.tree,
        usage: ended.usage,
    }
}

fn exit_of(ended: &Ended) -> CommandExit {
    match (ended.stopped, ended.leader.map(|leader| leader.status)) {
        (Some(_), _) => CommandExit::TimedOut,
        (None, Some(ExitStatus::Exited(code))) => CommandExit::Exited(code),
        (None, Some(ExitStatus::Signalled(signal))) => CommandExit::Signalled(signal),
        (None, None) => CommandExit::Lost,
    }
}

/// Lines that are not fetched are dropped oldest first, so what waits is the tail.
fn tail(streams: &[Lines]) -> (String, bool) {
    let mut text = String::new();
    let mut cut = false;
    for lines in streams {
        while let Some(line) = lines.try_next() {
            text.push_str(&line.text());
            if line.is_cut() {
                text.push_str(&format!(" [{} bytes more]", line.dropped_bytes));
            }
            text.push('\n');
        }
        let report = lines.report();
        cut |= report.lost_lines > 0 || report.cut_lines > 0;
    }
    (text, cut)
}

fn not_started(error: SpawnError) -> CommandOutcome {
    CommandOutcome {
        exit: CommandExit::NotStarted(error),
        output: String::new(),
        output_cut: false,
        duration: Duration::ZERO,
        leftovers: Vec::new(),
        tree: TreeEnd::Gone,
        usage: Usage::default(),
    }
}
