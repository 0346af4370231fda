//! One small request to a server, outside of anything measured: a thin layer on [`Pool`].

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::http::uri::InvalidUri;
use hyper::{Method, Request};
use llm_observe::Dialect;

use crate::pool::{Pool, SendError};
use crate::turned_away::{Redirect, TurnedAway};
use crate::upstream::Upstream;

/// The largest answer that is read.
const MAX_BODY: usize = 8 << 20;

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Body.
    pub body: Bytes,
    /// What it asks for, when it is a refusal (401 or 403).
    pub turned_away: Option<TurnedAway>,
}

impl Answer {
    /// The body as JSON; `None` when it is not JSON.
    pub fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// The beginning of the body, as one line for an error message.
    pub fn label(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        line.chars().take(300).collect()
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address cannot be used.
    #[error("{url:?} is not a usable address: {why}")]
    Address {
        /// The address.
        url: String,
        /// Why.
        why: String,
    },
    /// No connection.
    #[error("no server answers at {url}: {why}")]
    Unreachable {
        /// The address.
        url: String,
        /// The system's reason.
        why: String,
    },
    /// There is no trust in the connection.
    #[error("no secure connection to {url}: {why}")]
    Tls {
        /// The address.
        url: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// It points elsewhere. That is never followed.
    #[error("{0}")]
    Redirected(Redirect),
    /// It lets nobody in who does not open its door.
    #[error("the server at {url} answers {status} ({message}): {wants}")]
    TurnedAway {
        /// The address.
        url: String,
        /// The status.
        status: u16,
        /// The beginning of what it says.
        message: String,
        /// What it asks for.
        wants: TurnedAway,
    },
    /// It accepts connections and does not answer.
    #[error("the server at {url} accepts connections but did not answer within {limit:?}")]
    Silent {
        /// The address.
        url: String,
        /// The limit.
        limit: Duration,
    },
    /// The answer is not HTTP, breaks off or is longer than 8 MiB.
    #[error("the answer of {url} cannot be read: {why}")]
    Broken {
        /// The address.
        url: String,
        /// Why.
        why: String,
    },
}

/// Sends `GET`, or `POST` when there is a body, and reads the whole answer. `path` is what clients
/// name, `/v1/models` for instance, with its query.
///
/// # Errors
/// See [`HttpError`]; a status of 400 and above is an answer, not an error.
pub async fn ask(
    server: &Upstream,
    path: &str,
    body: Option<&serde_json::Value>,
    limit: Duration,
) -> Result<Answer, HttpError> {
    let method = if body.is_some() {
        Method::POST
    } else {
        Method::GET
    };
    send(&method, server, path, body, limit).await
}

/// The same with any method. A key goes out as both `Authorization: Bearer` and `x-api-key`. It
/// is covered in the answer, which is shown and stored.
///
/// # Errors
/// See [`HttpError`]; a status of 400 and above is an answer, not an error.
pub async fn send(
    method: &Method,
    server: &Upstream,
    path: &str,
    body: Option<&serde_json::Value>,
    limit: Duration,
) -> Result<Answer, HttpError> {
    let url = server.url_of(path);
    let request = prepare(method, server, path, body).map_err(|error| HttpError::Address {
        url: url.clone(),
        why: error.to_string(),
    })?;
    tokio::time::timeout(limit, exchange(&url, server, request))
        .await
        .map_err(|_| HttpError::Silent { url, limit })?
}

fn prepare(
    method: &Method,
    server: &Upstream,
    path: &str,
    body: Option<&serde_json::Value>,
) -> Result<Request<Full<Bytes>>, InvalidUri> {
    let (path, query) = match path.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (path, None),
    };
    let bytes = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
    let mut request = Request::new(Full::new(bytes));
    *request.method_mut() = method.clone();
    *request.uri_mut() = server.target(path, query)?;
    let headers = request.headers_mut();
    headers.insert(HOST, server.authority());
    // Servers that speak both dialects differ in which key they look at.
    server.authorize(headers, Dialect::AnthropicMessages);
    if body.is_some() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    Ok(request)
}

async fn exchange(
    url: &str,
    server: &Upstream,
    request: Request<Full<Bytes>>,
) -> Result<Answer, HttpError> {
    let url = || url.to_owned();
    let pool = Pool::new(server.clone());
    let (answer, mut connection) =
        pool.send(request, None, |_| {})
            .await
            .map_err(|error| match error {
                SendError::Unreachable { source, .. } => HttpError::Unreachable {
                    url: url(),
                    why: source.to_string(),
                },
                SendError::Tls { why, .. } => HttpError::Tls { url: url(), why },
                SendError::Redirected(redirect) => HttpError::Redirected(redirect),
                SendError::NoAnswer(why) => HttpError::Broken { url: url(), why },
                SendError::Silent(limit) => HttpError::Silent { url: url(), limit },
            })?;
    let status = answer.status();
    let turned_away = TurnedAway::of(status, answer.headers(), server.door());
    let body = connection
        .read_whole(answer, MAX_BODY)
        .await
        .map_err(|error| HttpError::Broken {
            url: url(),
            why: error.to_string(),
        })?;
    Ok(Answer {
        status: status.as_u16(),
        body: server.redactor().bytes(body),
        turned_away,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyStyle, Secret};

    #[test]
    fn the_path_and_the_query_below_the_base_path_are_the_target() {
        for (base, path, target) in [
            ("http://h:1", "/v1/models", "/v1/models"),
            ("http://h:1/v1", "/v1?x=1", "/v1?x=1"),
            ("http://[::1]:1", "/slots?fail=/x", "/slots?fail=/x"),
            ("http://h/llm/v1", "/metrics", "/llm/metrics"),
        ] {
            let key = Some(Secret::new("sk-1234"));
            let server = Upstream::new(base, key, KeyStyle::ByDialect).unwrap();
            let request = prepare(&Method::GET, &server, path, None).unwrap();
            assert_eq!(request.uri(), target, "{base}");
            assert_eq!(request.headers()["x-api-key"], "sk-1234");
            assert_eq!(request.headers()["authorization"], "Bearer sk-1234");
        }
    }
}
