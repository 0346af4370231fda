//! A standing listener for many clients.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

use super::auth::{Auth, Clients};
use super::body_budget::BodyBudget;
use super::client_name::ClientName;
use super::gate::Gate;
use super::limits::Limits;
use super::listener::{Listening, listen};
use super::prompt::PromptCap;
use super::registry::ClientRegistry;
use super::shared::Shared;
use flashrig_clock::Origin;
use flashrig_http::{Pool, Secret, Upstream};

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
        registry: Arc<dyn ClientRegistry>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(config.listen).await?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared {
            pool: Pool::new(config.upstream),
            auth: Auth::Clients(Clients::new(
                config.tokens,
                registry,
                config.gate,
                addr.ip(),
                config.origin,
            )),
            prompt_cap: PromptCap::when_needed(
                config.limits.prompt_tokens,
                config.answer_probes.is_some(),
            ),
            body_budget: BodyBudget::new(config.limits.held_body_bytes),
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
            listening,
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
