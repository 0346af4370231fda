//! Requests and their answers, and what all clones of a client share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use super::aim::{Aim, LoadLimits};
use super::sizing::Corrections;
use flashrig_clock::Origin;
use flashrig_http::Pool;
use flashrig_record::{Attempt, Role};

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Whose it is, for its row.
    pub session: String,
    /// What it is to its session: main or side.
    pub role: Role,
    /// The body as it is sent.
    pub body: Bytes,
    /// Messages in it.
    pub messages: u32,
    /// The output limit in it.
    pub max_tokens: u32,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The row; its `end` says how it ended.
    pub attempt: Attempt,
    /// The text of the answer, as far as it came.
    pub text: String,
    /// Its reasoning, where the server tells it apart.
    pub reasoning: String,
}

/// A row, and whose it is.
#[derive(Clone, Debug)]
pub struct SessionAttempt {
    /// Session name.
    pub session: String,
    /// The row.
    pub attempt: Attempt,
}

impl SessionAttempt {
    /// Whose it is, and the row.
    pub fn named(&self) -> (&str, &Attempt) {
        (&self.session, &self.attempt)
    }
}

/// What all clones share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) aim: Aim,
    /// The aim's limits on the wall clock.
    pub(super) limits: LoadLimits,
    pub(super) origin: Origin,
    /// What the server's counts taught about prompts of a size.
    pub(super) corrections: Mutex<Corrections>,
    pub(super) pool: Arc<Pool>,
    pub(super) rows: Mutex<Rows>,
    pub(super) gauges: Gauges,
}

#[derive(Debug, Default)]
pub(super) struct Rows {
    numbers: HashMap<String, u32>,
    pub(super) done: Vec<SessionAttempt>,
}

#[derive(Debug, Default)]
pub(super) struct Gauges {
    pub(super) in_flight: AtomicU32,
    /// Requests of sessions that have no token yet.
    pub(super) without_token: AtomicU32,
    peak: AtomicU32,
    /// Walls of the requests that ended whole, in seconds.
    walls: Mutex<Vec<f64>>,
}

impl Shared {
    /// The number of a session's next row.
    pub(super) fn number(&self, session: &str) -> u32 {
        let mut rows = self.rows.lock();
        let number = rows.numbers.entry(session.to_owned()).or_default();
        *number += 1;
        *number
    }

    /// A request is on its way.
    pub(super) fn opened(&self) {
        let open = self.gauges.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        self.gauges.peak.fetch_max(open, Ordering::Relaxed);
    }

    /// A session's request waits for its first token.
    pub(super) fn waits_for_token(&self) {
        self.gauges.without_token.fetch_add(1, Ordering::Relaxed);
    }

    /// It came, or will not come any more.
    pub(super) fn waits_no_more(&self) {
        self.gauges.without_token.fetch_sub(1, Ordering::Relaxed);
    }

    /// It is over.
    pub(super) fn closed(&self, session: String, attempt: Attempt, wall_s: Option<f64>) {
        self.gauges.in_flight.fetch_sub(1, Ordering::Relaxed);
        if let Some(wall_s) = wall_s {
            self.gauges.walls.lock().push(wall_s);
        }
        self.rows
            .lock()
            .done
            .push(SessionAttempt { session, attempt });
    }

    /// Begins a span of the gauges.
    pub(super) fn span_begins(&self) {
        let open = self.gauges.in_flight.load(Ordering::Relaxed);
        self.gauges.peak.store(open, Ordering::Relaxed);
        self.gauges.walls.lock().clear();
    }

    /// The most requests that were open at once, and the median wall of those that ended whole,
    /// in seconds, since the span began.
    pub(super) fn span_ends(&self) -> (u32, Option<f64>) {
        let mut walls = std::mem::take(&mut *self.gauges.walls.lock());
        walls.sort_by(f64::total_cmp);
        (
            self.gauges.peak.load(Ordering::Relaxed),
            walls.get(walls.len() / 2).copied(),
        )
    }
}
