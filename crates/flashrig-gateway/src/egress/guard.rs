//! The listener: a port on loopback that looks like a proxy.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::allow::AllowList;
use super::answer::{self, Tunnel};
use super::counts::EgressCounts;
use super::shared::Shared;
use super::socks;
use flashrig_clock::{Origin, Stamp};
use flashrig_record::{EgressFact, EgressOutcome};

/// Connections at a time; more are turned away.
const CONNECTIONS: usize = 256;
/// A request's head may have this many bytes; proxies are asked for an address and little else.
const HEAD_BYTES: usize = 32 * 1024;
/// For a head to arrive, and for a connection to lie idle.
const HEAD_LIMIT: Duration = Duration::from_secs(30);
/// What one connection too many is told.
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n\
flashrig's egress guard: too many clients.\r\n";

/// What a guard needs.
#[derive(Clone, Debug)]
pub struct GuardConfig {
    /// Names the session, in answers and log lines.
    pub label: String,
    /// What may be reached beside loopback.
    pub allow: AllowList,
    /// What stored instants count from.
    pub origin: Origin,
}

/// Why a guard cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("session {label}: the egress guard cannot listen on 127.0.0.1: {source}")]
pub struct GuardError {
    label: String,
    source: io::Error,
}

/// A guard that listens. Dropping it stops it; what it counted is then lost.
pub struct EgressGuard {
    addr: SocketAddr,
    shared: Arc<Shared>,
    stop: oneshot::Sender<()>,
    listening: Listening,
}

impl EgressGuard {
    /// Listens on a free loopback port. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When there is no port to be had.
    pub async fn open(config: GuardConfig) -> Result<Self, GuardError> {
        let GuardConfig {
            label,
            allow,
            origin,
        } = config;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let bound = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (addr, listener) = match bound {
            Ok(bound) => bound,
            Err(source) => return Err(GuardError { label, source }),
        };
        let shared = Arc::new(Shared {
            label,
            allow,
            counts: EgressCounts::new(origin),
        });
        let (stop, stopped) = oneshot::channel();
        let listening = tokio::spawn(listen(listener, Arc::clone(&shared), stopped));
        Ok(Self {
            addr,
            shared,
            stop,
            listening: Listening(listening),
        })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The address to give to programs as their proxy.
    pub fn proxy_url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// What was asked for so far.
    pub fn facts(&self) -> Vec<EgressFact> {
        self.shared.counts.facts()
    }

    /// Stops listening, cuts off what is open, and tells what was asked for.
    pub async fn close(self) -> Vec<EgressFact> {
        let Self {
            shared,
            stop,
            mut listening,
            ..
        } = self;
        // An error means that the listening task is over already.
        let _ = stop.send(());
        let _ = (&mut listening.0).await;
        shared.counts.facts()
    }
}

/// The listening task, which must not outlive its guard.
struct Listening(JoinHandle<()>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Accepts until told to stop; when this ends, no connection is left.
async fn listen(listener: TcpListener, shared: Arc<Shared>, mut stopped: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            Some(ended) = connections.join_next() => if let Err(error) = ended {
                tracing::error!(session = shared.label, %error, "the egress guard lost a connection");
            },
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => match Arc::clone(&places).try_acquire_owned() {
                    Ok(place) => {
                        let shared = Arc::clone(&shared);
                        connections.spawn(async move {
                            connection(stream, shared).await;
                            drop(place);
                        });
                    }
                    Err(_) => {
                        let _ = stream.try_write(BUSY);
                    }
                },
                Err(error) => {
                    tracing::warn!(session = shared.label, %error, "the egress guard cannot accept");
                    // Most often no descriptor is free; trying again at once would only spin.
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            },
        }
    }
    drop(listener);
    connections.shutdown().await;
}

async fn connection(mut stream: TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let mut first = [0];
    let begun = match timeout(HEAD_LIMIT, stream.peek(&mut first)).await {
        Ok(Ok(1)) => Stamp::now(),
        // It left, or never said a word.
        _ => return,
    };
    if socks::speaks_socks(first[0]) {
        let refused = timeout(HEAD_LIMIT, socks::refuse(&mut stream)).await;
        let (name, to) = refused.unwrap_or(("SOCKS", None));
        let leaves = to
            .as_ref()
            .is_some_and(|to| to.loopback().is_empty() && !shared.allow.allows(to));
        let outcome = if leaves {
            EgressOutcome::Refused
        } else {
            EgressOutcome::Unserved
        };
        shared.counts.count(to.as_ref(), name, outcome, begun);
        return;
    }
    let tunnel: Arc<Mutex<Option<Tunnel>>> = Arc::default();
    let service = {
        let (shared, tunnel) = (Arc::clone(&shared), Arc::clone(&tunnel));
        service_fn(move |request| {
            let (shared, tunnel) = (Arc::clone(&shared), Arc::clone(&tunnel));
            async move {
                let (response, opened) = answer::serve(&shared, request).await;
                if opened.is_some() {
                    *tunnel.lock() = opened;
                }
                Ok::<_, Infallible>(response)
            }
        })
    };
    let served = http1::Builder::new()
        // Some clients end their side once they have asked.
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_headers(256)
        .max_header_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    // hyper answers what it cannot read by itself; the count is made here.
    if let Err(error) = served
        && error.is_parse()
    {
        shared
            .counts
            .count(None, "", EgressOutcome::Unserved, Stamp::now());
    }
    let opened = tunnel.lock().take();
    if let Some(opened) = opened {
        opened.run().await;
    }
}
