//! What all requests of a listener share.

use std::sync::Arc;

use super::auth::Auth;
use super::body_budget::BodyBudget;
use super::limits::Limits;
use super::prompt::PromptCap;
use flashrig_http::Pool;

/// What all requests of a listener share.
pub(super) struct Shared {
    pub(super) pool: Arc<Pool>,
    pub(super) auth: Auth,
    pub(super) limits: Limits,
    pub(super) body_budget: BodyBudget,
    pub(super) nonce: Option<String>,
    pub(super) prompt_cap: Option<Arc<PromptCap>>,
    /// The served model, when probes are answered here.
    pub(super) answer_probes: Option<String>,
}
