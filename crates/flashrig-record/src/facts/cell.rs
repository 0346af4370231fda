//! Why a combination of `fit` or a step of `ttft` ended early, was left out or is not a plain pass.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LogTail, Pulse, ServerLoss, ServerTrouble, Stall};
use crate::Outcome;

/// Why a combination ended before its time: `words` of what stopped it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum CellStopReason {
    /// Ctrl-C or a termination signal.
    ByUser,
    /// The server was lost.
    ServerLost {
        /// How.
        loss: ServerLoss,
    },
    /// The server was lost, and is not there again.
    NotBroughtBack {
        /// What went wrong, with what to do.
        error: String,
    },
    /// The server stopped generating.
    ServerStalled {
        /// What is known of it.
        stall: Stall,
    },
    /// A turn of a session was not answered whole.
    TurnFailed {
        /// The session.
        session: String,
        /// The turn; 0 is the first one.
        turn: u32,
        /// How it ended.
        outcome: Outcome,
        /// The server's words.
        message: Option<String>,
        /// What the server still did when it got nothing more.
        life: Option<Life>,
    },
    /// Nobody answers at the server's address.
    Unreachable {
        /// What a connection came to.
        error: Option<String>,
    },
    /// flashrig itself failed.
    RigFailed {
        /// What went wrong.
        error: String,
    },
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

/// Signs of life of a server, with the end of its log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Life {
    /// What it still does.
    pub pulse: Pulse,
    /// The end of its log.
    pub log: LogTail,
}

impl From<ServerTrouble> for CellStopReason {
    fn from(trouble: ServerTrouble) -> Self {
        match trouble {
            ServerTrouble::Lost(loss) => Self::ServerLost { loss },
            ServerTrouble::Stalled(stall) => Self::ServerStalled { stall },
        }
    }
}

/// Why a combination was left out: `reason`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum LeftOutReason {
    /// The server refused this number of sessions at this context length.
    ServerRefused {
        /// How many sessions.
        at_sessions: u32,
    },
    /// The server stalled at this number of sessions.
    ServerStalled {
        /// How many sessions.
        at_sessions: u32,
    },
    /// The server could not serve this number of sessions.
    ServerFailed {
        /// How many sessions.
        at_sessions: u32,
    },
    /// The server had stopped answering.
    ServerSilent,
    /// The server was gone.
    ServerGone,
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

/// Why a combination is not a plain pass, or why figures are missing: `reasons` of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum CellReason {
    /// It was left out.
    LeftOut {
        /// In these rounds; empty for all.
        rounds: Vec<u32>,
        /// Why.
        reason: LeftOutReason,
    },
    /// The run ended before it was measured.
    NotMeasured,
    /// It ended early.
    EndedEarly {
        /// In this round.
        round: u32,
        /// Why.
        reason: CellStopReason,
    },
    /// flashrig's own client was the bottleneck: the figures are not the server's.
    ClientBottleneck {
        /// In these rounds.
        rounds: Vec<u32>,
    },
    /// The client was the bottleneck of the lone session that this is compared with.
    BaselineBottleneck {
        /// In these rounds.
        rounds: Vec<u32>,
    },
    /// The server itself counts more refused requests than the client saw.
    ServerCountsRefused {
        /// By the server.
        server: u64,
        /// By the client.
        client: u64,
    },
    /// A session answered too few questions right.
    RecallShort {
        /// The session.
        session: String,
        /// In this round.
        round: u32,
        /// Right answers.
        right: u32,
        /// Questions asked.
        asked: u32,
        /// What was wanted.
        wanted: RecallWanted,
    },
    /// No round has all warm turns both of this and of the lone session.
    NoSlowdown,
    /// Answers were not equally long alone and together.
    UnequalAnswers {
        /// The slowdown by time per output token.
        per_token: Option<f64>,
    },
    /// The slowest session's turns are above a threshold.
    TooSlow {
        /// Their time over their time alone.
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
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

/// How many right answers were wanted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RecallWanted {
    /// Every one.
    All,
    /// A share.
    Share {
        /// In whole percent.
        percent: f64,
    },
    /// As many as one session alone got right.
    AsAlone {
        /// Right answers.
        alone_right: u32,
        /// Questions asked.
        alone_asked: u32,
    },
}

/// Why figures of a row of `ttft` are missing or not to be trusted: `reasons` of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum TtftReason {
    /// An answer came in one piece, so that its first token is unknown.
    AnswerInOnePiece,
    /// A request was not answered whole.
    RequestFailed {
        /// How it ended.
        outcome: Outcome,
        /// The server's words.
        message: Option<String>,
    },
    /// Fewer requests than asked for were open at one time.
    FewerOpen {
        /// How many.
        most: u32,
    },
    /// flashrig's own client was the bottleneck: the figures are not the server's alone.
    ClientBottleneck,
    /// Not every round was measured.
    RoundsMissing {
        /// Rounds measured.
        measured: u32,
        /// Rounds planned.
        planned: u32,
    },
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

super::fact!(CellStopReason, LeftOutReason, CellReason, TtftReason);
