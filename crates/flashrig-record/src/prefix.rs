//! What successive prompts of a thread have in common, and what the server made of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a prompt departs from the one before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrefixBreak {
    /// Path of the field in the request's body, e.g. `system[0]` or `tools[3].description`.
    pub field: String,
    /// Bytes of the field's text that are still the same.
    pub byte: u64,
}

/// A prompt beside the one before it in its thread, both as the client sent them: a cold-cache
/// nonce is no change. Bytes are those of the prompt laid out as system, tools, messages, which
/// is what servers are assumed to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrefixFact {
    /// The number of the request before.
    pub previous: u32,
    /// Bytes that both have in common from the start on.
    pub common_bytes: u64,
    /// Bytes of this prompt.
    pub total_bytes: u64,
    /// Where this prompt departs; `null` when it holds the whole of the one before.
    pub breaks_at: Option<PrefixBreak>,
    /// Prompt tokens that the server could have reused: its input tokens times the share of
    /// bytes in common. `null` when the server told no input tokens.
    pub reusable_tokens: Option<u64>,
    /// Prompt tokens that the server says it reused.
    pub reused_tokens: Option<u64>,
}

/// A place at which an agent changes its own prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrefixChange {
    /// The field; `[*]` stands for a place in the messages that moves.
    pub field: String,
    /// The first byte of the field at which it happened.
    pub byte: u64,
    /// In how many turns.
    pub turns: u64,
}

/// The prefixes of a session. A turn is a request with one before it in its thread; sending the
/// same body again is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrefixSummary {
    /// Turns.
    pub turns: u64,
    /// Turns in which the agent changed what it had sent before.
    pub changed: u64,
    /// Where, the most frequent place first.
    pub changes: Vec<PrefixChange>,
    /// Turns with a stable prefix of which the server says what it reused, the request before
    /// having been answered.
    pub judged: u64,
    /// Those of them in which it reused less than half of what it could have.
    pub lost: u64,
    /// Tokens that could have been reused, over turns of which both figures are known.
    pub reusable_tokens: Option<u64>,
    /// Those that the server says it reused.
    pub reused_tokens: Option<u64>,
}
