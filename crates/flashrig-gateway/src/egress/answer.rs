//! One HTTP request to the guard: refused, tunnelled or forwarded.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::http::header::{
    CONNECTION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::uri::{Authority, PathAndQuery};
use hyper::http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use super::allow::Destination;
use super::shared::Shared;
use flashrig_clock::Stamp;
use flashrig_record::EgressOutcome;

/// For a connection to an allowed destination.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Of a refused request's body so much is read and thrown away, so that the refusal arrives and
/// is not lost in a reset.
const DISCARDED_BYTES: usize = 64 * 1024 * 1024;
/// And for so long.
const DISCARD_LIMIT: Duration = Duration::from_secs(10);

/// How a proxy says what it did (RFC 9209).
const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");

pub(super) type Body = BoxBody<Bytes, hyper::Error>;

/// A tunnel that was granted and waits for its client's side.
pub(super) struct Tunnel {
    client: OnUpgrade,
    server: TcpStream,
}

impl Tunnel {
    /// Carries bytes until both sides are done.
    pub(super) async fn run(mut self) {
        match self.client.await {
            Ok(client) => {
                let mut client = TokioIo::new(client);
                // Whatever ends it, the client sees the end of its connection.
                let _ = tokio::io::copy_bidirectional(&mut client, &mut self.server).await;
            }
            Err(error) => tracing::debug!(%error, "a tunnel's client left"),
        }
    }
}

/// Answers a request; with a tunnel when one was granted.
pub(super) async fn serve(
    shared: &Shared,
    request: Request<Incoming>,
) -> (Response<Body>, Option<Tunnel>) {
    let begun = Stamp::now();
    let method = request.method().clone();
    let Some(to) = destination(&method, request.uri()) else {
        shared
            .counts
            .count(None, method.as_str(), EgressOutcome::Unserved, begun);
        discard(request.into_body());
        let message = "this is flashrig's egress guard, an HTTP proxy: it takes CONNECT host:port \
                     and absolute http:// addresses, and keeps sessions on this machine";
        return (
            said(StatusCode::BAD_REQUEST, "http_request_error", message),
            None,
        );
    };
    let loopback = to.loopback();
    let outcome = if !loopback.is_empty() {
        EgressOutcome::Local
    } else if shared.allow.allows(&to) {
        EgressOutcome::Allowed
    } else {
        shared
            .counts
            .count(Some(&to), method.as_str(), EgressOutcome::Refused, begun);
        tracing::debug!(session = shared.label, %to, %method, "egress refused");
        discard(request.into_body());
        let message = format!(
            "flashrig's egress guard refused {method} {to}: session {} may only reach this \
             machine. Nothing was sent. To let it through: --allow-egress {to}, or egress_allow \
             in the agent's profile",
            shared.label
        );
        return (
            said(StatusCode::FORBIDDEN, "http_request_denied", &message),
            None,
        );
    };
    let connected = connect(&to, &loopback).await;
    shared
        .counts
        .count(Some(&to), method.as_str(), outcome, begun);
    let server = match connected {
        Ok(server) => server,
        Err(error) => {
            discard(request.into_body());
            let message =
                format!("flashrig's egress guard let {to} pass but cannot reach it: {error}");
            let (status, kind) = if error.kind() == io::ErrorKind::TimedOut {
                (StatusCode::GATEWAY_TIMEOUT, "connection_timeout")
            } else {
                (StatusCode::BAD_GATEWAY, "destination_unavailable")
            };
            return (said(status, kind, &message), None);
        }
    };
    if method == Method::CONNECT {
        let client = hyper::upgrade::on(request);
        return (
            Response::new(Full::default().map_err(|never| match never {}).boxed()),
            Some(Tunnel { client, server }),
        );
    }
    let answer = match forward(request, server).await {
        Ok(response) => response,
        Err(error) => {
            let message =
                format!("flashrig's egress guard let {to} pass, which gave no answer: {error}");
            said(StatusCode::BAD_GATEWAY, "http_protocol_error", &message)
        }
    };
    (answer, None)
}

/// Where the request wants to go. `None` when it is not one to a proxy.
fn destination(method: &Method, uri: &Uri) -> Option<Destination> {
    let authority: &Authority = uri.authority()?;
    let port = match (uri.port_u16(), uri.scheme_str()) {
        (Some(port), _) => port,
        (None, Some("http" | "ws")) => 80,
        (None, Some("https" | "wss")) => 443,
        (None, Some("ftp")) => 21,
        (None, _) => return None,
    };
    // The tunnel's form has no scheme, every other one has.
    let formed = (*method == Method::CONNECT) == uri.scheme().is_none();
    formed
        .then(|| Destination::new(authority.host(), port))
        .flatten()
}

async fn connect(to: &Destination, loopback: &[SocketAddr]) -> io::Result<TcpStream> {
    let connecting = async {
        if loopback.is_empty() {
            TcpStream::connect((to.host(), to.port())).await
        } else {
            TcpStream::connect(loopback).await
        }
    };
    let stream = timeout(CONNECT_LIMIT, connecting)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Passes a plain request on, over a connection of its own.
async fn forward(
    request: Request<Incoming>,
    server: TcpStream,
) -> Result<Response<Body>, hyper::Error> {
    let (mut parts, body) = request.into_parts();
    // The address counts, whatever the client's Host says (RFC 9112, 3.2.2).
    let host = parts.uri.authority().and_then(|authority| {
        let text = authority.as_str();
        let bare = text.rsplit_once('@').map_or(text, |(_, host)| host);
        HeaderValue::from_str(bare).ok()
    });
    let path = parts
        .uri
        .path_and_query()
        .cloned()
        .unwrap_or_else(|| PathAndQuery::from_static("/"));
    parts.uri = Uri::from(path);
    strip_hop_by_hop(&mut parts.headers);
    if let Some(host) = host {
        parts.headers.insert(HOST, host);
    }
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(server)).await?;
    // Ends with the response's body, also when the client drops it.
    let driving = AbortOnDrop(tokio::spawn(connection));
    let mut response = sender
        .send_request(Request::from_parts(parts, body))
        .await?;
    strip_hop_by_hop(response.headers_mut());
    Ok(response.map(|body| {
        body.map_frame(move |frame| {
            let _connection = &driving;
            frame
        })
        .boxed()
    }))
}

struct AbortOnDrop(tokio::task::JoinHandle<Result<(), hyper::Error>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in [
        CONNECTION,
        HeaderName::from_static("keep-alive"),
        HeaderName::from_static("proxy-connection"),
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ] {
        headers.remove(name);
    }
}

/// An answer of the guard's own.
fn said(status: StatusCode, kind: &str, message: &str) -> Response<Body> {
    let text = Full::from(format!("{message}.\n"));
    let mut response = Response::new(text.map_err(|never| match never {}).boxed());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    if let Ok(value) = HeaderValue::from_str(&format!("flashrig; error={kind}")) {
        headers.insert(PROXY_STATUS, value);
    }
    response
}

/// Reads a body to nowhere while the answer is on its way.
fn discard(mut body: Incoming) {
    use hyper::body::Body as _;
    if body.is_end_stream() {
        return;
    }
    tokio::spawn(async move {
        let end = Instant::now() + DISCARD_LIMIT;
        let mut left = DISCARDED_BYTES;
        while let Ok(Some(Ok(frame))) = timeout_at(end, body.frame()).await {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(bytes) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    });
}
