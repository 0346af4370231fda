//! Waiting for the server to be idle between arms: generation may go on after a client left.

use std::time::Duration;

use super::Connected;
use super::http::{HttpError, ask};
use crate::clock::Stamp;

/// How long a server without such metrics is left alone.
const QUIET: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(100);
const ASK_LIMIT: Duration = Duration::from_secs(5);

/// The server did not become idle.
#[derive(Debug, thiserror::Error)]
pub enum IdleError {
    /// It still works.
    #[error("the server at {url} still works on {requests} {limit:?} after the last client left")]
    Busy {
        /// The server.
        url: String,
        /// How many requests, in words.
        requests: String,
        /// How long was waited.
        limit: Duration,
    },
    /// It is gone.
    #[error("the server is gone: {0}")]
    Gone(HttpError),
}

/// Waits until the server says that it works on nothing; a server that does not say is left
/// alone for one second. Returns how long that took.
///
/// # Errors
/// It still works on something after `limit`, or nobody answers there any more.
pub async fn wait_idle(server: &Connected, limit: Duration) -> Result<Duration, IdleError> {
    let start = Stamp::now();
    let url = format!("{}{}", server.record.url, server.metrics.path);
    loop {
        let answer = ask(&url, server.key.as_ref(), None, ASK_LIMIT).await;
        let waited = Stamp::now().since(start);
        let requests = match answer {
            Err(gone @ HttpError::Unreachable { .. }) => return Err(IdleError::Gone(gone)),
            // A server too busy to answer is not idle.
            Err(HttpError::Silent { .. }) => "its metrics' answer".to_owned(),
            Err(_) => return Ok(leave_alone(start).await),
            Ok(a) => {
                let text = String::from_utf8_lossy(&a.body);
                match (a.status == 200)
                    .then(|| server.metrics.requests(&text))
                    .flatten()
                {
                    None => return Ok(leave_alone(start).await),
                    Some(n) if n <= 0.0 => return Ok(waited),
                    Some(n) => format!("{n} requests"),
                }
            }
        };
        if waited > limit {
            return Err(IdleError::Busy {
                url: server.record.url.clone(),
                requests,
                limit,
            });
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn leave_alone(start: Stamp) -> Duration {
    tokio::time::sleep(QUIET).await;
    Stamp::now().since(start)
}

/// Whether anybody answers there, whatever it says.
///
/// # Errors
/// Nobody does.
pub async fn still_there(server: &Connected) -> Result<(), IdleError> {
    let url = format!("{}/v1/models", server.record.url);
    match ask(&url, server.key.as_ref(), None, ASK_LIMIT).await {
        Err(gone @ HttpError::Unreachable { .. }) => Err(IdleError::Gone(gone)),
        _ => Ok(()),
    }
}
