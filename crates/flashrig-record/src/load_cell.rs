//! What `fit` makes of what was measured: one judged line for each combination, and the answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CellReason, Evidence, LoadWarning};
use flashrig_clock::Seconds;

/// One combination, judged over its rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Context length in tokens.
    pub context_tokens: u64,
    /// Number of sessions.
    pub sessions: u32,
    /// Warm turns beside others over warm turns alone, same context, same round.
    pub slowdown: Slowdown,
    /// What the rounds prove about the slowdowns of all sessions; `null` below two rounds.
    #[serde(default)]
    pub evidence: Option<Evidence>,
    /// Generation speed of all sessions together over that of one alone.
    pub growth: Option<f64>,
    /// Median wall of a warm turn.
    pub turn_s: Option<Seconds>,
    /// Median generation speed of one session's warm turns, tokens a second.
    pub decode_tokens_per_s: Option<f64>,
    /// Generation speed of all sessions together, tokens a second.
    pub total_tokens_per_s: Option<f64>,
    /// Median first-token time of first turns.
    pub ttft_cold_s: Option<Seconds>,
    /// Worst first-token time of first turns.
    pub ttft_cold_worst_s: Option<Seconds>,
    /// Median first-token time of warm turns.
    pub ttft_warm_s: Option<Seconds>,
    /// Side requests; `null` when there were none.
    pub side: Option<SideFigures>,
    /// Those of them that were sent while first prompts were read.
    #[serde(default)]
    pub side_during_cold: Option<SideFigures>,
    /// Questions answered right, of those asked; `null` when none was.
    pub recall: Option<Recall>,
    /// Requests refused.
    pub refused: Refused,
    /// Requests that failed otherwise.
    pub errors: Option<u64>,
    /// Cached share of all prompt tokens of warm turns, 0 to 1.
    pub cached_share: Option<f64>,
    /// Highest memory that the server told, in bytes.
    pub peak_memory_bytes: Option<u64>,
    /// Whether flashrig's own client was the bottleneck in any round.
    pub client_bottleneck: Option<bool>,
    /// The judgement.
    pub verdict: CellVerdict,
    /// Rounds in all, those measured included, that would settle the verdict if the slowdowns and
    /// their scatter stayed as they are; `null` when it is settled or 200 would not do.
    #[serde(default)]
    pub rounds_needed: Option<u32>,
    /// Why it is not a plain pass, or why figures are missing.
    pub reasons: Vec<CellReason>,
}

impl Cell {
    /// Whether more rounds have nothing to add: its verdict about time is proven, or something else
    /// than time decides.
    pub fn is_settled(&self) -> bool {
        match self.verdict {
            CellVerdict::Pass | CellVerdict::Warn | CellVerdict::Fail => self.evidence.is_some(),
            CellVerdict::Refused | CellVerdict::Recall | CellVerdict::Error => true,
            CellVerdict::PassOrWarn
            | CellVerdict::WarnOrFail
            | CellVerdict::Inconclusive
            | CellVerdict::Unknown => false,
        }
    }
}

/// A slowdown over rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slowdown {
    /// The worst session's: geometric mean over rounds. Records of older versions of flashrig have
    /// the median over rounds of each round's largest.
    pub worst: Option<f64>,
    /// The session that has it.
    #[serde(default)]
    pub worst_session: Option<String>,
    /// The median session's: of the sessions' geometric means.
    pub median: Option<f64>,
    /// Two-sided 95% interval of the worst session's, Student's t on logarithms; `null` below two
    /// rounds.
    pub ci95: Option<[f64; 2]>,
    /// Number of rounds in it.
    pub n: u32,
    /// The largest of the sessions' geometric means by time per output token: what counts when
    /// answers were not equally long. `null` when the server left tokens unknown.
    #[serde(default)]
    pub per_token_worst: Option<f64>,
    /// The worst session's in each round, in their order: the points behind `worst`.
    #[serde(default)]
    pub rounds: Vec<f64>,
}

/// Side requests of a combination.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideFigures {
    /// How many were answered.
    pub n: u32,
    /// How many were sent.
    pub sent: u32,
    /// Median wall.
    pub p50_s: Option<Seconds>,
    /// 95th percentile (nearest rank).
    pub p95_s: Option<Seconds>,
    /// Worst.
    pub max_s: Option<Seconds>,
    /// How many took more than 60 s.
    pub over_60s: u32,
    /// Median time to the first token: how long a request waits for others' prefills, apart from how
    /// long its answer takes beside them.
    #[serde(default)]
    pub ttft_p50_s: Option<Seconds>,
    /// 95th percentile (nearest rank) of the time to the first token.
    #[serde(default)]
    pub ttft_p95_s: Option<Seconds>,
}

/// Recall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Recall {
    /// Answered right.
    pub right: u32,
    /// Asked.
    pub asked: u32,
    /// The worst session's right answers in any round; `null` when nothing was asked.
    pub worst_right: Option<u32>,
    /// Of so many.
    pub worst_asked: Option<u32>,
}

/// Refused requests, as either side tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// Seen by the client.
    pub client: Option<u64>,
    /// Told by the server's metrics or log.
    pub server: Option<u64>,
}

/// The judgement of a combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellVerdict {
    /// At or below the first threshold.
    Pass,
    /// At or below the second threshold; the first is open. Counts as passed.
    PassOrWarn,
    /// Between the thresholds; passes.
    Warn,
    /// Above the first threshold; the second is open. Does not count as passed.
    WarnOrFail,
    /// Above the second.
    Fail,
    /// A request was refused.
    Refused,
    /// Too few questions answered right.
    Recall,
    /// A request failed, or the server stalled.
    Error,
    /// The rounds prove neither.
    Inconclusive,
    /// It was not measured, or could not be.
    Unknown,
}

impl CellVerdict {
    /// The verdict as people read it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::PassOrWarn => "pass or warning",
            Self::Warn => "warning",
            Self::WarnOrFail => "warning or fail",
            Self::Fail => "fail",
            Self::Refused => "refused",
            Self::Recall => "recall",
            Self::Error => "error",
            Self::Inconclusive => "inconclusive",
            Self::Unknown => "unknown",
        }
    }
}

/// The judgement over a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadVerdict {
    /// The answer in one sentence.
    pub answer: String,
    /// For each context length, the largest number of sessions that passes; `null` when not even
    /// one was measured to pass.
    pub fits: Vec<Fits>,
    /// What a reader should know before trusting the figures.
    pub warnings: Vec<LoadWarning>,
}

/// How many sessions fit at a context length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fits {
    /// Context length in tokens.
    pub context_tokens: u64,
    /// The largest number of sessions that passes, with a warning or without.
    pub sessions: Option<u32>,
    /// Whether a smaller number failed where a larger one passed.
    pub non_monotonic: bool,
}
