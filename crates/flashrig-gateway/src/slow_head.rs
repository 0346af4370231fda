//! The limit on slow request heads.
//!
//! The one limit beside the setting that people know: a client that begins a head and does not end
//! it holds a connection and tells nothing. A connection that merely rests between two requests has
//! no head begun and is left alone for ever, which hyper's own timer would not do.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

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
