//! Start and stop: the listener, on a thread and runtime of its own, so that the simulator can
//! live inside another program without disturbing it, and is disturbed by nothing.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::oneshot;

use super::brain::{Brain, Recall};
use super::counters::Counters;
use super::engine::{self, Incoming, Parts, Scheduler};
use super::faults::Faults;
use super::memory::Memory;
use super::profile::SimProfile;
use super::server_log::{Listener, ServerLog};
use super::service::Service;
use super::truth::{SCHEMA, Truth, TruthLog};
use crate::walkthrough::Script;
use flashrig_clock::Stamp;

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
    /// Where it logs what a real server would log, as text.
    pub server_log: Option<PathBuf>,
    /// What goes wrong on purpose, besides what the profile says.
    pub faults: Faults,
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
        "the walkthrough '{0}' has an empty prompt, so no request can be matched to it; give it a prompt"
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
    threads: Vec<JoinHandle<()>>,
}

impl Sim {
    /// Starts listening; returns once connections are accepted.
    ///
    /// # Errors
    /// The address is in use or cannot be had, the configuration is invalid, or the log cannot be
    /// created. Nothing is left running then.
    pub fn start(config: SimConfig) -> Result<SimHandle, SimError> {
        Self::start_with(config, None)
    }

    /// The same, and calls back with every line of the server's log; the callback must not take long.
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub fn start_with_log(
        config: SimConfig,
        report: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<SimHandle, SimError> {
        Self::start_with(config, Some(Arc::new(report)))
    }

    fn start_with(config: SimConfig, report: Option<Listener>) -> Result<SimHandle, SimError> {
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
        let create = |path: &Option<PathBuf>| {
            let path = path.clone().unwrap_or_default();
            move |source| SimError::Log { path, source }
        };
        let mut log = TruthLog::create(config.log.as_deref()).map_err(create(&config.log))?;
        let server_log = ServerLog::create(config.server_log.as_deref(), report)
            .map_err(create(&config.server_log))?;
        log.write(&Truth::Start {
            schema: SCHEMA.to_owned(),
            profile: config.profile.name.clone(),
            speed,
            at: Stamp::now(),
        });
        log.flush();
        server_log.boot(&config.profile, addr);

        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(SimError::Thread)?;
        let (scheduler, service, inbox) = assemble(config, log, server_log);
        let (stop, stopped) = oneshot::channel();
        let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
            let builder = std::thread::Builder::new().name(name.to_owned());
            builder.spawn(run).map_err(SimError::Thread)
        };
        // It ends with the last sender, and so with the service of the other thread.
        let engine = spawn(
            "flashrig-engine",
            Box::new(move || engine::run(scheduler, &inbox)),
        )?;
        let server = spawn(
            "flashrig-sim",
            Box::new(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = serve(listener, service) => {}
                        // Also when the handle is dropped without a word.
                        _ = stopped => {}
                    }
                });
                // Dropping the runtime ends every connection.
            }),
        )?;
        Ok(SimHandle {
            addr,
            stop: Some(stop),
            threads: vec![server, engine],
        })
    }
}

/// The two halves of a server, and what leads from one to the other.
fn assemble(
    config: SimConfig,
    log: TruthLog,
    server_log: ServerLog,
) -> (Scheduler, Arc<Service>, Receiver<Incoming>) {
    let SimConfig {
        profile,
        speed,
        seed,
        ..
    } = config;
    let table = profile.timing.table();
    let faults = config.faults.or(&table.faults);
    let quantised_miss = table.quantised_miss_every.filter(|_| table.kv_bits < 16);
    let recall = Recall::new(
        faults.drop_fact_every.or(quantised_miss),
        faults.answer_from_other_session,
    );
    let (engine, inbox) = std::sync::mpsc::channel();
    let counters = Arc::new(Counters::default());
    let memory = Arc::new(Memory::new(table));
    let scheduler = Scheduler::new(
        Parts {
            timing: profile.timing.clone(),
            speed,
            slower_each_request: faults.slower_each_request,
            seed,
            counters: Arc::clone(&counters),
            memory: Arc::clone(&memory),
            log,
            server_log: server_log.clone(),
        },
        Stamp::now(),
    );
    let service = Service {
        profile,
        speed,
        brain: Brain::new(&config.scripts, recall),
        faults,
        seed,
        requests: AtomicU64::new(0),
        engine,
        counters,
        memory,
        server_log,
    };
    (scheduler, Arc::new(service), inbox)
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

    /// Whether it still serves; it does until it is stopped, unless a thread of it panicked.
    pub fn is_running(&self) -> bool {
        !self.threads.is_empty() && self.threads.iter().all(|thread| !thread.is_finished())
    }

    /// Stops it: open connections are closed, the port is free when this returns.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the simulated server panicked");
            }
        }
    }
}

impl Drop for SimHandle {
    fn drop(&mut self) {
        self.end();
    }
}

async fn serve(listener: TcpListener, service: Arc<Service>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "the simulated server cannot watch its listener");
            return;
        }
    };
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
            let answer = service_fn(move |request| Arc::clone(&service).answer(request));
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer);
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the simulated server ended early");
            }
        });
    }
}
