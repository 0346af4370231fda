//! Listeners: a session's own, on a free port of loopback with a token and rows of its own; and a
//! standing one for many clients.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::auth::{Auth, ClientName, ClientRegistry, Clients};
use super::connection::{Draining, begins, connection};
use super::events::{Activity, Observer};
use super::exchange::Shared;
use super::gate::Gate;
use super::ledger::Ledger;
use super::prompt::PromptCap;
use flashrig_clock::Origin;
use flashrig_http::Link;
use flashrig_http::{Secret, Upstream};
use flashrig_record::Attempt;

/// Bounds of what a session takes.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The largest request body, in bytes; larger ones are answered 413.
    pub body_bytes: u64,
    /// The largest request head, in bytes; larger ones are answered 431.
    pub head_bytes: usize,
    /// How long the server may be silent: while connecting, before the response head, and between
    /// two reads of the body. `None`, the default, is no limit, and there is no other on what a
    /// server takes.
    pub time_limit: Option<Duration>,
    /// The longest prompt, in tokens as estimated from the request's bytes; longer ones are
    /// answered 400 in the client's dialect. `None`, the default, is no limit.
    pub prompt_tokens: Option<u64>,
    /// How long a request's head may take from its first byte to its last; slower ones are
    /// answered 408. A connection without a begun head may rest for ever.
    pub head_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 64 * 1024 * 1024,
            head_bytes: 64 * 1024,
            time_limit: None,
            prompt_tokens: None,
            head_time: Duration::from_secs(30),
        }
    }
}

/// What a session needs to listen.
#[derive(Clone, Debug)]
pub struct ListenConfig {
    /// Names the session in log lines.
    pub label: String,
    /// What clients must present, as `Authorization: Bearer` or `x-api-key`.
    pub token: Secret,
    /// Where requests go.
    pub upstream: Upstream,
    /// Bounds.
    pub limits: Limits,
    /// When given, a line with it is put at the very start of every prompt.
    pub nonce: Option<String>,
    /// When given, generation requests pass through it, beside those of other sessions.
    pub gate: Option<Arc<Gate>>,
    /// When given, probes are answered here and not passed on; it is the name of the served model.
    pub answer_probes: Option<String>,
    /// What stored instants count from.
    pub origin: Origin,
}

/// Why a session cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No port to be had.
    #[error("session {label}: cannot listen on 127.0.0.1: {source}")]
    Bind {
        /// The session's label.
        label: String,
        /// The system's reason.
        source: io::Error,
    },
    /// Anybody on the machine could use the session.
    #[error("session {label}: the token is empty; give it one that cannot be guessed")]
    EmptyToken {
        /// The session's label.
        label: String,
    },
}

/// Opens sessions.
#[derive(Debug)]
pub struct Session;

impl Session {
    /// Listens on a free loopback port. Must be called within a tokio runtime.
    pub async fn open(
        config: ListenConfig,
        observer: impl Observer,
    ) -> Result<GatewaySession, OpenError> {
        let ListenConfig {
            label,
            token,
            upstream,
            limits,
            nonce,
            gate,
            answer_probes,
            origin,
        } = config;
        if token.expose().is_empty() {
            return Err(OpenError::EmptyToken { label });
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let bound = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (addr, listener) = match bound {
            Ok(bound) => bound,
            Err(source) => return Err(OpenError::Bind { label, source }),
        };
        let ledger = Ledger::new(origin, Box::new(observer));
        let activity = ledger.activity();
        let shared = Shared {
            link: Link::new(upstream),
            auth: Auth::One {
                token,
                ledger: Arc::clone(&ledger),
                gate: gate.map(|gate| gate.client()),
            },
            prompt_cap: prompt_cap(&limits, answer_probes.as_ref()),
            limits,
            nonce,
            answer_probes,
        };
        let (stop, stopped) = oneshot::channel();
        let listening = tokio::spawn(listen(listener, Arc::new(shared), label, stopped, None));
        Ok(GatewaySession {
            addr,
            ledger,
            activity,
            stop,
            listening: Listening(listening),
        })
    }
}

/// What a standing listener needs.
pub struct StandingConfig {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Clients and their tokens. With none, everybody who reaches the address may come in.
    pub tokens: Vec<(ClientName, Secret)>,
    /// Where requests go.
    pub upstream: Upstream,
    /// Bounds.
    pub limits: Limits,
    /// When given, generation requests of all clients pass through it.
    pub gate: Option<Arc<Gate>>,
    /// When given, probes are answered here and not passed on; it is the name of the served model.
    pub answer_probes: Option<String>,
    /// What stored instants count from.
    pub origin: Origin,
}

/// What knows how long a prompt is, where anybody wants to know.
fn prompt_cap(limits: &Limits, answer_probes: Option<&String>) -> Option<Arc<PromptCap>> {
    let wanted = limits.prompt_tokens.is_some() || answer_probes.is_some();
    wanted.then(|| Arc::new(PromptCap::new(limits.prompt_tokens)))
}

/// A listener for many clients. Dropping it stops it.
pub struct Standing {
    addr: SocketAddr,
    shared: Arc<Shared>,
    drain: watch::Sender<bool>,
    stop: oneshot::Sender<()>,
    listening: Listening,
}

impl Standing {
    /// Listens. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn open(
        config: StandingConfig,
        client_registry: Arc<dyn ClientRegistry>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(config.listen).await?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared {
            link: Link::new(config.upstream),
            auth: Auth::Many(Clients::new(
                config.tokens,
                client_registry,
                config.gate,
                addr.ip(),
                config.origin,
            )),
            prompt_cap: prompt_cap(&config.limits, config.answer_probes.as_ref()),
            limits: config.limits,
            nonce: None,
            answer_probes: config.answer_probes,
        });
        let (stop, stopped) = oneshot::channel();
        let (drain, draining) = watch::channel(false);
        let listening = listen(
            listener,
            Arc::clone(&shared),
            "gateway".to_owned(),
            stopped,
            Some(draining),
        );
        Ok(Self {
            addr,
            shared,
            drain,
            stop,
            listening: Listening(tokio::spawn(listening)),
        })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Takes no new connection and no new request, and waits until those in flight have ended.
    /// May be dropped before that; [`Standing::close`] then cuts off what is left.
    pub async fn drain(&mut self) {
        self.drain.send_replace(true);
        // An error means that the listening task is over already.
        let _ = (&mut self.listening.0).await;
    }

    /// Stops listening and cuts off what is in flight.
    pub async fn close(mut self) {
        self.shared.auth.start_closing();
        let _ = self.stop.send(());
        if !self.listening.0.is_finished() {
            let _ = (&mut self.listening.0).await;
        }
    }
}

/// A session that listens. Dropping it stops it; its rows are then lost.
pub struct GatewaySession {
    addr: SocketAddr,
    ledger: Arc<Ledger>,
    activity: watch::Receiver<Activity>,
    stop: oneshot::Sender<()>,
    listening: Listening,
}

impl GatewaySession {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The address to give to clients, without `/v1` and without a slash at its end.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// What it is doing.
    pub fn activity(&self) -> Activity {
        *self.activity.borrow()
    }

    /// Follows what it is doing; `changed()` waits for the next begin or end of an attempt.
    pub fn watch(&self) -> watch::Receiver<Activity> {
        self.activity.clone()
    }

    /// Stops listening, cuts off what is in flight, and gives back a row for every attempt, in
    /// order of arrival and with roles settled.
    pub async fn close(self) -> Vec<Attempt> {
        let Self {
            ledger,
            stop,
            mut listening,
            ..
        } = self;
        ledger.start_closing();
        // An error means that the listening task is over already.
        let _ = stop.send(());
        let _ = (&mut listening.0).await;
        ledger.take()
    }
}

/// The listening task, which must not outlive its session.
struct Listening(JoinHandle<()>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Accepts until told to drain or to stop; when this ends, no connection is left.
async fn listen(
    listener: TcpListener,
    shared: Arc<Shared>,
    label: String,
    mut stopped: oneshot::Receiver<()>,
    mut draining: Draining,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            () = begins(&mut draining) => {
                drop(listener);
                tokio::select! {
                    _ = &mut stopped => connections.shutdown().await,
                    () = async { while connections.join_next().await.is_some() {} } => {}
                }
                return;
            }
            Some(ended) = connections.join_next() => if let Err(error) = ended {
                tracing::error!(session = label, %error, "a connection's task failed");
            },
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let serving = connection(stream, Arc::clone(&shared), draining.clone());
                    connections.spawn(serving);
                }
                Err(error) => {
                    tracing::warn!(session = label, %error, "cannot accept a connection");
                    // Most often no descriptor is free; trying again at once would only spin.
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            },
        }
    }
    drop(listener);
    connections.shutdown().await;
}
