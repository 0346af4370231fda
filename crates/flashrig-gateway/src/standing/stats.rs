//! The clients of the listener: hears of their requests, gives snapshots.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use tokio::sync::{mpsc, watch};

use super::client_stats::{ClientFigures, ClientStats};
use super::histogram::{Histogram, LAG};
use super::log::LogWriter;
use super::metrics::metrics;
use crate::{Activity, ClientRegistry, GatewayEvent, Observer, Page};
use flashrig_record::Attempt;

/// Where Prometheus finds the metrics. Never forwarded.
pub const METRICS_PATH: &str = "/metrics";
/// Where a watchdog finds that the gateway serves. Never forwarded.
pub const HEALTH_PATH: &str = "/flashrig/health";
/// Requests that are told and not yet shown; a terminal that stands still must not fill the memory.
const MOST_UNSHOWN: usize = 1024;

/// A request that ended, as it is told to who shows it.
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
}

/// One client at one moment.
#[derive(Clone, Debug)]
pub struct ClientSnapshot {
    /// Its name.
    pub name: Arc<str>,
    /// Requests in flight.
    pub in_flight: u32,
    /// Those of them that have no generated token yet.
    pub waiting: u32,
    /// What its requests add up to.
    pub figures: ClientFigures,
}

/// The clients of a listener.
#[derive(Debug)]
pub struct StandingStats {
    clients: Mutex<BTreeMap<Arc<str>, Arc<Client>>>,
    lag: Mutex<Histogram>,
    reported: mpsc::Sender<FinishedRequest>,
    log: Option<LogWriter>,
    /// For the observers that it makes.
    own: Weak<Self>,
}

#[derive(Debug)]
struct Client {
    name: Arc<str>,
    activity: watch::Receiver<Activity>,
    client_stats: Mutex<ClientStats>,
}

impl StandingStats {
    /// A stats without clients, and what tells of the requests that end. Those that nobody takes
    /// off in time are left out there, but not in the figures or in the log.
    pub fn new(log: Option<LogWriter>) -> (Arc<Self>, mpsc::Receiver<FinishedRequest>) {
        let (reported, received) = mpsc::channel(MOST_UNSHOWN);
        let stats = Arc::new_cyclic(|own| Self {
            clients: Mutex::default(),
            lag: Mutex::new(Histogram::new(LAG)),
            reported,
            log,
            own: own.clone(),
        });
        (stats, received)
    }

    /// Takes in how late the event loop was, in seconds.
    pub fn lag(&self, seconds: f64) {
        self.lag.lock().note(seconds);
    }

    /// All clients now.
    pub fn snapshot(&self) -> Snapshot {
        let clients: Vec<_> = self.clients.lock().values().cloned().collect();
        Snapshot {
            clients: clients.iter().map(|client| client.snapshot()).collect(),
            lag: self.lag.lock().clone(),
        }
    }

    fn finished(&self, client: &Client, attempt: &Attempt) {
        let received = FinishedRequest {
            client: Arc::clone(&client.name),
            attempt: Box::new(attempt.clone()),
        };
        if let Some(log) = &self.log {
            log.write(received.clone());
        }
        let _ = self.reported.try_send(received);
    }
}

impl ClientRegistry for StandingStats {
    fn client(&self, name: &str, activity: watch::Receiver<Activity>) -> Box<dyn Observer> {
        let name: Arc<str> = name.into();
        let client = Arc::new(Client {
            name: Arc::clone(&name),
            activity,
            client_stats: Mutex::default(),
        });
        self.clients.lock().insert(name, Arc::clone(&client));
        let stats = self.own.clone();
        Box::new(move |event: GatewayEvent| {
            client.client_stats.lock().handle(&event);
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
    fn snapshot(&self) -> ClientSnapshot {
        let client_stats = self.client_stats.lock();
        let in_flight = self.activity.borrow().in_flight;
        let generating = u32::try_from(client_stats.generating()).unwrap_or(u32::MAX);
        ClientSnapshot {
            name: Arc::clone(&self.name),
            in_flight,
            waiting: in_flight.saturating_sub(generating),
            figures: client_stats.figures.clone(),
        }
    }
}
