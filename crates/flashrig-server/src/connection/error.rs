//! Why a server cannot be measured.

use crate::life::StartError;
use crate::profiles::DoorSpecError;
use flashrig_config::unknown;
use flashrig_http::{HttpError, UpstreamError};
use flashrig_sim::SimError;

/// Why a server cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Not there, or no LLM server.
    #[error("{0}; check that the server runs, and its address")]
    Http(HttpError),
    /// Something is there that lets nobody in; says what to do.
    #[error(transparent)]
    Closed(HttpError),
    /// The address cannot be used.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// The embedded server did not start.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The server did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The model is not served.
    #[error("the server at {url}: {}", unknown("model", .model, .served.iter().map(String::as_str)))]
    Model {
        /// The server.
        url: String,
        /// The model asked for.
        model: String,
        /// The models it serves.
        served: Vec<String>,
    },
    /// Several models, or no list, and no `--model`.
    #[error("{0}")]
    ModelNeeded(String),
    /// What opens its door cannot be used.
    #[error(transparent)]
    Door(#[from] DoorSpecError),
}

impl From<HttpError> for ConnectError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Tls { .. } | HttpError::Redirected(_) | HttpError::TurnedAway { .. } => {
                Self::Closed(error)
            }
            other => Self::Http(other),
        }
    }
}

impl ConnectError {
    /// Whether it was typed wrongly, so that nothing was tried.
    pub fn is_mistyped(&self) -> bool {
        match self {
            Self::Upstream(_) | Self::Door(_) => true,
            Self::Start(error) => error.is_mistyped(),
            _ => false,
        }
    }
}
