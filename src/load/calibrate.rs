//! How many tokens the server counts for each part of a prompt.

use super::{Client, LoadDialect, LoadError};
use crate::gateway::Upstream;
use crate::records::Calibration;

/// Finds a dialect in which the server streams: OpenAI chat completions, else Anthropic messages.
///
/// # Errors
/// It streams in neither, or is no LLM server; with what it said.
pub async fn choose_dialect(upstream: &Upstream, model: &str) -> Result<LoadDialect, LoadError> {
    let _ = (upstream, model);
    todo!()
}

/// Measures how many tokens the server counts for lines, facts and turns, and whether it takes the
/// fields that fix an answer's length.
///
/// # Errors
/// The server does not stream, tells no usage, refuses, or fails.
pub async fn calibrate(client: &Client, seed: u64) -> Result<Calibration, LoadError> {
    let _ = (client, seed);
    todo!()
}
