//! A session: a cold turn, then warm ones.

use super::{Client, LoadError};
use crate::records::{Calibration, Turn};

/// What a session is made of.
#[derive(Clone, Debug)]
pub struct SessionPlan {
    /// Name, for its rows.
    pub id: String,
    /// Tokens that the last turn's prompt and answer come to.
    pub context_tokens: u64,
    /// Warm turns, each with a question. With 0 there is only the cold turn.
    pub checks: u32,
    /// Tokens of each answer.
    pub answer_tokens: u32,
    /// Seed of words and of the facts' keys: the same for all sessions of a run.
    pub seed: u64,
    /// Seed of what is unlike for each session, round and cell; see [`salt`].
    pub salt: u64,
    /// Whether all prompts of this seed begin alike, and differ only at the end.
    pub shared_prefix: bool,
}

/// A salt from what tells a session from every other one, such as round, context, number of
/// sessions and place among them.
pub fn salt(parts: &[u64]) -> u64 {
    let _ = parts;
    todo!()
}

/// A session whose first body is ready.
#[derive(Debug)]
pub struct Prepared;

impl Prepared {
    /// Builds the first prompt.
    ///
    /// # Errors
    /// The context leaves no room for the turns.
    pub fn new(
        client: &Client,
        calibration: &Calibration,
        plan: SessionPlan,
    ) -> Result<Self, LoadError> {
        let _ = (client, calibration, plan);
        todo!()
    }

    /// Sends the first turn.
    pub async fn cold(&mut self, client: &Client) -> Turn {
        let _ = client;
        todo!()
    }

    /// Sends the next turn; `index` counts from 1. Not to be called after a turn that failed.
    pub async fn warm(&mut self, client: &Client, index: u32) -> Turn {
        let _ = (client, index);
        todo!()
    }
}
