//! What a caller asks to be run, and why it may be refused.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::sandbox::Sandbox;

/// A program to run under supervision.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Names the program in errors and logs, e.g. the session's id.
    pub label: String,
    /// The program, as an absolute path (see [`super::find_program`]).
    pub program: PathBuf,
    /// Its arguments, without its own name.
    pub args: Vec<OsString>,
    /// Its whole environment; nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub dir: PathBuf,
    /// Directories that it may write to. Under bubblewrap everything else is read-only.
    pub writable: Vec<PathBuf>,
    /// Paths that it needs to see, in case they lie below `/tmp`, which bubblewrap hides.
    /// `dir`, the program's own folder and the shim are added without being named.
    pub visible: Vec<PathBuf>,
    /// How its tree is kept together.
    pub sandbox: Sandbox,
    /// The flashrig binary, which is re-executed as the supervising helper.
    pub shim: PathBuf,
    /// What becomes of its output.
    pub output: Output,
    /// Bounds of memory and disk for its output.
    pub limits: OutputLimits,
    /// From TERM to KILL for processes that outlive the program.
    pub grace: Duration,
}

impl Spec {
    /// A spec with nothing in its environment, no arguments and usual limits.
    pub fn new(
        label: impl Into<String>,
        program: impl Into<PathBuf>,
        dir: impl Into<PathBuf>,
        sandbox: Sandbox,
        shim: impl Into<PathBuf>,
    ) -> Self {
        Self {
            label: label.into(),
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            dir: dir.into(),
            writable: Vec::new(),
            visible: Vec::new(),
            sandbox,
            shim: shim.into(),
            output: Output::default(),
            limits: OutputLimits::default(),
            grace: Duration::from_secs(2),
        }
    }
}

/// What becomes of standard output and error. The bytes go to a file as they are, when one is
/// named, and to the caller as lines either way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Two streams.
    Separate {
        /// File for standard output.
        stdout: Option<PathBuf>,
        /// File for standard error.
        stderr: Option<PathBuf>,
    },
    /// One stream, in the order in which it was written; it comes as standard output.
    Merged {
        /// File for both.
        file: Option<PathBuf>,
    },
}

impl Default for Output {
    fn default() -> Self {
        Self::Separate {
            stdout: None,
            stderr: None,
        }
    }
}

/// Bounds for one output stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// Bytes kept of one line; the rest of it is counted and dropped.
    pub line_bytes: usize,
    /// Bytes of lines that wait for the caller; beyond it the oldest are counted and dropped.
    pub waiting_bytes: usize,
    /// Bytes written to the file.
    pub file_bytes: u64,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self {
            line_bytes: 1 << 20,
            waiting_bytes: 16 << 20,
            file_bytes: 256 << 20,
        }
    }
}

/// Why a program was not started. Nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The path is relative.
    #[error(
        "cannot run `{program}` for {label}: the path is not absolute; look it up in PATH first"
    )]
    RelativeProgram {
        /// [`Spec::label`].
        label: String,
        /// [`Spec::program`].
        program: String,
    },
    /// The program is missing, not executable, or its interpreter is missing.
    #[error(
        "cannot run `{program}` for {label}: {message}; check that it is installed and executable"
    )]
    Program {
        /// [`Spec::label`].
        label: String,
        /// [`Spec::program`].
        program: String,
        /// The system's error text.
        message: String,
    },
    /// The working directory is missing.
    #[error("cannot run `{program}` for {label}: working directory `{dir}`: {message}")]
    Directory {
        /// [`Spec::label`].
        label: String,
        /// [`Spec::program`].
        program: String,
        /// [`Spec::dir`].
        dir: String,
        /// The system's error text.
        message: String,
    },
    /// An output file cannot be written.
    #[error("cannot write the output of {label} to `{file}`")]
    OutputFile {
        /// [`Spec::label`].
        label: String,
        /// The file.
        file: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The helper, or bubblewrap around it, cannot be started.
    #[error("cannot start the supervising helper `{helper}` for {label}")]
    Helper {
        /// [`Spec::label`].
        label: String,
        /// The program that was to be run.
        helper: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The helper, or bubblewrap around it, ended or stopped answering before the program was started.
    #[error("the supervising helper for {label} {what}{}", colon_before(.message))]
    HelperLost {
        /// [`Spec::label`].
        label: String,
        /// What it did.
        what: HelperFault,
        /// What it printed, e.g. bubblewrap's error text; empty when it printed nothing.
        message: String,
    },
}

/// What a lost helper did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelperFault {
    /// It ended before the program was started.
    #[error("ended early")]
    EndedEarly,
    /// It did not answer in time.
    #[error("gave no answer and was killed")]
    NoAnswer,
    /// It answered, but not with the start of the program.
    #[error("did not start the program")]
    NotStarted,
}

fn colon_before(message: &str) -> String {
    if message.is_empty() {
        String::new()
    } else {
        format!(": {message}")
    }
}
