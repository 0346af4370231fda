//! What speaks against the figures of a sweep.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CellReason, Placed, ServerLoss, StoppedBecause, TtftReason, VerdictReason};
use crate::{CellVerdict, RunState};

/// Why nothing of a unit could be measured: `words` of a unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum UnitFailure {
    /// The command's run stopped early.
    RunStopped {
        /// Why.
        reason: StoppedBecause,
    },
    /// The command's run did not finish, and does not say why.
    RunUnfinished {
        /// How far it got.
        state: RunState,
    },
    /// No round of the run could be compared.
    NoRoundCompared {
        /// Why.
        reasons: Vec<Placed<VerdictReason>>,
    },
    /// The run holds no figure.
    NothingMeasured {
        /// What the run answers.
        answer: Option<String>,
        /// What speaks against it.
        faults: Vec<UnitFault>,
    },
    /// The command failed.
    CommandFailed {
        /// The end of what it printed.
        error: String,
    },
    /// The command ended without a record.
    NoRecord {
        /// How its process ended; `null` when that is unknown.
        exit: Option<String>,
    },
    /// The command's record cannot be read.
    Unreadable {
        /// Why.
        error: String,
    },
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

impl UnitFailure {
    /// How the server was lost, when that is why.
    pub fn loss(&self) -> Option<&ServerLoss> {
        match self {
            Self::RunStopped { reason } => reason.loss(),
            Self::NoRoundCompared { reasons } => reasons.iter().find_map(|r| r.fact.loss()),
            _ => None,
        }
    }
}

impl VerdictReason {
    /// How the server was lost, when that is the reason.
    pub fn loss(&self) -> Option<&ServerLoss> {
        match self {
            Self::ServerLost { loss } => Some(loss),
            Self::RoundNotCompared { reasons, .. } => reasons.iter().find_map(|r| r.fact.loss()),
            _ => None,
        }
    }
}

impl super::InvalidReason {
    /// How the server was lost, when that is the reason.
    pub fn loss(&self) -> Option<&ServerLoss> {
        match self {
            Self::ServerLost { loss } => Some(loss),
            _ => None,
        }
    }
}

/// What speaks against taking a unit's figures for a success: `faults` of a unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum UnitFault {
    /// The server was lost.
    ServerLost {
        /// How.
        loss: ServerLoss,
        /// Whether it was started again.
        restarted: bool,
    },
    /// `pair`: sessions are not done.
    SessionsNotDone {
        /// Sessions that are.
        done: u64,
        /// Sessions in all arms and rounds.
        of: u64,
    },
    /// `pair`: a reason of the verdict.
    Verdict {
        /// The reason.
        reason: Placed<VerdictReason>,
    },
    /// `fit`: a combination was refused, failed or forgot.
    Cell {
        /// Number of sessions.
        sessions: u32,
        /// Context length in tokens.
        context_tokens: u64,
        /// What it came to.
        verdict: CellVerdict,
        /// Why.
        reason: Option<CellReason>,
    },
    /// `ttft`: not every request was answered.
    NotAnswered {
        /// Requests sent at once.
        requests: u32,
        /// Requests answered in all rounds.
        answered: u32,
        /// Requests sent in all rounds.
        asked: u32,
        /// Why.
        reason: Option<TtftReason>,
    },
    /// Processes of the command were left running.
    ProcessesLeft {
        /// Their command lines.
        commands: Vec<String>,
    },
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

/// Why a combination cannot be the best, or why figures are missing: `faults` of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum RowFault {
    /// A unit could not be measured.
    UnitFailed {
        /// In these rounds.
        rounds: Vec<u32>,
        /// Why.
        failure: UnitFailure,
    },
    /// Something speaks against a unit's figures.
    UnitFault {
        /// In these rounds.
        rounds: Vec<u32>,
        /// What.
        fault: UnitFault,
    },
    /// A setting did not take effect.
    SettingDidNothing {
        /// The setting.
        name: String,
        /// The value that the server told.
        told: Option<String>,
        /// Who told it.
        by: Option<ProofSource>,
    },
    /// Not the same server answered in every round.
    OtherServer {
        /// What differs: `version`, `model`, `program` or `model's file`.
        what: String,
        /// What it was first; `null` when unknown.
        was: Option<String>,
        /// What it was then; `null` when unknown.
        then: Option<String>,
    },
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

/// Where the value of a setting was read: `told_by`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum ProofSource {
    /// In a line of the log.
    Log {
        /// The line.
        line: String,
    },
    /// In a metric.
    Metric {
        /// Its name.
        name: String,
    },
    /// In a field of an answer.
    Field {
        /// The route.
        path: String,
        /// JSON pointer of the field.
        field: String,
    },
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

/// What a reader of a sweep should know: `warnings` of its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum SweepWarning {
    /// One round: no intervals.
    OneRound,
    /// Many combinations are compared: some seem to differ by chance.
    ManyComparisons {
        /// Combinations compared with the first.
        comparisons: u64,
        /// How many of them would seem to differ by chance alone.
        by_chance: f64,
    },
    /// flashrig's own client was the bottleneck: those figures are not the server's.
    ClientBottleneck {
        /// The units, as their settings.
        units: Vec<NamedUnit>,
        /// Further units that are not named.
        more: u64,
        /// Units in all.
        of: u64,
    },
    /// Units were cut short and measured anew.
    CutShort {
        /// How many.
        units: u64,
    },
    /// The sweep was taken up again.
    Resumed {
        /// How often.
        times: u32,
    },
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

/// A unit by the settings that differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedUnit {
    /// Its settings, as `KEY=VALUE, …`.
    pub settings: String,
    /// Its round.
    pub round: u32,
}

super::fact!(UnitFailure, UnitFault, RowFault, ProofSource, SweepWarning);
