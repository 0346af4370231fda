//! One HTTP/1 connection to a server, driven by whoever holds it.
//!
//! It has no task of its own: that saves a hop between tasks on the way of every token, and
//! dropping it closes the connection at once, which is how a server learns that its client left.
//!
//! What is read is acknowledged at once (see [`crate::stamped`]): with a server that leaves Nagle's
//! algorithm on, a late acknowledgement would cost 40 ms.

use std::error::Error;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, Builder, SendRequest};
use hyper::http::{Request, Response};

use crate::stamped::SocketWatch;
use crate::transport::{OpenError, Transport, open};
use crate::upstream::Upstream;
use flashrig_clock::Stamp;

/// The most headers that an answer may have; hyper's own limit is 100.
const MAX_HEADERS: usize = 256;

type Driver = http1::Connection<Transport, Full<Bytes>>;

/// A connection, held for one exchange at a time.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// Gone once it has ended.
    driver: Option<Pin<Box<Driver>>>,
    socket: SocketWatch,
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum DialError {
    Open(OpenError),
    Handshake(hyper::Error),
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// Opens a connection.
    pub(crate) async fn dial(upstream: &Upstream) -> Result<Self, DialError> {
        let (stream, socket) = open(upstream).await.map_err(DialError::Open)?;
        let (sender, driver) = Builder::new()
            .preserve_header_case(true)
            .max_headers(MAX_HEADERS)
            .handshake(stream)
            .await
            .map_err(DialError::Handshake)?;
        Ok(Self {
            sender,
            driver: Some(Box::pin(driver)),
            socket,
        })
    }

    /// When the socket was last read.
    pub fn last_read(&self) -> Stamp {
        self.socket.last_read()
    }

    /// Moves bytes between socket and answer. To be called whenever the answer is pending.
    pub fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && driver.as_mut().poll(cx).is_ready()
        {
            // How it ended is reported through the answer.
            self.driver = None;
        }
    }

    /// Reads the body of an answer that came over this connection to its end.
    ///
    /// # Errors
    /// It breaks off, or is longer than `limit` bytes.
    pub async fn read_whole(
        &mut self,
        answer: Response<Incoming>,
        limit: usize,
    ) -> Result<Bytes, Box<dyn Error + Send + Sync>> {
        let mut reading = pin!(Limited::new(answer.into_body(), limit).collect());
        std::future::poll_fn(|cx| {
            if let Poll::Ready(read) = reading.as_mut().poll(cx) {
                return Poll::Ready(read.map(http_body_util::Collected::to_bytes));
            }
            self.drive(cx);
            let read = reading.as_mut().poll(cx);
            read.map_ok(http_body_util::Collected::to_bytes)
        })
        .await
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
        let mut answer = pin!(self.sender.try_send_request(request));
        let driver = &mut self.driver;
        std::future::poll_fn(|cx| {
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                return Poll::Ready(answer);
            }
            if let Some(driven) = driver
                && driven.as_mut().poll(cx).is_ready()
            {
                *driver = None;
            }
            answer.as_mut().poll(cx)
        })
        .await
    }

    /// Whether it has not ended, as far as can be seen from here. Notices the end of an answer and
    /// a close that came meanwhile.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.driver.is_some()
    }

    /// Whether another request can go over it: the answer before it is over, too.
    pub(crate) fn is_usable(&mut self) -> bool {
        self.is_alive() && self.sender.is_ready()
    }
}

/// An error with its causes.
pub fn describe(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        cause = error.source();
    }
    text
}
