//! Bringing a server back to a known state.

use std::time::Duration;

use super::error::LifeError;
use crate::profiles::{Reset, ResetRequest};
use flashrig_clock::Stamp;
use flashrig_http::{Upstream, send};

const LIMIT: Duration = Duration::from_secs(60);

/// How, and whom to ask.
#[derive(Debug)]
pub(crate) struct Resets {
    pub(crate) reset: Reset,
    pub(crate) server: Upstream,
}

impl Resets {
    pub(super) async fn send(&self, requests: &[ResetRequest]) -> Result<Duration, LifeError> {
        let begun = Stamp::now();
        for request in requests {
            let body = request.body.as_ref();
            let answer = send(&request.method, &self.server, &request.path, body, LIMIT).await;
            let message = match answer {
                Ok(answer) if answer.status < 400 => continue,
                Ok(answer) => format!("status {}: {}", answer.status, answer.label()),
                Err(error) => error.to_string(),
            };
            return Err(LifeError::Request {
                method: request.method.to_string(),
                path: request.path.clone(),
                message,
            });
        }
        Ok(Stamp::now().since(begun))
    }
}
