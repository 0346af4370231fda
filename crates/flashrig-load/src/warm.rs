//! A cold turn and a warm one that nobody scores: the first request of a shape pays set-up in many
//! servers, and what calibration sends is short.

use super::session::{Prepared, SessionPlan, salt};
use super::{Client, LoadError};
use flashrig_record::{Calibration, Outcome, Role, Turn};

/// A prompt of so many tokens has the shapes of longer ones: it fills a piece of the prefill of any
/// server that reads prompts piece by piece.
const LONG_ENOUGH: u64 = 8192;

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub struct WarmUp {
    /// Tokens of the first prompt and its answer; of a long one only the beginning is sent.
    pub tokens: u64,
    /// Tokens of each answer.
    pub answer_tokens: u32,
    /// Whether a warm turn follows the cold one.
    pub warm_turn: bool,
    /// Seed of words.
    pub seed: u64,
    /// How often it was done before: no prompt is sent twice.
    pub number: u64,
}

/// Sends it.
///
/// # Errors
/// The server refuses, fails or stalls.
pub async fn warm_up(
    client: &Client,
    calibration: &Calibration,
    what: WarmUp,
) -> Result<(), LoadError> {
    let plan = SessionPlan {
        id: "warm-up".to_owned(),
        context_tokens: what.tokens.min(LONG_ENOUGH),
        checks: u32::from(what.warm_turn),
        answer_tokens: what.answer_tokens,
        // Nothing that a measured session is asked for stands in it.
        seed: !what.seed,
        salt: salt(&[what.seed, u64::MAX, what.number]),
        shared_prefix: false,
    };
    let tokens = plan
        .context_tokens
        .saturating_sub(plan.answer_tokens.into());
    let mut session = Prepared::with_first(client, calibration, plan, tokens as f64, Role::Probe);
    let first = session.cold(client).await;
    if first.outcome == Outcome::Refused {
        // It is refused again when it is measured, and then stands in the record, with the words of
        // both sides.
        return Ok(());
    }
    whole(client, first)?;
    if what.warm_turn {
        whole(client, session.warm(client, 1).await)?;
    }
    Ok(())
}

fn whole(client: &Client, turn: Turn) -> Result<(), LoadError> {
    let path = client.aim().dialect.path();
    let message = turn.error.map_or_else(String::new, |e| e.message);
    Err(match turn.outcome {
        Outcome::Complete => return Ok(()),
        Outcome::Unreachable => LoadError::Unreachable(message),
        Outcome::Stalled => LoadError::Stalled { path, message },
        Outcome::Refused | Outcome::Overloaded => LoadError::Refused { path, message },
        Outcome::Truncated => LoadError::Failed {
            path,
            message: "its answer broke off".to_owned(),
        },
        _ => LoadError::Failed { path, message },
    })
}
