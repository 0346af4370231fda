//! Start and stop: the listener, on a thread and runtime of its own, so that the simulator can
//! live inside another program without disturbing it, and is disturbed by nothing.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::{mpsc, oneshot};

use super::brain::Brain;
use super::counters::Counters;
use super::engine::Engine;
use super::faults::Faults;
use super::http::Service;
use super::profile::SimProfile;
use super::truth::{SCHEMA, Truth, TruthLog};
use crate::clock::Stamp;
use crate::task::Walkthrough;

/// What a simulated server is made of.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// Where it listens; port 0 picks a free one.
    pub listen: SocketAddr,
    /// How fast it is, and the model name it serves.
    pub profile: SimProfile,
    /// All durations are divided by this; above 0.
    pub speed: f64,
    /// The walkthroughs it can play.
    pub scripts: Vec<Script>,
    /// Seed of noise and of response ids.
    pub seed: u64,
    /// Where it logs its truth, as JSON lines.
    pub log: Option<PathBuf>,
    /// What goes wrong on purpose.
    pub faults: Faults,
}

/// A walkthrough, and the prompt by which it is recognised.
#[derive(Clone, Debug)]
pub struct Script {
    /// Name of the task.
    pub name: String,
    /// The whole prompt of the task.
    pub prompt: String,
    /// The steps.
    pub walkthrough: Walkthrough,
}

/// Why a simulated server did not start.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// Somebody else listens there.
    #[error("port {} on {} is in use; stop what listens there or choose another address", .0.port(), .0.ip())]
    AddressInUse(SocketAddr),
    /// The address cannot be listened on.
    #[error("the simulated server cannot listen on {address}: {source}")]
    Listen {
        /// Address asked for.
        address: SocketAddr,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The speed is not a positive number.
    #[error("speed is {0}, but it must be a number above 0")]
    Speed(f64),
    /// A script with an empty prompt, which every request would contain.
    #[error(
        "the walkthrough '{0}' has an empty prompt and could not be told from any other; give it one"
    )]
    EmptyPrompt(String),
    /// The log cannot be created.
    #[error("the simulated server's log {path} cannot be created: {source}")]
    Log {
        /// Path asked for.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The system gave no thread or no runtime.
    #[error("the simulated server's thread could not be started: {0}")]
    Thread(std::io::Error),
}

/// The simulated server.
#[derive(Debug)]
pub struct Sim;

/// A running simulated server; stops when dropped.
#[derive(Debug)]
pub struct SimHandle {
    addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Sim {
    /// Starts listening; returns once connections are accepted.
    ///
    /// # Errors
    /// The address is in use or cannot be had, the configuration is invalid, or the log cannot be
    /// created. Nothing is left running then.
    pub fn start(config: SimConfig) -> Result<SimHandle, SimError> {
        let speed = config.speed;
        if !(speed > 0.0 && speed.is_finite()) {
            return Err(SimError::Speed(speed));
        }
        if let Some(script) = config
            .scripts
            .iter()
            .find(|script| super::brain::is_empty_prompt(&script.prompt))
        {
            return Err(SimError::EmptyPrompt(script.name.clone()));
        }
        let address = config.listen;
        let listener = TcpListener::bind(address).map_err(|source| match source.kind() {
            std::io::ErrorKind::AddrInUse => SimError::AddressInUse(address),
            _ => SimError::Listen { address, source },
        })?;
        let listen = |source| SimError::Listen { address, source };
        listener.set_nonblocking(true).map_err(listen)?;
        let addr = listener.local_addr().map_err(listen)?;
        let mut log = TruthLog::create(config.log.as_deref()).map_err(|source| SimError::Log {
            path: config.log.clone().unwrap_or_default(),
            source,
        })?;
        let profile = config.profile.name.clone();
        log.write(&Truth::Start {
            schema: SCHEMA.to_owned(),
            profile,
            speed,
            at: Stamp::now(),
        });

        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(SimError::Thread)?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("flashrig-sim".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = serve(listener, config, log) => {}
                        // Also when the handle is dropped without a word.
                        _ = stopped => {}
                    }
                });
                // Dropping the runtime ends every connection and the engine.
            })
            .map_err(SimError::Thread)?;
        Ok(SimHandle {
            addr,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl SimHandle {
    /// The address it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://ADDRESS`, without a path.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Whether it still serves; it does until it is stopped, unless its thread panicked.
    pub fn is_running(&self) -> bool {
        self.thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
    }

    /// Stops it: open connections are closed, the port is free when this returns.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the simulated server's thread panicked");
        }
    }
}

impl Drop for SimHandle {
    fn drop(&mut self) {
        self.end();
    }
}

async fn serve(listener: TcpListener, config: SimConfig, log: TruthLog) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "the simulated server cannot watch its listener");
            return;
        }
    };
    let (jobs, inbox) = mpsc::unbounded_channel();
    let counters = Arc::new(Counters::default());
    let timing = config.profile.timing.clone();
    tokio::spawn(
        Engine::new(
            timing,
            config.speed,
            config.seed,
            inbox,
            Arc::clone(&counters),
            log,
        )
        .run(),
    );
    let brain = Brain::new(&config.scripts);
    let service = Arc::new(Service::new(
        config.profile,
        brain,
        config.faults,
        config.seed,
        jobs,
        counters,
    ));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, or a client that left at once: neither ends the server.
                tracing::warn!(%error, "the simulated server could not accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                continue;
            }
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "tokens to this client may be held back by the system");
        }
        let service = Arc::clone(&service);
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let service = Arc::clone(&service);
                async move { service.answer(request).await }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer);
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the simulated server ended early");
            }
        });
    }
}
