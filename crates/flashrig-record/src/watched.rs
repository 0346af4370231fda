//! What was seen of the server while something was measured: its metrics, its log, its processes.
//! Unknown is `null`: few servers tell everything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Disagreement;
use flashrig_clock::Seconds;

/// What was seen of the server during an arm or a combination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Watched {
    /// Samples of its metrics that were taken, the ones at both ends included.
    pub samples: u32,
    /// The most requests that it worked on, by its metrics.
    pub max_running: Option<f64>,
    /// The most requests that it let wait, by its metrics.
    pub max_waiting: Option<f64>,
    /// Prompt tokens that it counted meanwhile, as it counts them.
    pub prompt_tokens: Option<u64>,
    /// Tokens that it generated meanwhile, by its metrics.
    pub generated_tokens: Option<u64>,
    /// Prompt tokens that came from its cache, as three sources tell.
    pub cached_tokens: ThreeWays,
    /// Requests that it refused, as three sources tell.
    pub refused: ThreeWays,
    /// The most memory that it said to use, in bytes.
    pub peak_memory_bytes: Option<u64>,
    /// The most resident memory of its process tree, in bytes; only of a server that flashrig
    /// started.
    pub peak_rss_bytes: Option<u64>,
    /// CPU time of its process tree; only of a server that flashrig started.
    pub cpu_s: Option<Seconds>,
    /// Refusals, each with the client's words and those of the log.
    pub refusals: Vec<JoinedRefusal>,
    /// Where the sources contradict each other.
    pub disagreements: Vec<Disagreement>,
    /// Lines of the log that were written faster than they could be read, and are lost.
    pub lost_lines: u64,
}

/// One figure from three sources. `null` is a source that does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreeWays {
    /// What clients saw in their answers.
    pub answers: Option<u64>,
    /// What its metrics counted.
    pub metrics: Option<u64>,
    /// What its log told.
    pub log: Option<u64>,
}

/// A refusal as the client and the server's log have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JoinedRefusal {
    /// The session; `null` when the log tells of a refusal that no client saw.
    pub session: Option<String>,
    /// The request's number in its session.
    pub request: Option<u32>,
    /// When the client had its answer, or else when the log told, in seconds since the start of
    /// the run.
    pub at_s: Seconds,
    /// Status of the answer.
    pub status: Option<u16>,
    /// The answer's words.
    pub answer: Option<String>,
    /// The line of the log; `null` when no line fits.
    pub log: Option<String>,
}

/// How it was known that the server was idle.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum IdleBy {
    /// Its metrics told of no request.
    Metrics,
    /// It listed its slots, and none was at work; requests in line do not stand there.
    Slots,
    /// It tells neither, and was left alone for a second.
    Quiet,
}

impl IdleBy {
    /// As people read it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Metrics => "its metrics",
            Self::Slots => "its slots",
            Self::Quiet => "a quiet second",
        }
    }
}

/// A line of `server.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerLine {
    /// When, in seconds since the start of the run, on the rig's monotonic clock.
    pub at_s: Seconds,
    /// What.
    #[serde(flatten)]
    pub what: ServerFact,
}

/// What a line of `server.jsonl` tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ServerFact {
    /// The server's metrics and processes at one time.
    Sample {
        /// Requests that it worked on.
        running: Option<f64>,
        /// Requests that waited.
        waiting: Option<f64>,
        /// Prompt tokens since its start.
        prompt_tokens: Option<u64>,
        /// Tokens generated since its start.
        generated_tokens: Option<u64>,
        /// Prompt tokens from its cache since its start.
        cached_tokens: Option<u64>,
        /// Requests refused since its start.
        refused: Option<u64>,
        /// Memory in use, as it tells.
        memory_bytes: Option<u64>,
        /// Resident memory of its process tree.
        rss_bytes: Option<u64>,
        /// CPU time of its process tree since its start.
        cpu_s: Option<Seconds>,
    },
    /// A line of its log that means something.
    Log {
        /// The line.
        line: String,
    },
}
