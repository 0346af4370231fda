//! What becomes of a server's process: its start, its death, its restart, its reset, its end. Of a
//! server that somebody else started only a reset by requests is possible.

mod begin;
mod ended;
mod error;
mod flags;
mod hashes;
mod keeper;
mod launch;
mod launch_error;
mod managed;
mod port;
mod proof;
mod reset;
mod state;
mod version;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::profiles::Reset;
use flashrig_clock::Stamp;
use state::{Order, Shared, State};

pub use error::{LifeError, StartError};

pub use flags::{FlagCheck, FlagError, check_flags};
pub use launch::Launch;
pub(crate) use launch::Valued;
pub use launch_error::LaunchError;
pub(crate) use managed::begin;
pub use managed::files_of;
pub use proof::same as same_value;
pub(crate) use proof::{Witness, contradicted, prove};
pub(crate) use reset::Resets;
pub use state::Death;

/// For a log that is written faster than it is read.
const CATCH_UP: Duration = Duration::from_secs(10);

/// The life of a server. Cheap to clone; when all clones of one that flashrig started are gone, it
/// is ended.
#[derive(Clone, Debug, Default)]
pub struct Life {
    kept: Option<Arc<Kept>>,
    resets: Option<Arc<Resets>>,
}

/// A server that flashrig started.
#[derive(Debug)]
struct Kept {
    orders: mpsc::UnboundedSender<Order>,
    shared: Arc<Shared>,
}

impl Life {
    /// That of a server which somebody else started, or which is no process of its own.
    pub fn not_ours() -> Self {
        Self::default()
    }

    fn kept(orders: mpsc::UnboundedSender<Order>, shared: Arc<Shared>) -> Self {
        Self {
            kept: Some(Arc::new(Kept { orders, shared })),
            resets: None,
        }
    }

    /// The same with a way to reset.
    pub(super) fn resetting(mut self, resets: Resets) -> Self {
        self.resets = Some(Arc::new(resets));
        self
    }

    /// Whether flashrig started the server.
    pub fn is_managed(&self) -> bool {
        self.kept.is_some()
    }

    /// Whether its profile lets it be started again after a death.
    pub fn may_restart(&self) -> bool {
        let kept = self.kept.as_ref();
        kept.is_some_and(|kept| kept.shared.plan.launch.recipe.restart)
    }

    /// Whether its profile says how it is reset.
    pub fn can_reset(&self) -> bool {
        let by = self.resets.as_ref().map(|resets| &resets.reset);
        match by {
            Some(Reset::Restart) => self.is_managed(),
            Some(Reset::Requests(_)) => true,
            None => false,
        }
    }

    /// Process id of its program; `None` when it does not run.
    pub fn pid(&self) -> Option<u32> {
        match &*self.kept.as_ref()?.shared.state.borrow() {
            State::Alive { pid } => Some(*pid),
            State::Starting | State::Dead(_) | State::Ended => None,
        }
    }

    /// Its death, if it has died.
    pub fn death(&self) -> Option<Death> {
        match &*self.kept.as_ref()?.shared.state.borrow() {
            State::Dead(death) => Some(death.clone()),
            State::Starting | State::Alive { .. } | State::Ended => None,
        }
    }

    /// Waits for its death; for ever when nothing is known of it. An end that was asked for is no
    /// death. May be dropped while it waits.
    pub async fn died(&self) -> Death {
        if let Some(kept) = &self.kept {
            let mut state = kept.shared.state.subscribe();
            let dead = state.wait_for(|state| matches!(state, State::Dead(_)));
            if let Ok(found) = dead.await
                && let State::Dead(death) = &*found
            {
                return death.clone();
            }
        }
        std::future::pending().await
    }

    /// Ends it if it lives, starts it again as it was started, at the same address, and waits
    /// until it is ready. Returns how long that took from the start of the process. When this is
    /// dropped while it waits, the server goes on to start.
    ///
    /// # Errors
    /// It does not become ready, or is not flashrig's.
    pub async fn restart(&self) -> Result<Duration, LifeError> {
        let kept = self.kept.as_ref().ok_or(LifeError::NotOurs("restart"))?;
        let (reply, answer) = oneshot::channel();
        let sent = kept.orders.send(Order::Restart(reply));
        sent.map_err(|_| LifeError::Ended)?;
        Ok(answer.await.map_err(|_| LifeError::Ended)??)
    }

    /// Brings the server back to a known state as its profile says, and returns how long that took.
    ///
    /// # Errors
    /// Its profile does not say how, a request failed, or it did not come back.
    pub async fn reset(&self) -> Result<Duration, LifeError> {
        let resets = self.resets.as_ref().ok_or(LifeError::NoReset)?;
        match &resets.reset {
            Reset::Restart => {
                let begun = Stamp::now();
                self.restart().await?;
                Ok(Stamp::now().since(begun))
            }
            Reset::Requests(requests) => resets.send(requests).await,
        }
    }

    /// Ends the server and returns when its tree of processes is gone. Of a server that somebody
    /// else started, and of one that has ended, nothing becomes.
    pub async fn stop(&self) {
        let Some(kept) = &self.kept else { return };
        let (reply, answer) = oneshot::channel();
        if kept.orders.send(Order::Stop(reply)).is_ok() {
            let _ = answer.await;
        }
    }

    /// Waits until what its log says by now has been taken in by the index, for a few seconds at
    /// most. Returns at once for a server that somebody else started.
    pub async fn catch_up(&self) {
        if let Some(kept) = &self.kept {
            kept.shared.catch_up(CATCH_UP).await;
        }
    }

    /// What its process tree uses now, as of a quarter of a second ago at most: resident bytes, and
    /// CPU time since its start.
    pub fn usage(&self) -> Option<(Option<u64>, Option<Duration>)> {
        let reading = self.kept.as_ref()?.shared.figures().reading?;
        Some((Some(reading.rss_bytes), reading.cpu))
    }

    /// The most resident memory of its process tree so far, restarts included, in bytes.
    pub fn peak_rss_bytes(&self) -> Option<u64> {
        self.kept.as_ref()?.shared.figures().peak_rss_bytes
    }
}
