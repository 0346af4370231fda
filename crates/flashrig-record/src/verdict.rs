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
    /// The largest of the sessions' slowdowns. As the largest of several measured figures it reads
    /// high by chance: see `evidence`.
    pub worst_slowdown: Ratio,
    /// What the rounds prove about all sessions; `null` below two valid rounds.
    #[serde(default)]
    pub evidence: Option<Evidence>,
    /// The session that has it.
    pub worst_session: Option<String>,
    /// Makespan together over the sum of walls back to back; below 1 together finishes sooner.
    pub together_over_back_to_back: Ratio,
    /// The same for the arm `gated`; `null` when there is none. The time verdict is not its.
    #[serde(default)]
    pub gated: Option<GatedVerdict>,
    /// The second arm over the first of a run of `--against-itself`, which has no other verdict about
    /// time; `null` otherwise.
    #[serde(default)]
    pub against_itself: Option<AgainstItself>,
    /// Every session's slowdown, in the order of the plan.
    pub sessions: Vec<SessionSlowdown>,
    /// Valid rounds in all, those measured included, that would settle the time verdict if the
    /// slowdowns and their scatter stayed as they are. `null` when it is settled, or when 200
    /// rounds would not do.
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

/// What two equal arms differ by: the scatter of the measurement itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgainstItself {
    /// Sum of walls of the second arm over that of the first.
    pub overall: Ratio,
    /// For each session its wall in the second arm over that in the first.
    pub sessions: Vec<SessionRatio>,
    /// The largest factor between two walls of one session in one round, either way; `null` without
    /// a valid round. A slowdown below it may be scatter alone.
    pub largest_factor: Option<f64>,
    /// Whether a session's arms differ although they are equal, with 95% confidence over all
    /// sessions; `null` below two valid rounds.
    pub differs: Option<bool>,
}

/// A session's ratio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionRatio {
    /// Session name.
    pub id: String,
    /// The ratio.
    pub ratio: Ratio,
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
    /// Every session is at or below the first threshold.
    Pass,
    /// Every session is at or below the second threshold; whether all are below the first is open.
    /// Counts as passed.
    PassOrWarn,
    /// Between the thresholds; passes.
    Warn,
    /// Some session is above the first threshold; whether one is above the second is open. Does not
    /// count as passed.
    WarnOrFail,
    /// Some session is above the second threshold.
    Fail,
    /// The rounds prove neither.
    Inconclusive,
    /// No valid round.
    Unknown,
    /// There is one session: alone and together are the same thing.
    NotCompared,
}

impl TimeVerdict {
    /// The verdict as people read it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::PassOrWarn => "pass or warning",
            Self::Warn => "warning",
            Self::WarnOrFail => "warning or fail",
            Self::Fail => "fail",
            Self::Inconclusive => "inconclusive",
            Self::Unknown => "unknown",
            Self::NotCompared => "not compared",
        }
    }

    /// Whether more rounds have nothing to add to it.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Pass | Self::Warn | Self::Fail)
    }
}

/// What rounds prove about the slowdowns of all sessions. `docs/STATISTICS.md` has the formulas, and
/// a simulation that counts wrong claims.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Each bound is wrong with at most 1 minus this probability, over all looks together.
    pub confidence: f64,
    /// How often the verdict is looked at: 1 for a fixed number of rounds.
    pub looks: u32,
    /// No session's slowdown is above this. `null` when a round is missing because of what it
    /// would have shown, so that the others prove no upper bound.
    pub at_most: Option<f64>,
    /// Some session's slowdown is at least this; corrected for the number of sessions.
    pub at_least: f64,
    /// The factor by which `worst_slowdown` reads high by chance at most, being the largest of
    /// several figures: its expectation if all sessions were slowed down alike. 1 for one session.
    pub reads_high_by: f64,
}

/// A ratio over rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// Geometric mean over valid rounds. Records of older versions of
    /// flashrig have the median.
    pub value: Option<f64>,
    /// Two-sided 95% interval of it: Student's t on the logarithms, paired by round. `null` below
    /// two rounds.
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
