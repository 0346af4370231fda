//! Why a run stopped early.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ServerLoss, Stall};

/// Why a run stopped early: `stopped_because`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum StoppedBecause {
    /// Ctrl-C or a termination signal.
    ByUser,
    /// The server was lost and is not there again.
    ServerLost {
        /// How.
        loss: ServerLoss,
        /// Why it was not started again.
        not_restarted: NotRestarted,
    },
    /// The server stopped generating.
    ServerStalled {
        /// What is known of it.
        stall: Stall,
    },
    /// flashrig or its surroundings failed.
    Failed {
        /// What went wrong, with its causes.
        error: String,
    },
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

impl StoppedBecause {
    /// How the server was lost, when that is the reason.
    pub fn loss(&self) -> Option<&ServerLoss> {
        match self {
            Self::ServerLost { loss, .. } => Some(loss),
            _ => None,
        }
    }
}

/// Why a lost server was not started again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NotRestarted {
    /// It was not needed any more.
    NotNeeded,
    /// flashrig did not start it in the first place.
    NotManaged,
    /// Its profile forbids it.
    Forbidden,
    /// It did not work.
    Failed {
        /// What went wrong, with its causes.
        error: String,
    },
}

super::fact!(StoppedBecause);
