//! Connections to one server, kept from one request to the next.
//!
//! A connection over which an answer came whole is kept for the next request, for a time that is
//! shorter than servers wait before they close an idle connection: that spares the next request a
//! handshake. It is not used at once either (see [`SETTLED`]). So a connection is hardly ever closed
//! at the very moment it is used; and should that happen before a byte was written, the request is
//! sent again, once.
//!
//! No time limit applies here but the one that is passed in.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::http::{Request, Response};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::connection::{Connection, DialError, describe};
use crate::stamped::{KEEPS_CONNECTIONS, SETTLED};
use crate::transport::OpenError;
use crate::turned_away::Redirect;
use crate::upstream::Upstream;
use flashrig_clock::Stamp;

/// How long a connection is kept for the next request, unless it is said otherwise. Many servers
/// close an idle one after five seconds.
const KEPT: Duration = Duration::from_secs(1);

/// Why there is no response head.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// No connection.
    #[error("cannot connect to the server at {to}: {source}; check that it runs and listens there")]
    Unreachable {
        /// The address.
        to: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A connection, and no trust in it.
    #[error("cannot connect securely to the server at {to}: {why}")]
    Tls {
        /// The address.
        to: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The server points elsewhere. That is never followed.
    #[error("{0}")]
    Redirected(Redirect),
    /// The connection broke, or what came over it is not HTTP.
    #[error("the server gave no HTTP answer: {0}")]
    NoAnswer(String),
    /// Nothing came within the time limit.
    #[error("the server sent nothing for {} s, the time limit that was set", .0.as_secs_f64())]
    Silent(Duration),
}

/// How far a request got, and when.
#[derive(Clone, Copy, Debug)]
pub struct SendClocks {
    /// There was a connection for it.
    pub connected: Stamp,
    /// It was handed to the connection.
    pub sent: Stamp,
}

/// A step on the way to an answer.
pub enum Sending {
    /// The request was handed to a connection.
    Sent(SendClocks),
    /// There is nothing to do until the server moves; reported more than once.
    Waiting,
}

/// A server, and the connections to it that wait for a request.
#[derive(Debug)]
pub struct Pool {
    upstream: Upstream,
    keep_for: Duration,
    /// The one that has been idle longest comes first.
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: Instant,
    /// A connection that has carried no request yet need not settle.
    used: bool,
}

impl Pool {
    /// A pool without connections; each is kept for a second.
    pub fn new(upstream: Upstream) -> Arc<Self> {
        Self::keeping(upstream, KEPT)
    }

    /// The same, with each connection kept for `keep_for`.
    pub fn keeping(upstream: Upstream, keep_for: Duration) -> Arc<Self> {
        Arc::new(Self {
            upstream,
            keep_for,
            idle: Mutex::default(),
        })
    }

    /// The server.
    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Opens connections until `wanted` are idle, so that no request has to wait for one. A server
    /// that cannot be reached is left for the request to find.
    pub async fn open(self: &Arc<Self>, wanted: usize) {
        while self.idle.lock().len() < wanted {
            match self.dial(None).await {
                Ok(connection) => self.put(connection, false),
                Err(_) => return,
            }
        }
    }

    /// Keeps a connection over which an answer came whole, for a while. Outside of a runtime, and
    /// where acknowledgements cannot be sent at once, it is closed instead.
    pub fn keep(self: &Arc<Self>, mut connection: Connection) {
        if KEEPS_CONNECTIONS && connection.is_alive() {
            self.put(connection, true);
        }
    }

    fn put(self: &Arc<Self>, connection: Connection, used: bool) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let since = Instant::now();
        self.idle.lock().push(Idle {
            connection,
            since,
            used,
        });
        let (pool, keep_for) = (Arc::downgrade(self), self.keep_for);
        runtime.spawn(async move {
            tokio::time::sleep_until(since + keep_for).await;
            if let Some(pool) = pool.upgrade() {
                pool.idle.lock().retain(|idle| idle.since > since);
            }
        });
    }

    /// The connection that has been idle longest and can take a request now, as far as can be seen
    /// from here.
    fn idle(&self) -> Option<Connection> {
        let now = Instant::now();
        let age = |idle: &Idle| now.duration_since(idle.since);
        let mut all = self.idle.lock();
        all.retain(|idle| age(idle) < self.keep_for);
        loop {
            let settled = |idle: &Idle| !idle.used || age(idle) >= SETTLED;
            let index = all.iter().position(settled)?;
            let mut connection = all.remove(index).connection;
            if connection.is_usable() {
                return Some(connection);
            }
        }
    }

    /// Sends `request` and waits for the response head. `on` is called at each step, also when no
    /// answer comes. The answer's body moves on while [`Connection::drive`] is called.
    ///
    /// A connection that turns out to be dead before a byte of the request was written is replaced
    /// by another, once. Nothing else is ever tried again.
    ///
    /// # Errors
    /// There is no response head. `limit` bounds the wait for the connection and for the head, each.
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
        limit: Option<Duration>,
        mut on: impl FnMut(Sending),
    ) -> Result<(Response<Incoming>, Connection), SendError> {
        let connection = match self.idle() {
            Some(connection) => connection,
            None => noticing(self.dial(limit), || on(Sending::Waiting)).await?,
        };
        self.send_over(connection, request, limit, on).await
    }

    async fn send_over(
        &self,
        mut connection: Connection,
        mut request: Request<Full<Bytes>>,
        limit: Option<Duration>,
        mut on: impl FnMut(Sending),
    ) -> Result<(Response<Incoming>, Connection), SendError> {
        let mut may_retry = true;
        let target = request.uri().clone();
        loop {
            let connected = Stamp::now();
            on(Sending::Sent(SendClocks {
                connected,
                sent: Stamp::now(),
            }));
            let exchange = noticing(connection.exchange(request), || on(Sending::Waiting));
            let answer = match within(limit, exchange).await {
                Ok(answer) => answer,
                Err(limit) => return Err(SendError::Silent(limit)),
            };
            match answer {
                Ok(response) => {
                    let (status, headers) = (response.status(), response.headers());
                    return match Redirect::of(status, headers, &target, &self.upstream) {
                        Some(redirect) => Err(SendError::Redirected(redirect)),
                        None => Ok((response, connection)),
                    };
                }
                Err(mut failure) => match failure.take_message() {
                    Some(unsent) if std::mem::take(&mut may_retry) => {
                        request = unsent;
                        connection = self.dial(limit).await?;
                    }
                    _ => return Err(SendError::NoAnswer(self.no_answer(failure.error()))),
                },
            }
        }
    }

    async fn dial(&self, limit: Option<Duration>) -> Result<Connection, SendError> {
        let to = || self.upstream.url();
        match within(limit, Connection::dial(&self.upstream)).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(DialError::Open(OpenError::Socket(source)))) => {
                Err(SendError::Unreachable { to: to(), source })
            }
            Ok(Err(DialError::Open(OpenError::Tls(why)))) => Err(SendError::Tls { to: to(), why }),
            Ok(Err(DialError::Handshake(error))) => Err(SendError::NoAnswer(describe(&error))),
            Err(_) => {
                let source = io::ErrorKind::TimedOut.into();
                Err(SendError::Unreachable { to: to(), source })
            }
        }
    }

    /// Why what came is no answer.
    fn no_answer(&self, error: &hyper::Error) -> String {
        let text = describe(error);
        if error.is_parse() && self.upstream.url().starts_with("http://") {
            return format!("{text}; if the server speaks TLS, write https:// instead of http://");
        }
        text
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyStyle;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

    /// Waits until the runtime knows of every close up to now: it learns of them in order.
    async fn closes_are_known(listener: &TcpListener) {
        let connecting = TcpStream::connect(listener.local_addr().unwrap());
        let (client, server) = tokio::join!(connecting, listener.accept());
        drop(server);
        assert_eq!(client.unwrap().read(&mut [0]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_connection_that_died_before_a_byte_was_sent_is_replaced_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let pool = Pool::new(Upstream::new(&url, None, KeyStyle::Bearer).unwrap());
        let (dead, accepted) = tokio::join!(pool.dial(None), listener.accept());
        drop(accepted);
        closes_are_known(&listener).await;

        let request = Request::builder()
            .uri("/")
            .header("host", "h")
            .body(Full::default())
            .unwrap();
        let mut sends = 0;
        let sending = pool.send_over(dead.unwrap(), request, None, |step| {
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

    /// A pool with one idle connection, and the server's end of it.
    async fn pool_with_one(used: bool) -> (Arc<Pool>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let pool = Pool::new(Upstream::new(&url, None, KeyStyle::Bearer).unwrap());
        let (dialled, accepted) = tokio::join!(pool.dial(None), listener.accept());
        pool.put(dialled.unwrap(), used);
        (pool, accepted.unwrap().0)
    }

    #[tokio::test]
    async fn a_connection_that_may_be_closing_is_not_used_yet() {
        let (pool, _server) = pool_with_one(true).await;
        tokio::time::pause();
        tokio::time::advance(SETTLED - Duration::from_millis(100)).await;
        assert!(pool.idle().is_none());
        tokio::time::advance(Duration::from_millis(100)).await;
        assert!(pool.idle().is_some());
        assert!(pool.idle().is_none(), "it is taken");
    }

    #[tokio::test]
    async fn a_connection_that_carried_nothing_yet_is_used_at_once() {
        let (pool, _server) = pool_with_one(false).await;
        assert!(pool.idle().is_some());
    }

    #[tokio::test]
    async fn a_connection_that_nobody_needs_is_closed() {
        let (pool, mut server) = pool_with_one(true).await;
        tokio::time::pause();
        tokio::time::advance(KEPT).await;
        tokio::time::resume();
        // The server reads its end, so nothing holds it any more.
        assert_eq!(server.read(&mut [0]).await.unwrap(), 0);
        assert!(pool.idle.lock().is_empty());
    }
}
