//! The simulator's own truth: one JSON line per thing that happened, stamped by the scheduler's
//! clock. It is what instruments are checked against, so it is never read by the simulator.
//!
//! Stamps are those of the one monotonic clock, thus wall time: at speed S a second of the
//! simulated server's own time is 1/S of them. [`read::TruthRead`] converts.

pub mod read;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use flashrig_clock::Stamp;

/// Format name of the log's first line.
pub const SCHEMA: &str = "flashrig.sim-log/1";

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Truth {
    /// The server began to listen.
    Start {
        /// `flashrig.sim-log/1`
        schema: String,
        /// Profile name.
        profile: String,
        /// Factor by which all durations are divided.
        speed: f64,
        /// When.
        at: Stamp,
    },
    /// A request was accepted and stands in line.
    Queued {
        /// Counts generation requests from 1 in order of arrival.
        request: u64,
        /// When.
        at: Stamp,
        /// Tokens of the prompt.
        prompt_tokens: u64,
        /// Tokens of the answer that is planned.
        planned_tokens: u32,
    },
    /// A request got a slot.
    Admitted {
        /// Which.
        request: u64,
        /// When.
        at: Stamp,
        /// Prompt tokens found in the prefix cache.
        cached_tokens: u64,
        /// Those of them that came from disk.
        #[serde(default)]
        disk_tokens: u64,
    },
    /// A request was refused; it has no number.
    Refused {
        /// When it arrived.
        at: Stamp,
        /// The error text that its client got.
        reason: String,
        /// Tokens of its prompt; `null` when it was refused before they were counted.
        prompt_tokens: Option<u64>,
    },
    /// The first chunk of a prompt began.
    PrefillStart {
        /// Which.
        request: u64,
        /// When.
        at: Stamp,
    },
    /// The prompt is read; its last pass gives the first token.
    PrefillEnd {
        /// Which.
        request: u64,
        /// When, and when the first token was due.
        at: Stamp,
    },
    /// A decode step ended; each request in it got one token.
    Step {
        /// When it ended, and when its tokens were due.
        at: Stamp,
        /// How much later than due they were sent, in nanoseconds.
        late_ns: u64,
        /// The requests.
        requests: Vec<u64>,
    },
    /// A request left its slot, or the line.
    Finished {
        /// Which.
        request: u64,
        /// When.
        at: Stamp,
        /// Tokens sent, the first included.
        tokens: u32,
        /// How it ended.
        end: TruthEnd,
    },
}

/// How a request ended, as the server knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TruthEnd {
    /// All tokens were sent.
    Complete,
    /// The client left.
    ClientLeft,
    /// Ended by a configured fault.
    Fault,
}

/// The open log, or none. Lines are buffered; whoever has time to spare flushes.
#[derive(Debug)]
pub(super) struct TruthLog {
    file: Option<BufWriter<File>>,
    unflushed: bool,
}

impl TruthLog {
    pub(super) fn create(path: Option<&Path>) -> std::io::Result<Self> {
        let file = path.map(File::create).transpose()?;
        Ok(Self {
            file: file.map(|file| BufWriter::with_capacity(64 << 10, file)),
            unflushed: false,
        })
    }

    /// Whether anybody will read it; spares the making of long lines.
    pub(super) fn is_on(&self) -> bool {
        self.file.is_some()
    }

    /// Whether something is not in the file yet.
    pub(super) fn is_unflushed(&self) -> bool {
        self.unflushed
    }

    /// Writes a line. A log that cannot be written any more is closed and said to be so once,
    /// rather than left with holes.
    pub(super) fn write(&mut self, line: &Truth) {
        let Some(file) = &mut self.file else { return };
        let written = serde_json::to_writer(&mut *file, line)
            .map_err(std::io::Error::from)
            .and_then(|()| file.write_all(b"\n"));
        self.unflushed = true;
        self.check(written);
    }

    /// Everything that was written can be read now.
    pub(super) fn flush(&mut self) {
        self.unflushed = false;
        if let Some(file) = &mut self.file {
            let flushed = file.flush();
            self.check(flushed);
        }
    }

    fn check(&mut self, done: std::io::Result<()>) {
        if let Err(error) = done {
            tracing::warn!(%error, "the simulated server's log can no longer be written; it ends here");
            self.file = None;
        }
    }
}
