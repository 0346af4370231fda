//! Why a base, a copy, a patch or a fingerprint could not be made.

use std::path::PathBuf;

/// Why a base, a copy, a patch or a fingerprint could not be made. The text names every cause.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The task's path is not a git repository.
    #[error(
        "{} is not a git repository ({reason}); name the top folder of one", path.display()
    )]
    NotARepository {
        /// The path as given.
        path: PathBuf,
        /// What git2 reported.
        reason: String,
    },
    /// The task's revision is not in its repository.
    #[error(
        "revision {revision:?} is not in {} ({reason}); name a branch, tag or commit that \
         `git -C {} rev-parse` knows", path.display(), path.display()
    )]
    NoSuchRevision {
        /// The repository.
        path: PathBuf,
        /// The revision as given.
        revision: String,
        /// What was wrong with it.
        reason: String,
    },
    /// The files and commits of a fixture do not make a repository.
    #[error("fixture {name} cannot become a repository: {reason}")]
    BadFixture {
        /// [`crate::Fixture::name`].
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The destination of a copy is taken.
    #[error("{} exists already and is not empty; name a fresh folder", path.display())]
    DestinationTaken {
        /// The destination.
        path: PathBuf,
    },
    /// A text is not a unified diff, or does not apply exactly.
    #[error("{reason}")]
    BadPatch {
        /// What is wrong with it, and at which line.
        reason: String,
    },
    /// A tree was asked for by something that is not an object id.
    #[error("{id:?} is not an object id: {reason}")]
    BadId {
        /// The id as given.
        id: String,
        /// What git2 reported.
        reason: String,
    },
    /// Storage, permissions, or a damaged repository.
    #[error("{reason}")]
    Storage {
        /// What could not be done, and the system's or git2's error.
        reason: String,
    },
}

impl WorkspaceError {
    pub(super) fn storage(error: anyhow::Error) -> Self {
        Self::Storage {
            reason: chain(&error),
        }
    }

    pub(super) fn patch(error: anyhow::Error) -> Self {
        Self::BadPatch {
            reason: chain(&error),
        }
    }
}

/// An error with its causes, outermost first.
pub(super) fn chain(error: &anyhow::Error) -> String {
    format!("{error:#}")
}
