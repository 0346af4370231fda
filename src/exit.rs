//! How a command ends: exit codes, and errors that know theirs.

use flashrig_report::judge::Answer;

/// Exit codes; stable, documented in `--help` and `docs/DESIGN.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Pass or warning.
    Yes = 0,
    /// The answer is no.
    No = 1,
    /// Usage, or an invalid file.
    Usage = 2,
    /// The rig or its surroundings failed.
    Rig = 3,
    /// Interrupted.
    Interrupted = 130,
}

impl Exit {
    /// The code of an answer; `strict` makes an inconclusive one a no.
    pub fn of(answer: Answer, strict: bool) -> Self {
        match answer {
            Answer::Yes => Self::Yes,
            Answer::No => Self::No,
            Answer::NotMeasured => Self::Rig,
            Answer::Inconclusive if strict => Self::No,
            Answer::Inconclusive => Self::Yes,
        }
    }
}

/// An error that ends a command.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What happened, to what, and what to do next.
    pub error: anyhow::Error,
}

/// Names a file for a command that another flashrig started: its error goes there, as text, so that
/// nobody reads it from what is shown to people.
pub const ERROR_FILE: &str = "FLASHRIG_ERROR_FILE";

/// Writes the error to the file that [`ERROR_FILE`] names. A file that cannot be written is left
/// out: the error is shown in any case.
pub fn hand_over(error: &anyhow::Error) {
    if let Some(file) = std::env::var_os(ERROR_FILE) {
        let _ = std::fs::write(file, flashrig_config::error_chain(error));
    }
}

/// Gives errors their exit code.
pub trait OrFail<T> {
    /// Bad input: exit code 2.
    fn or_usage(self) -> Result<T, Failure>;
    /// The rig or its surroundings: exit code 3.
    fn or_rig(self) -> Result<T, Failure>;
}

impl<T, E: Into<anyhow::Error>> OrFail<T> for Result<T, E> {
    fn or_usage(self) -> Result<T, Failure> {
        self.map_err(|e| Failure {
            exit: Exit::Usage,
            error: e.into(),
        })
    }

    fn or_rig(self) -> Result<T, Failure> {
        self.map_err(|e| Failure {
            exit: Exit::Rig,
            error: e.into(),
        })
    }
}

/// An error from words.
pub fn usage(message: impl Into<String>) -> Failure {
    Failure {
        exit: Exit::Usage,
        error: anyhow::anyhow!(message.into()),
    }
}
