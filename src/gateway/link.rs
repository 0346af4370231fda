//! Connections from one session to the server.
//!
//! A connection is driven by whoever holds its [`Lease`], not by a task of its own: that saves a
//! hop between tasks on the way of every event, and it means that dropping the lease closes the
//! connection at once, which is how the server learns that the client left.
//!
//! No time limit applies here but the one that is passed in.

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper::http::{Request, Response};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use tokio::net::TcpStream;

use super::stamped::{SocketWatch, StampedStream};
use super::upstream::Upstream;
use crate::clock::Stamp;

/// How long a connection may lie idle and still be used again. Short, because some servers close
/// idle connections after two seconds and a request must not meet that moment, and because others
/// keep a thread waiting for each.
const IDLE: Duration = Duration::from_secs(1);

/// Idle connections kept.
const KEPT: usize = 32;

/// Why there is no response head.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    /// No connection.
    #[error("cannot connect to the server at {to}: {source}; check that it runs and listens there")]
    Unreachable {
        /// Host and port.
        to: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The connection broke, or what came over it is not HTTP.
    #[error("the server gave no HTTP answer: {0}")]
    NoAnswer(String),
    /// Nothing came within the time limit.
    #[error("the server sent nothing for {} s, the time limit that was set", .0.as_secs_f64())]
    Silent(Duration),
}

/// When a request got how far.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendClocks {
    pub(super) connected: Stamp,
    pub(super) sent: Stamp,
}

/// The way to the server.
pub(super) struct Link {
    pub(super) upstream: Upstream,
    idle: Mutex<Vec<(Instant, Lease)>>,
}

impl Link {
    pub(super) fn new(upstream: Upstream) -> Arc<Self> {
        Arc::new(Self {
            upstream,
            idle: Mutex::default(),
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Instant, Lease)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends `request` and waits for the response head. `on_sent` hears of each step, also when
    /// no answer comes.
    ///
    /// A connection that was used before and turns out to be dead before a byte of this request
    /// was written is replaced by a fresh one, once. Nothing else is ever tried again.
    pub(super) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        limit: Option<Duration>,
        on_sent: impl FnMut(SendClocks),
    ) -> Result<(Response<Incoming>, Lease), LinkError> {
        let reused = self.take_idle();
        self.send_over(reused, request, limit, on_sent).await
    }

    async fn send_over(
        &self,
        mut reused: Option<Lease>,
        mut request: Request<Full<Bytes>>,
        limit: Option<Duration>,
        mut on_sent: impl FnMut(SendClocks),
    ) -> Result<(Response<Incoming>, Lease), LinkError> {
        loop {
            let fresh = reused.is_none();
            let mut lease = match reused.take() {
                Some(lease) => lease,
                None => self.dial(limit).await?,
            };
            let connected = Stamp::now();
            on_sent(SendClocks {
                connected,
                sent: Stamp::now(),
            });
            let answer = match within(limit, lease.exchange(request)).await {
                Ok(answer) => answer,
                Err(limit) => return Err(LinkError::Silent(limit)),
            };
            match answer {
                Ok(response) => return Ok((response, lease)),
                Err(mut failure) => match failure.take_message() {
                    Some(unsent) if !fresh => request = unsent,
                    _ => return Err(LinkError::NoAnswer(describe(failure.error()))),
                },
            }
        }
    }

    async fn dial(&self, limit: Option<Duration>) -> Result<Lease, LinkError> {
        let (host, port) = self.upstream.host_and_port();
        let unreachable = |source| LinkError::Unreachable {
            to: format!("{host}:{port}"),
            source,
        };
        let stream = within(limit, TcpStream::connect((host, port)))
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        let fd = stream.as_raw_fd();
        let (stream, socket) = StampedStream::new(stream);
        let (sender, connection) = Builder::new()
            .preserve_header_case(true)
            .max_headers(256)
            .handshake(stream)
            .await
            .map_err(|error| LinkError::NoAnswer(describe(&error)))?;
        Ok(Lease {
            sender,
            connection: Some(Box::pin(connection)),
            socket,
            fd,
        })
    }

    fn take_idle(&self) -> Option<Lease> {
        let mut idle = self.idle();
        while let Some((since, mut lease)) = idle.pop() {
            if since.elapsed() < IDLE && lease.is_usable() {
                return Some(lease);
            }
        }
        None
    }

    /// Takes a lease back whose response is over, for the next request if it is fit for one.
    pub(super) fn give_back(self: &Arc<Self>, mut lease: Lease) {
        // Without a runtime there is nobody to close it in time.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if !lease.is_usable() {
            return;
        }
        {
            let mut idle = self.idle();
            if idle.len() >= KEPT {
                return;
            }
            idle.push((Instant::now(), lease));
        }
        let link = Arc::downgrade(self);
        runtime.spawn(async move {
            tokio::time::sleep(IDLE).await;
            if let Some(link) = link.upgrade() {
                link.idle().retain(|(since, _)| since.elapsed() < IDLE);
            }
        });
    }
}

/// A connection to the server, held for one exchange.
pub(super) struct Lease {
    sender: SendRequest<Full<Bytes>>,
    /// Gone once it has ended.
    connection: Option<Pin<Box<Driver>>>,
    socket: SocketWatch,
    /// Of the connection's socket; only looked at while the connection is there.
    fd: RawFd,
}

type Driver = Connection<StampedStream, Full<Bytes>>;
type Failure = hyper::client::conn::TrySendError<Request<Full<Bytes>>>;

impl Lease {
    /// When the connection was last read.
    pub(super) fn last_read(&self) -> Stamp {
        self.socket.last_read()
    }

    /// Moves bytes between socket and response. To be called whenever the response is pending.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = &mut self.connection
            && connection.as_mut().poll(cx).is_ready()
        {
            // How it ended is told through the response.
            self.connection = None;
        }
    }

    async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Failure> {
        let mut answer = pin!(self.sender.try_send_request(request));
        let connection = &mut self.connection;
        poll_fn(|cx| {
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

    /// Whether another request can go over this connection: idle, open, nothing left to read.
    fn is_usable(&mut self) -> bool {
        // Lets the connection notice that its response is over.
        self.drive(&mut Context::from_waker(Waker::noop()));
        if self.connection.is_none() || !self.sender.is_ready() {
            return false;
        }
        // Asks the socket itself: the runtime may not have heard yet that the server hung up.
        let mut byte = [0];
        recv(
            self.fd,
            &mut byte,
            MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT,
        ) == Err(Errno::EAGAIN)
    }
}

/// Waits for `work`, no longer than `limit`, which is given back when it ran out.
async fn within<T>(limit: Option<Duration>, work: impl Future<Output = T>) -> Result<T, Duration> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.map_err(|_| limit),
        None => Ok(work.await),
    }
}

/// An error with its causes.
pub(super) fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::KeyStyle;
    use http_body_util::BodyExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

    async fn answer(listener: &TcpListener) -> TcpStream {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = [0; 4096];
        assert!(stream.read(&mut head).await.unwrap() > 0);
        stream.write_all(ANSWER).await.unwrap();
        stream
    }

    fn request() -> Request<Full<Bytes>> {
        Request::builder()
            .uri("/")
            .header("host", "h")
            .body(Full::default())
            .unwrap()
    }

    /// A lease whose response is over.
    async fn used_lease(link: &Link, listener: &TcpListener) -> (Lease, TcpStream) {
        let (sent, server) = tokio::join!(link.send(request(), None, |_| {}), answer(listener));
        let (response, mut lease) = sent.unwrap();
        let mut body = pin!(response.into_body().collect());
        let body = poll_fn(|cx| {
            lease.drive(cx);
            body.as_mut().poll(cx)
        });
        assert_eq!(body.await.unwrap().to_bytes(), "{}");
        assert!(lease.is_usable());
        (lease, server)
    }

    /// Waits until the runtime has heard of every close up to now: it hears of them in order.
    async fn closes_are_heard(listener: &TcpListener) {
        let connecting = TcpStream::connect(listener.local_addr().unwrap());
        let (client, server) = tokio::join!(connecting, listener.accept());
        drop(server);
        assert_eq!(client.unwrap().read(&mut [0]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_used_connection_that_turns_out_dead_before_a_byte_was_sent_is_replaced_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let link = Link::new(Upstream::new(&url, None, KeyStyle::Bearer).unwrap());
        let (lease, server) = used_lease(&link, &listener).await;
        drop(server);
        closes_are_heard(&listener).await;
        let mut sends = 0;
        let sending = link.send_over(Some(lease), request(), None, |_| sends += 1);
        let exchange = async {
            tokio::try_join!(async { sending.await.map_err(drop) }, async {
                Ok(answer(&listener).await)
            })
        };
        let exchanged = tokio::time::timeout(Duration::from_secs(30), exchange)
            .await
            .unwrap();
        let ((response, _), _) = exchanged.expect("the request was not sent again");
        assert_eq!((response.status().as_u16(), sends), (200, 2));
    }

    #[tokio::test]
    async fn a_connection_that_the_server_closed_is_not_usable() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let link = Link::new(Upstream::new(&url, None, KeyStyle::Bearer).unwrap());
        let (mut lease, server) = used_lease(&link, &listener).await;
        drop(server);
        assert!(!lease.is_usable());
    }
}
