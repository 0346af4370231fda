//! The judgement over a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Placed, VerdictReason, Warning};

/// The judgement over a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Was everything done, unharmed and answered?
    pub functional: Functional,
    /// Is the worst session's slowdown acceptable?
    pub time: TimeVerdict,
    /// The largest of the sessions' slowdowns.
    pub worst_slowdown: Ratio,
    /// The session that has it.
    pub worst_session: Option<String>,
    /// Makespan together over the sum of walls back to back; below 1 together finishes sooner.
    pub together_over_back_to_back: Ratio,
    /// The same for the arm `gated`; `null` when there is none. The time verdict is not its.
    #[serde(default)]
    pub gated: Option<GatedVerdict>,
    /// Every session's slowdown, in the order of the plan.
    pub sessions: Vec<SessionSlowdown>,
    /// Total rounds needed, by the spread seen so far, for the interval to leave the threshold;
    /// only when `time` is `inconclusive`.
    pub rounds_needed: Option<u32>,
    /// Why the verdict is not a plain pass.
    pub reasons: Vec<Placed<VerdictReason>>,
    /// What a reader should know before trusting the figures.
    pub warnings: Vec<Placed<Warning>>,
}

/// The gated arm beside the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GatedVerdict {
    /// The largest of the sessions' walls gated over their walls alone.
    pub worst_slowdown: Ratio,
    /// Makespan gated over the sum of walls back to back.
    pub gated_over_back_to_back: Ratio,
    /// Makespan gated over makespan together; below 1 the gate pays.
    pub gated_over_together: Ratio,
}

/// The functional verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Functional {
    /// Every session of every round is done.
    Pass,
    /// At least one is not.
    Fail,
    /// The rig or its surroundings failed, or the run was stopped, before that could be told.
    Unknown,
}

/// The time verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimeVerdict {
    /// At or below the first threshold.
    Pass,
    /// Between the thresholds; passes.
    Warn,
    /// Above the second.
    Fail,
    /// The interval straddles a threshold.
    Inconclusive,
    /// No valid round.
    Unknown,
    /// There is one session: alone and together are the same thing.
    NotCompared,
}

/// A ratio over rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// Median over valid rounds.
    pub value: Option<f64>,
    /// 95% interval: Student's t on the logarithms, paired by round. `null` below two rounds.
    pub ci95: Option<[f64; 2]>,
    /// Number of valid rounds.
    pub n: u32,
}

/// One session's slowdown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSlowdown {
    /// Session name.
    pub id: String,
    /// Wall together over wall alone.
    pub slowdown: Ratio,
    /// The same for equal work: what the work done alone would have taken at the rates seen
    /// together (waiting and between by request, decoding by output token), over the wall alone.
    pub same_work: Ratio,
    /// Whether the session did the same work in both arms of every valid round: requests equal,
    /// output tokens within 5%. `null` when the server left tokens unknown.
    pub same_work_done: Option<bool>,
}
