//! What a run of agents comes to: reasons of its verdict, and warnings.

use flashrig_clock::Seconds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{InvalidReason, MissingField, Placed, ServerLoss, SessionFailure};
use crate::{ArmKind, OddAnswers, ServerEvent};

/// Why the verdict is not a plain pass: `reasons` of the verdict of `pair`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum VerdictReason {
    /// The server failed every request in flight.
    ServerFailed {
        /// The event.
        event: ServerEvent,
    },
    /// The server was lost.
    ServerLost {
        /// How.
        loss: ServerLoss,
    },
    /// Sessions are not done.
    SessionFailed {
        /// Why.
        failures: Vec<SessionFailure>,
    },
    /// The times of a round are not compared.
    RoundNotCompared {
        /// The round, from 1.
        index: u32,
        /// Why.
        reasons: Vec<Placed<InvalidReason>>,
    },
    /// The slowest session is above a threshold.
    TooSlow {
        /// Its wall over its wall alone.
        slowdown: f64,
        /// The threshold.
        limit: f64,
        /// Some session's slowdown is at least this, with 95% confidence; `null` when one round was
        /// compared, which proves nothing.
        #[serde(default)]
        at_least: Option<f64>,
    },
    /// The rounds prove that no session is above the second threshold, and leave open whether all
    /// are below the first.
    PassNotProven {
        /// No session's slowdown is above this.
        at_most: f64,
        /// The first threshold.
        limit: f64,
        /// Rounds that would settle it, beside those measured; `null` when none would.
        more_rounds: Option<u32>,
        /// The same, those measured included.
        rounds_in_all: Option<u32>,
    },
    /// The rounds prove that some session is above the first threshold, and leave open whether one is
    /// above the second.
    FailNotExcluded {
        /// Some session's slowdown is at least this.
        at_least: f64,
        /// The second threshold.
        limit: f64,
        /// Rounds that would settle it, beside those measured; `null` when none would.
        more_rounds: Option<u32>,
        /// The same, those measured included.
        rounds_in_all: Option<u32>,
    },
    /// The rounds prove nothing about either threshold.
    Inconclusive {
        /// Some session's slowdown is at least this.
        low: f64,
        /// No session's slowdown is above this; `null` when rounds are missing that may have shown
        /// more.
        high: Option<f64>,
        /// Rounds that would settle it, beside those measured; `null` when none would.
        more_rounds: Option<u32>,
        /// The same, those measured included.
        #[serde(default)]
        rounds_in_all: Option<u32>,
    },
    /// Rounds are missing that may have shown a slowdown: the others prove no upper bound.
    UpperBoundWithheld {
        /// The rounds, from 1.
        rounds: Vec<u32>,
    },
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

/// What a reader should know before trusting the figures: `warnings` of the verdict of `pair`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum Warning {
    /// The server was started again: before and after are two processes.
    ServerRestarted {
        /// The server's name.
        server: String,
        /// From its start to its being ready.
        ready_after_s: Seconds,
    },
    /// The session asked for something beyond the machine and was refused.
    TriedToLeave {
        /// Whom it asked for, most often first.
        destinations: Vec<Destination>,
        /// Further destinations that are not named.
        more: u64,
    },
    /// The session reached something beyond the machine, as allowed.
    LeftMachine {
        /// Whom it asked for, most often first.
        destinations: Vec<Destination>,
        /// Further destinations that are not named.
        more: u64,
    },
    /// Another model answered than the one asked for.
    OtherModel {
        /// The model asked for.
        asked: String,
        /// The model that the answers name.
        answered: String,
    },
    /// First requests found cached tokens though the cache was to be cold.
    CacheNotCold {
        /// Sessions that found some.
        sessions: u64,
        /// Sessions in all.
        of: u64,
    },
    /// Requests lack the mark that keeps the cache cold.
    RequestsUnmarked {
        /// How many.
        requests: u64,
    },
    /// Requests were sent again while the first still ran.
    SentAgain {
        /// How many.
        requests: u64,
        /// Requests sent for each that was meant, at most; `null` when unknown.
        amplification: Option<f64>,
    },
    /// Streams lack required fields.
    StreamsLackFields {
        /// The fields, by the number of streams.
        fields: Vec<MissingField>,
        /// Requests that were sent again.
        sent_again: u64,
    },
    /// The times are of sessions whose work was not done.
    WorkNotDone,
    /// The system cannot prove that all processes are gone.
    ProcessesNotProven,
    /// Arms differ in the share of cached prompt tokens.
    CacheDiffers {
        /// The arm beside the one back to back.
        beside: ArmKind,
        /// Its share, 0 to 1.
        cached_share: f64,
        /// The share back to back.
        alone_cached_share: f64,
    },
    /// The agents themselves used most of the processors.
    AgentsBusy {
        /// The share used, 0 to 1.
        cpu_share: f64,
        /// Logical processors.
        cores: Option<u32>,
    },
    /// Answers contradict themselves, or times and speeds cannot be read from them.
    OddAnswers {
        /// How, and how many.
        odd: Vec<OddAnswers>,
    },
    /// What other programs used of the machine is unknown, so that their load is not ruled out.
    OtherLoadUnknown,
    /// Other programs used processors while the sessions ran.
    OtherLoad {
        /// Their largest share of all processors in an arm that is compared, 0 to 1.
        cpu_share: f64,
    },
    /// flashrig itself was late: instants may be off by as much.
    RigLate {
        /// In 1% of the time it was this late or more, in milliseconds.
        p99_ms: f64,
        /// At worst, in milliseconds.
        max_ms: f64,
    },
    /// The session did other work together than alone.
    OtherWork {
        /// Its slowdown for the same work.
        same_work: Option<f64>,
    },
    /// One valid round: no interval.
    OneRound,
    /// Rounds that go on until the verdict is settled ended before it was.
    BudgetUsed {
        /// Rounds that ran.
        rounds: u32,
        /// Whether the limit of time ended them, and not the largest number of rounds.
        by_time: bool,
    },
    /// Two equal arms differ: something else than company changes the times.
    EqualArmsDiffer {
        /// The largest factor between two walls of one session in one round.
        factor: f64,
    },
    /// The number of rounds is odd: one order of the arms came more often than the other.
    UnbalancedOrder {
        /// Rounds compared.
        rounds: u32,
    },
    /// The sessions started apart.
    StartsApart {
        /// Last start minus first start.
        skew_s: Seconds,
    },
    /// The gate never held a session back.
    GateIdle {
        /// Requests that it lets in.
        limit: u32,
    },
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

/// Somebody beyond the machine that a session asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Destination {
    /// Host and port; `others` for those that could not be told apart.
    pub address: String,
    /// Requests.
    pub requests: u64,
}

super::fact!(VerdictReason, Warning);
