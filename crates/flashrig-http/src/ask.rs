//! One small request to a server, outside of anything measured: a thin layer on [`Pool`].

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Uri};
use llm_observe::Dialect;

use crate::pool::{Pool, SendError};
use crate::secret::Secret;
use crate::upstream::{KeyStyle, Upstream, without_user_info};

/// The largest answer that is read.
const MAX_BODY: usize = 8 << 20;

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Body.
    pub body: Bytes,
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

/// Sends `GET`, or `POST` when there is a body, and reads the whole answer.
///
/// # Errors
/// See [`HttpError`]; a status of 400 and above is an answer, not an error.
pub async fn ask(
    url: &str,
    key: Option<&Secret>,
    body: Option<&serde_json::Value>,
    limit: Duration,
) -> Result<Answer, HttpError> {
    let method = if body.is_some() {
        Method::POST
    } else {
        Method::GET
    };
    send(&method, url, key, body, limit).await
}

/// The same with any method. The key goes out as both `Authorization: Bearer` and `x-api-key`. It
/// is covered in the answer, which is shown and stored.
///
/// # Errors
/// See [`HttpError`]; a status of 400 and above is an answer, not an error.
pub async fn send(
    method: &Method,
    url: &str,
    key: Option<&Secret>,
    body: Option<&serde_json::Value>,
    limit: Duration,
) -> Result<Answer, HttpError> {
    let (upstream, request) =
        prepare(method, url, key, body).map_err(|error| HttpError::Address {
            url: without_user_info(url),
            why: error.to_string(),
        })?;
    tokio::time::timeout(limit, exchange(url, upstream, request))
        .await
        .map_err(|_| HttpError::Silent {
            url: url.to_owned(),
            limit,
        })?
}

/// Where a request goes, and the request.
type Prepared = (Upstream, Request<Full<Bytes>>);

fn prepare(
    method: &Method,
    url: &str,
    key: Option<&Secret>,
    body: Option<&serde_json::Value>,
) -> Result<Prepared, Box<dyn std::error::Error>> {
    let uri: Uri = url.parse()?;
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let base = url.strip_suffix(target).unwrap_or(url);
    let upstream = Upstream::new(base, key.cloned(), KeyStyle::ByDialect)?;
    let bytes = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
    let mut request = Request::new(Full::new(bytes));
    *request.method_mut() = method.clone();
    *request.uri_mut() = target.parse()?;
    let headers = request.headers_mut();
    headers.insert(HOST, upstream.authority());
    // Servers that speak both dialects differ in which key they look at.
    upstream.authorize(headers, Dialect::AnthropicMessages);
    if body.is_some() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    Ok((upstream, request))
}

async fn exchange(
    url: &str,
    upstream: Upstream,
    request: Request<Full<Bytes>>,
) -> Result<Answer, HttpError> {
    let url = || url.to_owned();
    let pool = Pool::new(upstream);
    let (answer, mut connection) =
        pool.send(request, None, |_| {})
            .await
            .map_err(|error| match error {
                SendError::Unreachable { source, .. } => HttpError::Unreachable {
                    url: url(),
                    why: source.to_string(),
                },
                SendError::NoAnswer(why) => HttpError::Broken { url: url(), why },
                SendError::Silent(limit) => HttpError::Silent { url: url(), limit },
            })?;
    let status = answer.status().as_u16();
    let body = connection
        .read_whole(answer, MAX_BODY)
        .await
        .map_err(|error| HttpError::Broken {
            url: url(),
            why: error.to_string(),
        })?;
    let body = pool.upstream().redactor().bytes(body);
    Ok(Answer { status, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(url: &str) -> (Upstream, Request<Full<Bytes>>) {
        let key = Secret::new("sk-1234");
        prepare(&Method::GET, url, Some(&key), None).unwrap()
    }

    #[test]
    fn the_path_and_the_query_of_the_address_are_the_target() {
        for (url, target) in [
            ("http://h:1", "/"),
            ("http://h:1/", "/"),
            ("http://h:1/v1/models", "/v1/models"),
            ("http://h:1/v1?x=1", "/v1?x=1"),
            ("http://[::1]:1/slots?fail=/x", "/slots?fail=/x"),
        ] {
            let (upstream, request) = prepared(url);
            assert_eq!(request.uri(), target, "{url}");
            assert_eq!(upstream.host_and_port().1, 1, "{url}");
            assert_eq!(request.headers()["x-api-key"], "sk-1234");
            assert_eq!(request.headers()["authorization"], "Bearer sk-1234");
        }
    }

    #[tokio::test]
    async fn an_address_that_cannot_work_is_an_error_that_names_it_and_says_why() {
        for (url, why) in [("https://h/v1", "plain http only"), ("h", "no scheme")] {
            let answer = ask(url, None, None, Duration::from_secs(60)).await;
            let error = answer.unwrap_err().to_string();
            assert!(error.contains(url) && error.contains(why), "{error}");
        }
        let answer = ask("http://u:hunter2@h", None, None, Duration::from_secs(60)).await;
        let error = answer.unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
