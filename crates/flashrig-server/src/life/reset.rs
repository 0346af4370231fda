//! Bringing a server back to a known state.

use std::time::Duration;

use super::error::LifeError;
use crate::profiles::{Reset, ResetRequest};
use flashrig_clock::Stamp;
use flashrig_http::Secret;
use flashrig_http::send;

const LIMIT: Duration = Duration::from_secs(60);

/// How, and whom to ask.
#[derive(Debug)]
pub(crate) struct Resets {
    pub(crate) reset: Reset,
    pub(crate) url: String,
    pub(crate) key: Option<Secret>,
}

impl Resets {
    pub(super) async fn send(&self, requests: &[ResetRequest]) -> Result<Duration, LifeError> {
        let begun = Stamp::now();
        for request in requests {
            let url = format!("{}{}", self.url, request.path);
            let body = request.body.as_ref();
            let answer = send(&request.method, &url, self.key.as_ref(), body, LIMIT).await;
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
