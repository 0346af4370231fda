//! One short request beside the sessions.

use super::Client;
use super::session::{Prepared, SessionPlan};
use flashrig_record::{Calibration, Role, SideTurn};

/// What a side request is made of.
#[derive(Clone, Debug)]
pub struct SidePlan {
    /// Name, for its row.
    pub id: String,
    /// Tokens of its prompt; one that is too small for any prompt gets the smallest there is.
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

/// A side request whose body is ready.
#[derive(Debug)]
pub struct PreparedSide {
    request: Prepared,
    during_cold: bool,
}

impl PreparedSide {
    /// Builds its prompt.
    pub fn new(client: &Client, calibration: &Calibration, plan: SidePlan) -> Self {
        let tokens = plan.prompt_tokens as f64;
        let during_cold = plan.during_cold;
        let plan = SessionPlan {
            id: plan.id,
            context_tokens: plan.prompt_tokens + u64::from(plan.answer_tokens),
            checks: 0,
            answer_tokens: plan.answer_tokens,
            seed: plan.seed,
            salt: plan.salt,
            shared_prefix: false,
        };
        Self {
            request: Prepared::with_first(client, calibration, plan, tokens, Role::Side),
            during_cold,
        }
    }

    /// Sends it.
    pub async fn send(mut self, client: &Client) -> SideTurn {
        let turn = self.request.cold(client).await;
        SideTurn {
            during_cold: self.during_cold,
            wall_s: turn.wall_s,
            ttft_s: turn.ttft_s,
            outcome: turn.outcome,
            error: turn.error,
        }
    }
}

/// Builds and sends a side request.
pub async fn side(client: &Client, calibration: &Calibration, plan: SidePlan) -> SideTurn {
    PreparedSide::new(client, calibration, plan)
        .send(client)
        .await
}
