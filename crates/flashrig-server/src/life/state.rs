//! What is known of a server that flashrig started, for everybody who asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{oneshot, watch};

use super::error::StartError;
use super::launch::Launch;
use crate::log::LogIndex;
use flashrig_clock::Stamp;
use flashrig_http::Upstream;
use flashrig_process::{Lines, Reading};
use flashrig_record::ServerExit;

/// Between two looks at whether the log has been taken in.
const CATCH_UP_EVERY: Duration = Duration::from_millis(5);

/// The end of a server that was not asked to end.
#[derive(Clone, Debug, PartialEq)]
pub struct Death {
    /// When.
    pub at: Stamp,
    /// Exit code or signal, and what belongs to it.
    pub exit: ServerExit,
    /// The last lines of its log, oldest first.
    pub last_lines: Vec<String>,
}

/// What a server is started with, the first time and every time.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) launch: Launch,
    pub(super) port: u16,
    pub(super) log_index: LogIndex,
    pub(super) server: Upstream,
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
        *self.log.lock() = Some(log);
    }

    /// Waits until what has been written by now is taken in, for so long at most.
    pub(super) async fn catch_up(&self, limit: Duration) {
        let log = self.log.lock().clone();
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
        self.figures.lock()
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
