//! Many requests to one server: connections kept, rows, gauges.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;

use super::aim::Aim;
use super::exchange;
use super::shared::{Answer, Ask, Gauges, SessionAttempt, Shared};
use flashrig_clock::Origin;
use flashrig_http::Pool;

/// How long a connection is kept for the next request: turns of a session are up to seconds apart,
/// and many servers close an idle connection after five.
const KEPT: Duration = Duration::from_secs(3);

/// The client. Clones share connections, rows and gauges.
#[derive(Clone, Debug)]
pub struct Client(Arc<Shared>);

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
