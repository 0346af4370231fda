//! Connections from one session to the server.
//!
//! A connection over which an answer came whole is kept for the next request, for a second: that
//! spares the next one a handshake, and is shorter than servers wait before they close an idle
//! connection. Nor is it used at once: some servers (llama.cpp) close theirs after a stream without
//! having said so, and that has to be heard first. So none is closed at the very moment it is used. Acknowledgements are not put
//! off on it (see `stamped`): with a server that leaves Nagle's algorithm on,
//! that would cost 40 ms.
//!
//! A connection is driven by whoever holds its [`Lease`], not by a task of its own: that saves a
//! hop between tasks on the way of every event, and it means that dropping the lease closes the
//! connection at once, which is how the server learns that the client left.
//!
//! No time limit applies here but the one that is passed in.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper::http::{Request, Response};
use tokio::net::TcpStream;

use crate::Upstream;
use crate::stamped::{KEEPS_CONNECTIONS, SETTLED, SocketWatch, StampedStream};
use flashrig_clock::Stamp;

/// How long a connection is kept for the next request.
const KEPT: Duration = Duration::from_secs(1);

/// Why there is no response head.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
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
pub struct SendClocks {
    pub connected: Stamp,
    pub sent: Stamp,
}

/// A step on the way to an answer.
pub enum Sending {
    /// The request was handed to a connection.
    Sent(SendClocks),
    /// There is nothing to do until the server moves; told more than once.
    Waiting,
}

/// The way to the server.
pub struct Link {
    pub upstream: Upstream,
    /// Connections for the next requests, and since when they are idle; the oldest first.
    kept: Mutex<Vec<(Lease, Stamp)>>,
}

impl Link {
    pub fn new(upstream: Upstream) -> Arc<Self> {
        Arc::new(Self {
            upstream,
            kept: Mutex::default(),
        })
    }

    fn kept(&self) -> MutexGuard<'_, Vec<(Lease, Stamp)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a connection over which an answer came whole, for a while.
    pub fn keep(self: &Arc<Self>, lease: Lease) {
        let at_its_end = lease.connection.is_none();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if at_its_end || !KEEPS_CONNECTIONS {
            return;
        }
        self.kept().push((lease, Stamp::now()));
        let link = Arc::downgrade(self);
        runtime.spawn(async move {
            tokio::time::sleep(KEPT).await;
            if let Some(link) = link.upgrade() {
                let now = Stamp::now();
                link.kept().retain(|(_, since)| now.since(*since) < KEPT);
            }
        });
    }

    /// The connection that is idle longest, if that is long enough, and for how long.
    fn settled(&self, now: Stamp) -> Option<(Lease, Duration)> {
        let mut kept = self.kept();
        let age = now.since(kept.first()?.1);
        (age >= SETTLED).then(|| (kept.remove(0).0, age))
    }

    /// A kept connection that is still usable.
    async fn kept_lease(&self) -> Option<Lease> {
        loop {
            let (mut lease, age) = self.settled(Stamp::now())?;
            if age < KEPT && lease.is_usable().await {
                return Some(lease);
            }
        }
    }

    /// Sends `request` and waits for the response head. `on` hears of each step, also when no
    /// answer comes.
    ///
    /// A connection that turns out to be dead before a byte of the request was written is replaced
    /// by another, once. Nothing else is ever tried again.
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
        limit: Option<Duration>,
        mut on: impl FnMut(Sending),
    ) -> Result<(Response<Incoming>, Lease), LinkError> {
        let lease = match self.kept_lease().await {
            Some(kept) => kept,
            None => noticing(self.dial(limit), || on(Sending::Waiting)).await?,
        };
        self.send_over(lease, request, limit, on).await
    }

    async fn send_over(
        &self,
        mut lease: Lease,
        mut request: Request<Full<Bytes>>,
        limit: Option<Duration>,
        mut on: impl FnMut(Sending),
    ) -> Result<(Response<Incoming>, Lease), LinkError> {
        let mut may_retry = true;
        loop {
            let connected = Stamp::now();
            on(Sending::Sent(SendClocks {
                connected,
                sent: Stamp::now(),
            }));
            let exchange = noticing(lease.exchange(request), || on(Sending::Waiting));
            let answer = match within(limit, exchange).await {
                Ok(answer) => answer,
                Err(limit) => return Err(LinkError::Silent(limit)),
            };
            match answer {
                Ok(response) => return Ok((response, lease)),
                Err(mut failure) => match failure.take_message() {
                    Some(unsent) if std::mem::take(&mut may_retry) => {
                        request = unsent;
                        lease = self.dial(limit).await?;
                    }
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
        let (stream, socket) = StampedStream::to_server(stream);
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
        })
    }
}

/// A connection to the server, held for one exchange.
pub struct Lease {
    sender: SendRequest<Full<Bytes>>,
    /// Gone once it has ended.
    connection: Option<Pin<Box<Driver>>>,
    socket: SocketWatch,
}

type Driver = Connection<StampedStream, Full<Bytes>>;
type Failure = hyper::client::conn::TrySendError<Request<Full<Bytes>>>;

impl Lease {
    /// When the connection was last read.
    pub fn last_read(&self) -> Stamp {
        self.socket.last_read()
    }

    /// Moves bytes between socket and response. To be called whenever the response is pending.
    pub fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = &mut self.connection
            && connection.as_mut().poll(cx).is_ready()
        {
            // How it ended is told through the response.
            self.connection = None;
        }
    }

    /// Whether another request can go over it: the answer before it is over and the server has
    /// not closed it.
    async fn is_usable(&mut self) -> bool {
        poll_fn(|cx| {
            self.drive(cx);
            let ready = matches!(self.sender.poll_ready(cx), Poll::Ready(Ok(())));
            Poll::Ready(ready && self.connection.is_some())
        })
        .await
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
}

/// Waits for `work`; `on_wait` is called once it turns out that there is something to wait for.
async fn noticing<T>(work: impl Future<Output = T>, on_wait: impl FnOnce()) -> T {
    let mut work = pin!(work);
    let mut on_wait = Some(on_wait);
    poll_fn(|cx| {
        let polled = work.as_mut().poll(cx);
        if polled.is_pending()
            && let Some(on_wait) = on_wait.take()
        {
            on_wait();
        }
        polled
    })
    .await
}

/// Waits for `work`, no longer than `limit`, which is given back when it ran out.
async fn within<T>(limit: Option<Duration>, work: impl Future<Output = T>) -> Result<T, Duration> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.map_err(|_| limit),
        None => Ok(work.await),
    }
}

/// An error with its causes.
pub fn describe(error: &dyn std::error::Error) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyStyle;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

    /// Waits until the runtime has heard of every close up to now: it hears of them in order.
    async fn closes_are_heard(listener: &TcpListener) {
        let connecting = TcpStream::connect(listener.local_addr().unwrap());
        let (client, server) = tokio::join!(connecting, listener.accept());
        drop(server);
        assert_eq!(client.unwrap().read(&mut [0]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_connection_that_died_before_a_byte_was_sent_is_replaced_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let link = Link::new(Upstream::new(&url, None, KeyStyle::Bearer).unwrap());
        let (dead, accepted) = tokio::join!(link.dial(None), listener.accept());
        drop(accepted);
        closes_are_heard(&listener).await;

        let request = Request::builder()
            .uri("/")
            .header("host", "h")
            .body(Full::default())
            .unwrap();
        let mut sends = 0;
        let sending = link.send_over(dead.unwrap(), request, None, |step| {
            sends += u32::from(matches!(step, Sending::Sent(_)));
        });
        let answering = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
            stream.write_all(ANSWER).await.unwrap();
            Ok(stream)
        };
        let exchange = async { tokio::try_join!(async { sending.await.map_err(drop) }, answering) };
        let exchanged = tokio::time::timeout(Duration::from_secs(30), exchange)
            .await
            .unwrap();
        let ((response, _), _) = exchanged.expect("the request was not sent again");
        assert_eq!((response.status().as_u16(), sends), (200, 2));
    }

    #[tokio::test]
    async fn a_connection_that_may_be_closing_is_not_used_yet() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let link = Link::new(Upstream::new(&url, None, KeyStyle::Bearer).unwrap());
        let (lease, _accepted) = tokio::join!(link.dial(None), listener.accept());
        let since = Stamp::now();
        link.kept().push((lease.unwrap(), since));
        let just_before = since + (SETTLED - Duration::from_nanos(1));
        assert!(link.settled(just_before).is_none());
        assert!(link.settled(since + SETTLED).is_some());
        assert!(link.kept().is_empty());
    }
}
