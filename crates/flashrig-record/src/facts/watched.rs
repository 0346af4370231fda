//! Where sources of one figure contradict each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ThreeWays;

/// Where clients, metrics and log contradict each other: `disagreements`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum Disagreement {
    /// Cached prompt tokens differ.
    CachedTokens {
        /// By how many, at most.
        by: u64,
        /// What each source tells.
        sources: ThreeWays,
        /// Whole answers that clients had.
        answers: u64,
        /// Finished requests that the log tells of; `null` when that is as many, or none.
        log_finished: Option<u64>,
    },
    /// Refused requests differ.
    Refused {
        /// By how many, at most.
        by: u64,
        /// What each source tells.
        sources: ThreeWays,
    },
    /// Nothing of the log that is followed was understood.
    LogNotUnderstood,
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

super::fact!(Disagreement);
