//! One unscored request of each form that the run will send: the first request of a form pays
//! set-up in many servers, and a form that the server does not speak is found out before
//! anything is measured.

use std::time::Duration;

use serde_json::json;

use super::Connected;
use super::http::{HttpError, ask};
use crate::records::Dialect;

/// A first request may load the model.
const LIMIT: Duration = Duration::from_secs(600);

/// Why the warm-up failed.
#[derive(Debug, thiserror::Error)]
pub enum WarmUpError {
    /// No answer.
    #[error("the warm-up request failed: {0}")]
    Http(#[from] HttpError),
    /// The server does not know the route.
    #[error(
        "the server at {url} has no {path}, which the agent needs; it answered {status}: {words}. \
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
        words: String,
    },
    /// The server refused a plain short request.
    #[error("the server at {url} refused a short request to {path} with {status}: {words}")]
    Refused {
        /// The server.
        url: String,
        /// The route.
        path: &'static str,
        /// Its answer.
        status: u16,
        /// Its words.
        words: String,
    },
}

/// Sends one short streaming request of the dialect. Dialects that generate nothing need none.
///
/// # Errors
/// See [`WarmUpError`].
pub async fn warm_up(server: &Connected, dialect: Dialect) -> Result<(), WarmUpError> {
    let model = &server.record.model;
    let message = json!([{"role": "user", "content": "Reply with the word ready."}]);
    let (path, body) = match dialect {
        Dialect::AnthropicMessages => (
            "/v1/messages",
            json!({"model": model, "max_tokens": 8, "stream": true, "messages": message}),
        ),
        Dialect::OpenaiChat => (
            "/v1/chat/completions",
            json!({"model": model, "max_tokens": 8, "stream": true, "messages": message}),
        ),
        Dialect::OpenaiResponses => (
            "/v1/responses",
            json!({"model": model, "max_output_tokens": 16, "stream": true, "input": message}),
        ),
        Dialect::AnthropicCountTokens | Dialect::Models | Dialect::Other => return Ok(()),
    };
    let url = &server.record.url;
    let answer = ask(
        &format!("{url}{path}"),
        server.key.as_ref(),
        Some(&body),
        LIMIT,
    )
    .await?;
    let (status, words, url) = (answer.status, answer.words(), url.clone());
    match status {
        200..=299 => Ok(()),
        404 | 405 | 501 => Err(WarmUpError::NoRoute {
            url,
            path,
            status,
            words,
        }),
        _ => Err(WarmUpError::Refused {
            url,
            path,
            status,
            words,
        }),
    }
}
