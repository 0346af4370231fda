//! Why a run could not begin, go on, or be recorded.

use crate::store::StoreError;
use flashrig_http::HttpError;
use flashrig_record::{NotRestarted, ServerLoss, StoppedBecause};

/// A run that could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The results folder cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing was recorded.
    #[error("the run was not recorded")]
    Nothing,
}

/// Why the warm-up failed.
#[derive(Debug, thiserror::Error)]
pub enum WarmUpError {
    /// No answer.
    #[error("the warm-up request failed: {0}")]
    Http(#[from] HttpError),
    /// The server does not know the route.
    #[error(
        "the server at {url} has no {path}, which the agent needs; it answered {status}: {message}. \
         Choose an agent that speaks the server's protocol, or put a translating proxy in between"
    )]
    NoRoute {
        /// The server.
        url: String,
        /// The route.
        path: &'static str,
        /// Its answer.
        status: u16,
        /// Its words.
        message: String,
    },
    /// The server refused or failed a short request.
    #[error("the server at {url} {what} {shape} to {path}: {message}")]
    Refused {
        /// The server.
        url: String,
        /// What it did.
        what: &'static str,
        /// What was sent.
        shape: &'static str,
        /// The route.
        path: &'static str,
        /// Its answer.
        message: String,
    },
    /// It accepts and does not generate.
    #[error("the server at {url} accepts requests and does not generate: {message}")]
    Stalled {
        /// The server.
        url: String,
        /// Counts, signs of life, the end of its log, and what to do.
        message: String,
    },
}

/// A lost server that is not there again.
#[derive(Clone, Debug)]
pub struct NotBroughtBack {
    pub(super) loss: ServerLoss,
    pub(super) not_restarted: NotRestarted,
}

impl NotBroughtBack {
    /// The end of a run by it.
    pub fn stopped(&self) -> StoppedBecause {
        StoppedBecause::ServerLost {
            loss: self.loss.clone(),
            not_restarted: self.not_restarted.clone(),
        }
    }
}

impl std::fmt::Display for NotBroughtBack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.stopped().fmt(f)
    }
}

impl std::error::Error for NotBroughtBack {}
