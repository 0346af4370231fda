//! What a reader of a synthetic run should know before trusting the figures.

use flashrig_clock::Seconds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CellStopReason, LeftOutReason, TtftReason};
use crate::CellVerdict;

/// What a reader should know before trusting the figures: `warnings` of the verdict of `fit` and
/// `ttft`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum LoadWarning {
    /// The server was started again: before and after are two processes.
    ServerRestarted {
        /// The server's name.
        server: String,
        /// From its start to its being ready.
        ready_after_s: Seconds,
    },
    /// Another model answered than the one asked for.
    OtherModel {
        /// The model asked for.
        asked: String,
        /// The model that the answers name.
        answered: String,
        /// How many answers.
        answers: u32,
    },
    /// One round: no interval.
    OneRound,
    /// Some combinations were measured in one round only.
    MeasuredOnce {
        /// Rounds planned.
        rounds: u32,
        /// The combinations.
        cells: Vec<CellPlace>,
    },
    /// The server does not keep to a fixed length of answers.
    AnswerLengthNotFixed,
    /// flashrig's own client was the bottleneck: those figures are not the server's.
    ClientBottleneck {
        /// The combinations.
        cells: Vec<CellPlace>,
    },
    /// The client was the bottleneck of the lone session that others are compared with.
    BaselineBottleneck {
        /// At this context length, in tokens.
        context_tokens: u64,
        /// Whether the server is simulated.
        simulated: bool,
    },
    /// The server took less than half of the warm prompts from its cache.
    CacheLost {
        /// The combinations.
        cells: Vec<CellPlace>,
    },
    /// First turns found part of their prompts in the server's cache.
    CacheNotCold,
    /// A smaller number of sessions failed where a larger one passed.
    NonMonotonic {
        /// At this context length, in tokens.
        context_tokens: u64,
        /// The numbers that did not pass.
        failed: Vec<FailedSize>,
        /// The number that did.
        passed: u32,
    },
    /// One session alone does not answer all questions right.
    RecallAlone {
        /// At this context length, in tokens.
        context_tokens: u64,
        /// Right answers.
        right: u32,
        /// Questions asked.
        asked: u32,
    },
    /// The run was taken up again.
    Resumed {
        /// How often.
        times: u32,
    },
    /// A step of `ttft` ended early.
    StepEndedEarly {
        /// Requests sent at once.
        requests: u32,
        /// Why.
        reason: CellStopReason,
    },
    /// Figures of a row of `ttft` are missing or not to be trusted.
    Row {
        /// Requests sent at once.
        requests: u32,
        /// Why.
        reason: TtftReason,
    },
    /// Steps of `ttft` were left out.
    StepsLeftOut {
        /// Numbers of requests at once.
        requests: Vec<u32>,
        /// Why.
        reason: LeftOutReason,
    },
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

/// A combination of `fit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellPlace {
    /// Number of sessions.
    pub sessions: u32,
    /// Context length in tokens.
    pub context_tokens: u64,
}

/// A number of sessions that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedSize {
    /// Number of sessions.
    pub sessions: u32,
    /// What it came to.
    pub verdict: CellVerdict,
}

super::fact!(LoadWarning);
