//! `ttft`: how long first tokens took with so many requests at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::TtftReason;
use flashrig_clock::Seconds;

/// So many requests at once, over all rounds. Times are the server's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TtftRow {
    /// Requests sent at once.
    pub agents: u32,
    /// Rounds that were measured.
    pub rounds: u32,
    /// Requests sent in all rounds.
    pub asked: u32,
    /// Those whose answers came whole.
    pub answered: u32,
    /// First-token times of all requests but the long one; `null` when none had a token.
    pub ttft_s: Option<TtftSpread>,
    /// Median first-token time of the one long prompt among them; `null` without one.
    pub long_ttft_s: Option<Seconds>,
    /// From the first request's sending to the last answer's end: the median of the rounds in which
    /// all answers came whole.
    pub wall_s: Option<Seconds>,
    /// Prompt tokens of all answered requests; `null` when any of them is unknown.
    pub input_tokens: Option<u64>,
    /// Of them cached.
    pub cached_tokens: Option<u64>,
    /// Tokens generated in all.
    pub output_tokens: Option<u64>,
    /// Tokens generated a second by all together: the median of the rounds that `wall_s` is of.
    pub tokens_per_s: Option<f64>,
    /// Last request's sending minus the first one's: the worst round's.
    pub start_skew_s: Option<Seconds>,
    /// Requests that were refused.
    pub refused: u32,
    /// Requests that got no token, or no further one, within the limit.
    pub stalled: u32,
    /// Requests that failed otherwise.
    pub failed: u32,
    /// Whether flashrig's own client was the bottleneck in any round.
    pub client_bottleneck: bool,
    /// Why figures are missing or not to be trusted.
    pub reasons: Vec<TtftReason>,
}

/// First-token times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TtftSpread {
    /// The shortest.
    pub best: Seconds,
    /// The median.
    pub median: Seconds,
    /// The longest.
    pub worst: Seconds,
    /// The longest less the shortest of the same round: the worst round's.
    pub spread: Seconds,
    /// How many there were.
    pub n: u32,
}
