//! The limit on slow request heads.
//!
//! The one limit beside the setting that people know: a client that begins a head and does not end
//! it holds a connection and tells nothing. A connection that merely rests between two requests has
//! no head begun and is left alone for ever, which hyper's own timer would not do.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::http::{StatusCode, Version};
use hyper::rt::{Sleep, Timer};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::refusal::Reason;
use flashrig_http::stamped::SocketWatch;

/// A timer for hyper whose sleeps begin with the first bytes after they were asked for.
#[derive(Clone)]
pub(super) struct HeadTimer {
    socket: SocketWatch,
    limit: Duration,
}

impl HeadTimer {
    pub(super) fn new(socket: SocketWatch, limit: Duration) -> Self {
        Self { socket, limit }
    }
}

impl Timer for HeadTimer {
    fn sleep(&self, _: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(FromFirstBytes {
            known: self.socket.reads(),
            timer: self.clone(),
            asleep: None,
        })
    }

    fn sleep_until(&self, _: Instant) -> Pin<Box<dyn Sleep>> {
        self.sleep(self.limit)
    }
}

/// hyper looks at it after every read of a head that is not whole yet.
struct FromFirstBytes {
    timer: HeadTimer,
    known: u64,
    asleep: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Sleep for FromFirstBytes {}

impl Future for FromFirstBytes {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.asleep.is_none() && self.timer.socket.reads() == self.known {
            // No head has begun. The next read wakes the connection.
            return Poll::Pending;
        }
        let limit = self.timer.limit;
        self.asleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)))
            .as_mut()
            .poll(cx)
    }
}

/// Answers where hyper has given up without a word. What cannot be written is the client's loss.
pub(super) async fn answer(
    mut stream: TcpStream,
    status: StatusCode,
    reason: Reason,
    message: &str,
) {
    let body = Bytes::from(
        json!({"error": {"message": message, "type": "invalid_request_error", "code": reason.code()}})
            .to_string(),
    );
    let head = format!(
        "{:?} {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        Version::HTTP_11,
        body.len()
    );
    let bytes = [head.as_bytes(), &body].concat();
    let _ = stream.write_all(&bytes).await;
    let _ = stream.shutdown().await;
}
