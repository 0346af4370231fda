//! What became of the server: how it was lost, how it stopped answering.

use flashrig_clock::Seconds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the server was lost without having been asked to go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum ServerLoss {
    /// Its process, which flashrig had started, ended.
    Died {
        /// The server's name.
        server: String,
        /// How the process ended.
        exit: ServerExit,
        /// The end of its log.
        log: LogTail,
    },
    /// Nobody answers at its address any more.
    Gone {
        /// What a connection came to.
        error: String,
        /// Whether flashrig started it; its process lives then.
        started_by_flashrig: bool,
        /// The end of its log.
        log: LogTail,
    },
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

/// How the process of a server ended, and what that means.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerExit {
    /// Exit code; `null` when a signal ended it, or when nobody knows.
    pub exit_code: Option<i32>,
    /// Number of the signal that ended it, also of one that the exit code tells of.
    pub signal: Option<i32>,
    /// Name of that signal, e.g. `SIGKILL`.
    pub signal_name: Option<String>,
    /// Whether the system killed anything for lack of memory meanwhile; `null` when it does not
    /// count that.
    pub out_of_memory_kills: Option<bool>,
    /// A line of its log that speaks of a lack of memory.
    pub memory_line: Option<String>,
    /// Why it did not get ready when it was started again; `null` when it was ready before.
    #[serde(default)]
    pub restart_error: Option<String>,
}

/// The end of a server's log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogTail {
    /// A fault that stands before the last lines.
    pub fault: Option<String>,
    /// The last lines that say something, oldest first, each cut to a bearable length.
    pub last: Vec<String>,
}

/// A server that accepts requests and generates no more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stall {
    /// Requests that reached it.
    pub sent: u32,
    /// Those of them that got a token.
    pub generated: u32,
    /// Requests that waited in vain.
    pub waited: u32,
    /// For how long.
    pub limit_s: Seconds,
    /// What it still does.
    pub pulse: Pulse,
    /// The end of its log.
    pub log: LogTail,
}

/// What a server still does. Unknown is `null`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pulse {
    /// Whether anybody answers there at all.
    pub is_there: bool,
    /// Status of its health check; `null` when it gave no answer.
    pub health: Option<u16>,
    /// Status of its model list; `null` when it gave no answer.
    pub models: Option<u16>,
    /// Requests that it works on, by its metrics.
    pub requests: Option<f64>,
}

/// What became of a server that flashrig started: `words` of its life.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum LifeFact {
    /// It was lost.
    Lost {
        /// How.
        loss: ServerLoss,
    },
    /// It was started again, and is ready.
    Restarted {
        /// The server's name.
        server: String,
        /// From its start to its being ready.
        ready_after_s: Seconds,
    },
    /// It was brought back to a known state.
    Reset {
        /// The server's name.
        server: String,
        /// How long that took.
        took_s: Seconds,
    },
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

super::fact!(ServerLoss, LifeFact);

/// Trouble of the server that ends what is measured.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerTrouble {
    /// It was lost.
    Lost(ServerLoss),
    /// It stopped generating.
    Stalled(Stall),
}

impl From<ServerTrouble> for super::SessionDetail {
    fn from(trouble: ServerTrouble) -> Self {
        match trouble {
            ServerTrouble::Lost(loss) => Self::ServerLost { loss },
            ServerTrouble::Stalled(stall) => Self::ServerStalled { stall },
        }
    }
}
