//! A session's own listener: on a free port of loopback, with a token and rows of its own.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

use super::auth::Auth;
use super::body_budget::BodyBudget;
use super::events::{Activity, Observer};
use super::gate::Gate;
use super::limits::Limits;
use super::listener::{Listening, listen};
use super::prompt::PromptCap;
use super::request_log::RequestLog;
use super::shared::Shared;
use flashrig_clock::Origin;
use flashrig_http::{Pool, Secret, Upstream};
use flashrig_record::Attempt;

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
        let request_log = RequestLog::new(origin, Box::new(observer));
        let activity = request_log.activity();
        let shared = Shared {
            pool: Pool::new(upstream),
            auth: Auth::Session {
                token,
                request_log: Arc::clone(&request_log),
                gate: gate.map(|gate| gate.client()),
            },
            prompt_cap: PromptCap::when_needed(limits.prompt_tokens, answer_probes.is_some()),
            body_budget: BodyBudget::new(limits.held_body_bytes),
            limits,
            nonce,
            answer_probes,
        };
        let (stop, stopped) = oneshot::channel();
        let listening = listen(listener, Arc::new(shared), label, stopped, None);
        Ok(GatewaySession {
            addr,
            request_log,
            activity,
            stop,
            listening,
        })
    }
}

/// A session that listens. Dropping it stops it; its rows are then lost.
pub struct GatewaySession {
    addr: SocketAddr,
    request_log: Arc<RequestLog>,
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
            request_log,
            stop,
            mut listening,
            ..
        } = self;
        request_log.start_closing();
        // An error means that the listening task is over already.
        let _ = stop.send(());
        let _ = (&mut listening.0).await;
        request_log.take()
    }
}
