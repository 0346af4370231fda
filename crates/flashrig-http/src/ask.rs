//! One small request to the server, outside of anything measured.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::Secret;

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
    /// The body as JSON, when it is some.
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
    #[error("{url:?} is no usable address: {why}")]
    Address {
        /// The address.
        url: String,
        /// Why.
        why: String,
    },
    /// Nobody answers there.
    #[error("no server answers at {url}: {why}")]
    Unreachable {
        /// The address.
        url: String,
        /// What the system said.
        why: String,
    },
    /// It accepts and does not answer.
    #[error("the server at {url} accepts connections but did not answer within {limit:?}")]
    Silent {
        /// The address.
        url: String,
        /// The limit.
        limit: Duration,
    },
    /// What it answers is no HTTP, or breaks off.
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

/// The same with any method.
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
    let address = |why: &str| HttpError::Address {
        url: url.to_owned(),
        why: why.to_owned(),
    };
    let uri: hyper::Uri = url
        .parse()
        .map_err(|e: hyper::http::uri::InvalidUri| address(&e.to_string()))?;
    if uri.scheme_str() != Some("http") {
        return Err(address(
            "only http:// is supported; put a local proxy in front of https",
        ));
    }
    let host = uri
        .host()
        .ok_or_else(|| address("it names no host"))?
        .to_owned();
    let port = uri.port_u16().unwrap_or(80);
    let path = uri.path_and_query().map_or("/", |p| p.as_str()).to_owned();
    let mut request = Request::builder()
        .method(method.clone())
        .uri(path)
        .header(HOST, format!("{host}:{port}"));
    if let Some(key) = key {
        request = request
            .header(AUTHORIZATION, format!("Bearer {}", key.expose()))
            .header("x-api-key", key.expose());
    }
    let bytes = body.map_or_else(Bytes::new, |b| Bytes::from(b.to_string()));
    if body.is_some() {
        request = request
            .header(CONTENT_TYPE, "application/json")
            .header("anthropic-version", "2023-06-01");
    }
    let request = request
        .body(Full::new(bytes))
        .map_err(|e| address(&e.to_string()))?;
    let silent = || HttpError::Silent {
        url: url.to_owned(),
        limit,
    };
    let mut answer = tokio::time::timeout(limit, exchange(url, &host, port, request))
        .await
        .map_err(|_| silent())??;
    if let Some(key) = key {
        // Its words are shown and stored.
        answer.body = key.masked_in(answer.body);
    }
    Ok(answer)
}

async fn exchange(
    url: &str,
    host: &str,
    port: u16,
    request: Request<Full<Bytes>>,
) -> Result<Answer, HttpError> {
    let broken = |why: String| HttpError::Broken {
        url: url.to_owned(),
        why,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((host, port))
        .await
        .map_err(|e| HttpError::Unreachable {
            url: url.to_owned(),
            why: e.to_string(),
        })?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|e| broken(e.to_string()))?;
    let connection = tokio::spawn(connection);
    let answer = async {
        let response = sender
            .send_request(request)
            .await
            .map_err(|e| broken(e.to_string()))?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), MAX_BODY)
            .collect()
            .await
            .map_err(|e| broken(e.to_string()))?
            .to_bytes();
        Ok(Answer { status, body })
    }
    .await;
    connection.abort();
    answer
}
