//! One client's connection: its requests served, and a row for a head that cannot be read.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::client_connection::ClientConnection;
use super::exchange;
use super::raw_answer;
use super::refusal::Reason;
use super::shared::Shared;
use super::slow_head::HeadTimer;
use flashrig_clock::Stamp;
use flashrig_http::describe;
use flashrig_http::stamped::StampedStream;
use flashrig_record::{Dialect, Outcome};

/// Whether a listener is draining; those of sessions never do.
pub(super) type Draining = Option<watch::Receiver<bool>>;

/// Waits until a listener is to drain.
pub(super) async fn begins(draining: &mut Draining) {
    if let Some(draining) = draining
        && draining.wait_for(|drain| *drain).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// Waits until a connection has been unauthenticated for too long.
async fn expires(client: ClientConnection, time: Option<Duration>) {
    if let Some(time) = time {
        tokio::time::sleep(time).await;
        if client.is_unauthenticated() {
            return;
        }
    }
    std::future::pending().await
}

/// Tells a client that there is no place for its connection.
pub(super) fn turn_away(stream: &TcpStream, shared: &Shared) {
    let message = "too many connections have not authenticated; try again later";
    let request_log = shared.auth.unknown_log();
    let mut recording = request_log.begin("", "", Dialect::Other, Stamp::now());
    recording.attempt.status = Some(Reason::Busy.status().as_u16());
    recording.attempt.error = Some(Reason::Busy.error(message));
    recording.finish(Outcome::RejectedByGateway, Stamp::now());
    // A new socket has room for it.
    let _ = stream.try_write(&raw_answer::bytes(Reason::Busy, message));
}

/// Serves a connection to its end, or, when draining begins, to the end of its request.
///
/// `place` is its place among the unauthenticated ones, where these are limited.
pub(super) async fn connection(
    stream: TcpStream,
    shared: Arc<Shared>,
    mut draining: Draining,
    place: Option<OwnedSemaphorePermit>,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let (stream, socket) = StampedStream::new(stream);
    let for_unread = Arc::clone(&shared);
    let reads = socket.clone();
    let head_bytes = shared.limits.head_bytes;
    let head_time = shared.limits.head_time;
    let timer = HeadTimer::new(socket.clone(), head_time);
    let client = ClientConnection::new(socket, place);
    let unauthenticated = shared.limits.unauthenticated;
    let expiring = expires(client.clone(), unauthenticated.map(|limit| limit.time));
    let service = service_fn(move |request| {
        let serving = exchange::serve(Arc::clone(&shared), request, client.clone());
        Box::pin(async move { Ok::<_, Infallible>(serving.await) })
    });
    let mut served = http1::Builder::new()
        .preserve_header_case(true)
        .auto_date_header(false)
        .max_headers(256)
        .max_header_size(head_bytes)
        .timer(timer)
        .header_read_timeout(head_time)
        .serve_connection(stream, service);
    let serving = async {
        tokio::select! {
            ended = &mut served => return ended,
            () = begins(&mut draining) => {}
            () = expiring => {}
        }
        Pin::new(&mut served).graceful_shutdown();
        (&mut served).await
    };
    let Err(error) = serving.await else {
        return;
    };
    // hyper answers most of what it cannot read by itself; the row is written here.
    let (status, by_hyper) = match reported(&error) {
        Some(reported) => reported,
        None => return,
    };
    let request_log = for_unread.auth.unknown_log();
    let mut recording = request_log.begin("", "", Dialect::Other, reads.last_read());
    recording.attempt.status = Some(status.as_u16());
    let (reason, message) = if error.is_timeout() {
        let seconds = head_time.as_secs_f64();
        let message = format!("the request's head was not whole {seconds} s after its first byte");
        (Reason::SlowHead, message)
    } else {
        (Reason::BadRequest, describe(&error))
    };
    recording.attempt.error = Some(reason.error(&message));
    recording.finish(Outcome::RejectedByGateway, Stamp::now());
    if !by_hyper {
        let stream = served.into_parts().io.into_inner();
        raw_answer::send(stream, status, reason, &message).await;
    }
}

/// The status that a client gets for a head that cannot be read, and whether hyper has sent it;
/// `None` when the connection ended otherwise.
fn reported(error: &hyper::Error) -> Option<(StatusCode, bool)> {
    if error.is_timeout() {
        return Some((StatusCode::REQUEST_TIMEOUT, false));
    }
    if !error.is_parse() {
        return None;
    }
    Some(if error.is_parse_too_large() {
        (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, true)
    } else if error.is_parse_version_h2() {
        (StatusCode::HTTP_VERSION_NOT_SUPPORTED, false)
    } else {
        (StatusCode::BAD_REQUEST, true)
    })
}
