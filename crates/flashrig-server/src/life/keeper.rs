//! The task that owns a server's process: notices its end, starts it again, ends it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use super::begin::{Begun, DRAIN, begin};
use super::{Death, StartError, message};
use crate::log_index::LogIndex;
use crate::start::Launch;
use flashrig_clock::Stamp;
use flashrig_http::Secret;
use flashrig_process::{Lines, OomKills, Reading, Running, StopReason, TreeEnd};

/// Between two looks at what its processes use; the process room takes samples as often.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Between two looks at whether the log has been taken in.
const CATCH_UP_EVERY: Duration = Duration::from_millis(5);
/// Lines of the log that are kept of a death.
const LAST_LINES: usize = 20;
/// For the rest of its log; a child that outlives it may hold that open.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// What a server is started with, the first time and every time.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) launch: Launch,
    pub(super) port: u16,
    pub(super) log_index: LogIndex,
    pub(super) key: Option<Secret>,
}

/// What is known of it, for everybody who asks.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) plan: Plan,
    pub(super) state: watch::Sender<State>,
    figures: Mutex<Figures>,
    log: Mutex<Option<Log>>,
}

/// How far the log of the present process has been taken in.
#[derive(Clone, Debug)]
pub(super) struct Log {
    pub(super) lines: Lines,
    /// Lines that were handed on.
    pub(super) handed_on: Arc<AtomicU64>,
}

/// Where it is in its life.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// Not ready yet.
    Starting,
    /// Ready.
    Alive {
        /// Of the program.
        pid: u32,
    },
    /// It ended without having been asked to.
    Dead(Death),
    /// It was asked to end.
    Ended,
}

/// What it used.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) reading: Option<Reading>,
    pub(super) peak_rss_bytes: Option<u64>,
}

impl Shared {
    pub(super) fn new(plan: Plan) -> Self {
        Self {
            plan,
            state: watch::Sender::new(State::Starting),
            figures: Mutex::default(),
            log: Mutex::default(),
        }
    }

    /// Another process of it begins to write.
    pub(super) fn follow(&self, log: Log) {
        self.figures().reading = None;
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = Some(log);
    }

    /// Waits until what has been written by now is taken in, for so long at most.
    pub(super) async fn catch_up(&self, limit: Duration) {
        let log = self
            .log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let Some(Log { lines, handed_on }) = log else {
            return;
        };
        let written = lines.report().lines;
        let catching_up = async {
            while handed_on.load(Ordering::Relaxed) + lines.report().lost_lines < written {
                tokio::time::sleep(CATCH_UP_EVERY).await;
            }
        };
        let _ = tokio::time::timeout(limit, catching_up).await;
    }

    pub(super) fn figures(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a sample.
    pub(super) fn note(&self, reading: Option<Reading>) {
        let mut figures = self.figures();
        if let Some(reading) = reading {
            figures.reading = Some(reading);
            figures.peak_rss_bytes = figures.peak_rss_bytes.max(Some(reading.rss_bytes));
        }
    }
}

/// What can be asked of the keeper.
#[derive(Debug)]
pub(super) enum Order {
    /// End it, start it again, say how long it took to be ready.
    Restart(oneshot::Sender<Result<Duration, StartError>>),
    /// End it for good.
    Stop(oneshot::Sender<()>),
}

/// Keeps a server until nobody is left who knows of it.
pub(super) async fn keep(
    shared: Arc<Shared>,
    begun: Begun,
    mut orders: mpsc::UnboundedReceiver<Order>,
) {
    let mut now = Some(begun);
    loop {
        let order = match now.take() {
            None => orders.recv().await,
            Some(begun) => match watch_over(&shared, &begun.running, &mut orders).await {
                Received::Died => {
                    after_death(&shared, begun).await;
                    continue;
                }
                Received::Order(order) => {
                    // Its end, being asked for, is no death.
                    shared.state.send_replace(State::Ended);
                    begun.running.stop(StopReason::Interrupted);
                    finish(&shared, begun).await;
                    order
                }
            },
        };
        now = match order {
            Some(order) => obey(&shared, order, &mut orders).await,
            None => return,
        };
    }
}

/// Does what was asked of a server that does not run; it runs afterwards, or not.
async fn obey(
    shared: &Shared,
    order: Order,
    orders: &mut mpsc::UnboundedReceiver<Order>,
) -> Option<Begun> {
    let mut order = order;
    loop {
        let reply = match order {
            Order::Restart(reply) => reply,
            Order::Stop(reply) => {
                shared.state.send_replace(State::Ended);
                let _ = reply.send(());
                return None;
            }
        };
        let mut next = None;
        let again = begin(shared, async { next = orders.recv().await }).await;
        match again {
            Ok(begun) => {
                let _ = reply.send(Ok(begun.ready_after));
                return Some(begun);
            }
            // Whoever gave the next order, or left, wants this one no more.
            Err(StartError::Cancelled { .. }) => order = next?,
            Err(error) => {
                shared.state.send_replace(State::Dead(Death {
                    at: Stamp::now(),
                    message: format!("did not come back: {error}"),
                    last_lines: shared.plan.log_index.last_lines(LAST_LINES),
                }));
                let _ = reply.send(Err(error));
                return None;
            }
        }
    }
}

enum Received {
    Died,
    /// `None` when nobody is left to give one.
    Order(Option<Order>),
}

async fn watch_over(
    shared: &Shared,
    running: &Running,
    orders: &mut mpsc::UnboundedReceiver<Order>,
) -> Received {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            _ = running.wait_leader() => return Received::Died,
            order = orders.recv() => return Received::Order(order),
            _ = looks.tick() => shared.note(running.usage_now()),
        }
    }
}

/// Returns when all of it is gone.
async fn finish(shared: &Shared, begun: Begun) {
    let ended = begun.running.finish(DRAIN).await;
    if !begun.pump.is_finished() {
        let _ = begun.pump.await;
    }
    if let TreeEnd::Survivors(left) = &ended.tree {
        tracing::warn!(?left, "processes of the server could not be ended");
    }
    let mut figures = shared.figures();
    figures.peak_rss_bytes = figures.peak_rss_bytes.max(ended.usage.peak_rss_bytes);
    figures.reading = None;
}

/// It died: its last words are read, and what is left of its tree is ended.
async fn after_death(shared: &Shared, mut begun: Begun) {
    let exit = begun.running.leader_exit();
    let _ = tokio::time::timeout(LAST_WORDS, &mut begun.pump).await;
    let last_lines = shared.plan.log_index.last_lines(LAST_LINES);
    let oom = OomKills::now().since(begun.oom);
    shared.state.send_replace(State::Dead(Death {
        at: exit.map_or_else(Stamp::now, |exit| exit.stamp),
        message: message::ended(exit.map(|exit| exit.status), oom, &last_lines),
        last_lines,
    }));
    finish(shared, begun).await;
}
