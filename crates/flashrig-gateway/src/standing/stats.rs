//! All clients of the listener: observes their requests, gives snapshots.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use tokio::sync::{mpsc, watch};

use super::client_stats::ClientStats;
use super::histogram::{Histogram, LAG};
use super::log::LogWriter;
use super::metrics::metrics;
use super::snapshot::{ClientSnapshot, FinishedRequest, Snapshot};
use crate::{Activity, ClientRegistry, GatewayEvent, Observer, Page};
use flashrig_clock::Stamp;
use flashrig_record::Attempt;

/// Where Prometheus finds the metrics. Never forwarded.
pub const METRICS_PATH: &str = "/metrics";
/// Where a watchdog finds that the gateway serves. Never forwarded.
pub const HEALTH_PATH: &str = "/flashrig/health";
/// Finished requests that are not shown yet; a terminal that stands still must not fill the memory.
const MOST_UNSHOWN: usize = 1024;

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
    /// `FLUSH_LIMIT`.
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
