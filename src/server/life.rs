//! What becomes of a server's process: its death, its restart, its reset. Of a server that somebody
//! else started nothing of this is known.

use std::time::Duration;

use crate::clock::Stamp;

/// The life of a server. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Life {
    _nobody: (),
}

/// The end of a server that was not asked to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// When.
    pub at: Stamp,
    /// Exit code or signal, and what that means.
    pub words: String,
    /// The last lines of its log, oldest first.
    pub last_lines: Vec<String>,
}

/// A server that could not be brought back.
#[derive(Debug, thiserror::Error)]
pub enum LifeError {
    /// flashrig did not start it.
    #[error("flashrig did not start this server, and cannot {0} it")]
    NotOurs(&'static str),
}

impl Life {
    /// That of a server which somebody else started, or which is no process of its own.
    pub fn not_ours() -> Self {
        Self::default()
    }

    /// Whether flashrig started the server.
    pub fn is_managed(&self) -> bool {
        false
    }

    /// Whether its profile lets it be started again after a death.
    pub fn may_restart(&self) -> bool {
        false
    }

    /// Its death, if it has died.
    pub fn death(&self) -> Option<Death> {
        None
    }

    /// Waits for its death; for ever when nothing is known of it.
    pub async fn died(&self) -> Death {
        std::future::pending().await
    }

    /// Ends it if it lives, starts it again as it was started, at the same address, and waits
    /// until it is ready. Returns how long that took from the start of the process.
    ///
    /// # Errors
    /// It does not become ready, or is not flashrig's.
    pub async fn restart(&self) -> Result<Duration, LifeError> {
        Err(LifeError::NotOurs("restart"))
    }

    /// What its process tree uses now: resident bytes, and CPU time since its start.
    pub fn usage(&self) -> Option<(Option<u64>, Option<Duration>)> {
        None
    }
}
