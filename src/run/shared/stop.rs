//! The wish to stop, as everything that waits can see it.

use tokio::sync::watch;

use super::error::NotBroughtBack;
use flashrig_config::error_chain;
use flashrig_record::{CellStop, CellStopReason, RunState, StopKind, StoppedBecause};

/// Set once, by Ctrl-C or a termination signal.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// The wish, and the means to express it.
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Whether it was expressed.
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// How a run ended that failed for this reason, or did not: its state, and why it is cut
    /// short. The cause of a failure that the wish brought about is the wish.
    pub fn ending(&self, failure: Option<&anyhow::Error>) -> (RunState, Option<StoppedBecause>) {
        match failure {
            _ if self.is_set() => (RunState::Interrupted, Some(StoppedBecause::ByUser)),
            Some(error) => (RunState::Failed, Some(stopped_because(error))),
            None => (RunState::Finished, None),
        }
    }

    /// The end of a combination by the wish.
    pub fn of_a_cell() -> CellStop {
        CellStop {
            kind: StopKind::Interrupted,
            reason: CellStopReason::ByUser,
        }
    }

    /// What `work` gives, or `None` when the wish comes first; `work` is dropped then.
    pub async fn unless<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut stop = self.clone();
        tokio::select! {
            biased;
            () = stop.wait() => None,
            done = work => Some(done),
        }
    }

    /// Waits for it; for ever when nobody can express it any more.
    pub async fn wait(&mut self) {
        if self.0.wait_for(|set| *set).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// A failure of a run as its record has it.
pub(in crate::run) fn stopped_because(error: &anyhow::Error) -> StoppedBecause {
    match error.downcast_ref::<NotBroughtBack>() {
        Some(lost) => lost.stopped(),
        None => StoppedBecause::Failed {
            error: error_chain(error),
        },
    }
}
