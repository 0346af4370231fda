//! Why the times of a round are not compared.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ServerLoss;
use crate::{ArmKind, ServerEvent, Status};

/// Why the times of a round are not compared: `invalid_reasons` of a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum InvalidReason {
    /// The round did not finish.
    RoundUnfinished,
    /// The arm did not run.
    ArmMissing,
    /// The server was lost.
    ServerLost {
        /// How.
        loss: ServerLoss,
    },
    /// Not every session ran.
    SessionsMissing {
        /// Sessions that ran.
        ran: u64,
        /// Sessions planned.
        planned: u64,
    },
    /// The server failed every request in flight.
    ServerFailed {
        /// The event.
        event: ServerEvent,
    },
    /// The session did not come to its own end.
    SessionNotCompleted {
        /// How it ended.
        status: Status,
    },
    /// Requests of the session were refused, or answers broke off.
    RequestsLost {
        /// Requests refused or answered with an error.
        refused: u64,
        /// Answers broken off.
        broken_off: u64,
    },
    /// flashrig's gateway refused prompts longer than `--max-prompt`.
    LongPrompts {
        /// How many.
        prompts: u64,
    },
    /// The server redirected requests of the session. flashrig's gateway did not follow, and did not
    /// let the client go round it.
    Redirected {
        /// How many.
        requests: u64,
        /// What the first redirect was and where it pointed to, and what to do.
        message: String,
    },
    /// Sessions that must run one after the other overlapped.
    Overlapped,
    /// Something else used the machine's processors.
    ForeignLoad {
        /// Share of all processors, 0 to 1.
        cpu_share: f64,
    },
    /// A hypervisor gave the machine's processors to others.
    StolenTime {
        /// Share of all processors, 0 to 1.
        cpu_share: f64,
    },
    /// The machine was short of memory.
    MemoryPressure {
        /// Share of the time in which some task waited for memory, 0 to 1.
        share: f64,
    },
    /// The agent's program was replaced during the run.
    ProgramChanged {
        /// The agent.
        agent: String,
    },
    /// The server says that prompts stay as long as they were, while they grow.
    PromptsCut {
        /// Requests whose prompt was cut.
        requests: u64,
        /// Prompt tokens that the server counts at most.
        tokens: u64,
    },
    /// The session's work was done in one arm only.
    DoneInOneArm {
        /// Where it was done.
        done: ArmKind,
        /// Where it was not.
        not_done: ArmKind,
    },
    /// The session's agent exited by itself in one arm only.
    ExitedInOneArm,
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

super::fact!(InvalidReason);
