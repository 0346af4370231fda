//! What can be wrong with a task or a fixture.

use flashrig_config::FileError;

/// Why a task cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// No task of that name.
    #[error("there is no task `{name}`{}", suggestion(.nearest.as_deref(), .known, "tasks"))]
    UnknownTask {
        /// The name asked for.
        name: String,
        /// The known name that resembles it most, if any does.
        nearest: Option<String>,
        /// All names.
        known: Vec<String>,
    },
    /// One of its files cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
}

/// `; did you mean …? (tasks: …)`, or as much of it as there is to say.
pub(super) fn suggestion(nearest: Option<&str>, known: &[String], what: &str) -> String {
    let nearest = nearest.map_or(String::new(), |n| format!("; did you mean `{n}`?"));
    let known = if known.is_empty() {
        format!(" (there are no {what})")
    } else {
        format!(" ({what}: {})", known.join(", "))
    };
    nearest + &known
}
