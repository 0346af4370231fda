//! Many requests to one server: connections kept, rows, gauges.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

use super::aim::{Aim, LoadLimits};
use super::exchange;
use super::sizing::Corrections;
use flashrig_clock::Origin;
use flashrig_http::Pool;
use flashrig_record::{Attempt, Role};

/// How long a connection is kept for the next request: turns of a session are up to seconds apart,
/// and many servers close an idle connection after five.
const KEPT: Duration = Duration::from_secs(3);

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

/// The client. Clones share connections, rows and gauges.
#[derive(Clone, Debug)]
pub struct Client(Arc<Shared>);

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
    rows: Mutex<Rows>,
    gauges: Gauges,
}

#[derive(Debug, Default)]
struct Rows {
    numbers: HashMap<String, u32>,
    done: Vec<SessionAttempt>,
}

#[derive(Debug, Default)]
struct Gauges {
    in_flight: AtomicU32,
    /// Requests of sessions that have no token yet.
    without_token: AtomicU32,
    peak: AtomicU32,
    /// Walls of the requests that ended whole, in seconds.
    walls: Mutex<Vec<f64>>,
}

impl Client {
    /// A client of `aim`. Instants count from `origin`.
    pub fn new(aim: Aim, origin: Origin) -> Self {
        let pool = Pool::keeping(aim.upstream.clone(), KEPT);
        Self(Arc::new(Shared {
            limits: aim.limits_on_the_wall(),
            aim,
            origin,
            corrections: Mutex::default(),
            pool,
            rows: Mutex::default(),
            gauges: Gauges::default(),
        }))
    }

    /// Where requests go.
    pub fn aim(&self) -> &Aim {
        &self.0.aim
    }

    /// Opens `connections` connections beforehand, so that no request has to wait for one. A
    /// server that cannot be reached is left for the request to find.
    pub async fn connect(&self, connections: usize) {
        self.0.pool.open(connections).await;
    }

    /// Sends a request and reads its answer to the end. A request that fails has an answer too,
    /// whose row says how it ended. When this future is dropped the connection is closed at once,
    /// and the row says that the client left.
    pub async fn ask(&self, ask: Ask) -> Answer {
        exchange::run(&self.0, ask).await
    }

    /// Takes the rows of all requests that ended since the last call, in the order of their ends.
    /// Numbers count from 1 for each session, anew after each call.
    pub fn take_rows(&self) -> Vec<SessionAttempt> {
        std::mem::take(&mut *self.0.rows.lock()).done
    }

    /// Requests that are open now.
    pub fn in_flight(&self) -> u32 {
        self.0.gauges.in_flight.load(Ordering::Relaxed)
    }

    /// Requests of sessions that have no token yet: the server reads their prompts, or they wait
    /// for that. Side requests do not count.
    pub fn without_token(&self) -> u32 {
        self.0.gauges.without_token.load(Ordering::Relaxed)
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.0
    }
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
