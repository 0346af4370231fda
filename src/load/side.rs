//! One short request beside the sessions.

use super::Client;
use crate::records::{Calibration, SideTurn};

/// What a side request is made of.
#[derive(Clone, Debug)]
pub struct SidePlan {
    /// Name, for its row.
    pub id: String,
    /// Tokens of its prompt.
    pub prompt_tokens: u64,
    /// Tokens of its answer.
    pub answer_tokens: u32,
    /// Seed of its words.
    pub seed: u64,
    /// Unlike for each; see [`super::salt`].
    pub salt: u64,
    /// Whether it is sent while first turns are being read.
    pub during_cold: bool,
}

/// Sends it.
pub async fn side(client: &Client, calibration: &Calibration, plan: SidePlan) -> SideTurn {
    let _ = (client, calibration, plan);
    todo!()
}
