//! How a check ended.

use flashrig_clock::Seconds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How one check of a task ended: `detail` of a check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum CheckDetail {
    /// It exited with 0 and printed what it must.
    Passed,
    /// It exited with another code.
    Exited {
        /// The code.
        exit_code: i32,
    },
    /// It exited with 0, but never printed what a real pass prints.
    LacksOutput {
        /// The regular expression that nothing matches.
        pattern: String,
        /// Bytes of output that were looked at.
        kept_bytes: u64,
        /// Earlier bytes that were not kept.
        dropped_bytes: u64,
    },
    /// A signal ended it.
    Killed {
        /// The signal's number.
        signal: i32,
    },
    /// It ran into its time limit.
    TimedOut {
        /// The limit.
        limit_s: Seconds,
    },
    /// It could not be started: no verdict about the agent's work.
    NotStarted {
        /// What the system said.
        error: String,
    },
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

super::fact!(CheckDetail);
