//! All clients of the listener: observes their requests, gives snapshots.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use tokio::sync::{mpsc, watch};

use super::client_stats::{ClientFigures, ClientStats, LiveRequest, LiveState};
use super::histogram::{Histogram, LAG};
use super::log::LogWriter;
use super::metrics::metrics;
use crate::{Activity, ClientRegistry, GatewayEvent, Observer, Page};
use flashrig_clock::Stamp;
use flashrig_record::Attempt;

/// Where Prometheus finds the metrics. Never forwarded.
pub const METRICS_PATH: &str = "/metrics";
/// Where a watchdog finds that the gateway serves. Never forwarded.
pub const HEALTH_PATH: &str = "/flashrig/health";
/// Finished requests that are not shown yet; a terminal that stands still must not fill the memory.
const MOST_UNSHOWN: usize = 1024;

/// A request that ended.
#[derive(Clone, Debug)]
pub struct FinishedRequest {
    /// Whose it was.
    pub client: Arc<str>,
    /// The request.
    pub attempt: Box<Attempt>,
}

/// All clients at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// In the order of their names.
    pub clients: Vec<ClientSnapshot>,
    /// The lag of the gateway's event loop, in seconds.
    pub lag: Histogram,
    /// Lines that the log lost; `None` without a log.
    pub lost_log_lines: Option<u64>,
}

/// One client at one moment.
#[derive(Clone, Debug)]
pub struct ClientSnapshot {
    /// Its name.
    pub name: Arc<str>,
    /// How many requests are in flight.
    pub in_flight: u32,
    /// Those of them whose body was read, in the order of their numbers.
    pub requests: Vec<LiveRequest>,
    /// What its requests add up to.
    pub figures: ClientFigures,
}

/// The clients of a listener.
#[derive(Debug)]
pub struct StandingStats {
    clients: Mutex<BTreeMap<Arc<str>, Arc<Client>>>,
    lag: Mutex<Histogram>,
    finished: mpsc::Sender<FinishedRequest>,
    log: Option<LogWriter>,
    /// For the observers that it makes.
    own: Weak<Self>,
}

#[derive(Debug)]
struct Client {
    name: Arc<str>,
    activity: watch::Receiver<Activity>,
    stats: Mutex<ClientStats>,
}

impl StandingStats {
    /// Statistics without clients, and the requests that end, for who shows them. Those that are not
    /// taken off in time are left out there, but not in the figures or in the log.
    pub fn new(log: Option<LogWriter>) -> (Arc<Self>, mpsc::Receiver<FinishedRequest>) {
        let (sender, receiver) = mpsc::channel(MOST_UNSHOWN);
        let stats = Arc::new_cyclic(|own| Self {
            clients: Mutex::default(),
            lag: Mutex::new(Histogram::new(LAG)),
            finished: sender,
            log,
            own: own.clone(),
        });
        (stats, receiver)
    }

    /// Records how late the event loop was, in seconds.
    pub fn record_lag(&self, seconds: f64) {
        self.lag.lock().record(seconds);
    }

    /// All clients now.
    pub fn snapshot(&self) -> Snapshot {
        let now = Stamp::now();
        let clients: Vec<_> = self.clients.lock().values().cloned().collect();
        Snapshot {
            clients: clients.iter().map(|client| client.snapshot(now)).collect(),
            lag: self.lag.lock().clone(),
            lost_log_lines: self.log.as_ref().map(LogWriter::lost),
        }
    }

    /// Has the log write what is queued. Waits for a disk that hangs no longer than
    /// [`FLUSH_LIMIT`](super::log::FLUSH_LIMIT).
    pub fn close_log(&self) {
        if let Some(log) = &self.log {
            log.close();
        }
    }

    fn finished(&self, client: &Client, attempt: &Attempt) {
        let finished = FinishedRequest {
            client: Arc::clone(&client.name),
            attempt: Box::new(attempt.clone()),
        };
        if let Some(log) = &self.log {
            log.write(finished.clone());
        }
        let _ = self.finished.try_send(finished);
    }
}

impl ClientRegistry for StandingStats {
    fn client(&self, name: &str, activity: watch::Receiver<Activity>) -> Box<dyn Observer> {
        let name: Arc<str> = name.into();
        let client = Arc::new(Client {
            name: Arc::clone(&name),
            activity,
            stats: Mutex::default(),
        });
        self.clients.lock().insert(name, Arc::clone(&client));
        let stats = self.own.clone();
        Box::new(move |event: GatewayEvent| {
            client.stats.lock().handle(&event);
            if let (GatewayEvent::Finished(attempt), Some(stats)) = (&event, stats.upgrade()) {
                stats.finished(&client, attempt);
            }
        })
    }

    fn page(&self, path: &str) -> Option<Page> {
        match path {
            METRICS_PATH => Some(Page {
                content_type: "text/plain; version=0.0.4; charset=utf-8",
                text: metrics(&self.snapshot()),
                private: true,
            }),
            HEALTH_PATH => Some(Page {
                content_type: "text/plain; charset=utf-8",
                text: "ok\n".to_owned(),
                private: false,
            }),
            _ => None,
        }
    }
}

impl ClientSnapshot {
    /// How many requests in flight have no generated token yet, queued ones included.
    pub fn without_token(&self) -> u32 {
        let generating = |one: &&LiveRequest| matches!(one.state, LiveState::Generating { .. });
        self.in_flight.saturating_sub(self.count(generating))
    }

    /// How many are in the gate's queue.
    pub fn queued(&self) -> u32 {
        self.count(|one| matches!(one.state, LiveState::Queued(_)))
    }

    fn count(&self, wanted: impl FnMut(&&LiveRequest) -> bool) -> u32 {
        let count = self.requests.iter().filter(wanted).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

impl Client {
    fn snapshot(&self, now: Stamp) -> ClientSnapshot {
        let stats = self.stats.lock();
        ClientSnapshot {
            name: Arc::clone(&self.name),
            in_flight: self.activity.borrow().in_flight,
            requests: stats.requests(now),
            figures: stats.figures.clone(),
        }
    }
}
