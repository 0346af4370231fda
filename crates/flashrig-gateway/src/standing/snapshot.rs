//! What the standing gateway has counted, at one instant.

use std::sync::Arc;

use super::client_stats::{ClientFigures, LiveRequest, LiveState};
use super::histogram::Histogram;
use flashrig_record::Attempt;

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
