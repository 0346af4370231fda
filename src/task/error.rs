//! What can be wrong with a task or a fixture.

use flashrig_config::{FileError, unknown};

/// Why a task cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// No task of that name.
    #[error("{}", unknown("task", .name, .known.iter().map(String::as_str)))]
    UnknownTask {
        /// The name asked for.
        name: String,
        /// All names.
        known: Vec<String>,
    },
    /// One of its files cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
}
