//! One connection: dialled, driven by whoever waits on it, kept for the session's next request.
//!
//! It has no task of its own: that saves a hop on the way of every token, and dropping it closes
//! the connection at once, which is how a server learns that its client left.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper::http::{Request, Response};
use tokio::net::TcpStream;

use crate::Upstream;
use crate::stamped::{SETTLED, SocketWatch, StampedStream};
use flashrig_clock::Stamp;

/// A connection that was idle for longer is not used again: many servers close one after five
/// seconds, and closing may cross with a request.
const FRESH: Duration = Duration::from_secs(3);

type Driver = Connection<StampedStream, Full<Bytes>>;

/// A connection.
pub struct Wire {
    sender: SendRequest<Full<Bytes>>,
    /// Gone once it has ended.
    connection: Option<Pin<Box<Driver>>>,
    socket: SocketWatch,
    last_used: Stamp,
    /// Whether it has carried a request.
    used: bool,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire").finish_non_exhaustive()
    }
}

impl Wire {
    /// Opens a connection.
    pub async fn dial(upstream: &Upstream) -> io::Result<Self> {
        let stream = TcpStream::connect(upstream.host_and_port()).await?;
        stream.set_nodelay(true)?;
        let (stream, socket) = StampedStream::new(stream);
        let (sender, connection) = Builder::new()
            .handshake(stream)
            .await
            .map_err(io::Error::other)?;
        Ok(Self {
            sender,
            connection: Some(Box::pin(connection)),
            socket,
            last_used: Stamp::now(),
            used: false,
        })
    }

    /// When the socket was last read.
    pub fn last_read(&self) -> Stamp {
        self.socket.last_read()
    }

    /// Moves bytes between socket and answer; to be called whenever the answer is pending.
    pub fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = &mut self.connection
            && connection.as_mut().poll(cx).is_ready()
        {
            // How it ended is told through the answer.
            self.connection = None;
        }
    }

    /// Sends a request and waits for the head of its answer.
    pub async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
        let Self {
            sender, connection, ..
        } = self;
        let mut answer = pin!(sender.try_send_request(request));
        std::future::poll_fn(|cx| {
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                return Poll::Ready(answer);
            }
            if let Some(driven) = connection
                && driven.as_mut().poll(cx).is_ready()
            {
                *connection = None;
            }
            answer.as_mut().poll(cx)
        })
        .await
    }

    /// The connection after an answer that came whole, if it may take another request.
    pub fn rest(mut self) -> Option<Self> {
        self.last_used = Stamp::now();
        self.used = true;
        self.is_open().then_some(self)
    }

    /// Whether it can take a request now, as far as can be seen from here.
    pub fn is_usable(&mut self) -> bool {
        let idle = Stamp::now().since(self.last_used);
        idle <= FRESH && (!self.used || idle >= SETTLED) && self.is_open()
    }

    fn is_open(&mut self) -> bool {
        // Notices an answer's end and a close that came meanwhile.
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.connection.is_some() && self.sender.is_ready()
    }
}
