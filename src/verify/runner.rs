//! How this room asks for a command to be run; who runs it is the process room's business.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

/// How a check's command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckExit {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Signalled(i32),
    /// It ran into its limit and was killed with all its descendants.
    TimedOut,
    /// It could not be started, for this reason.
    NotStarted(String),
}

/// One run of a check's command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckRun {
    /// How it ended.
    pub exit: CheckExit,
    /// The end of standard output and standard error, as they came; bounded.
    pub output: Vec<u8>,
    /// Bytes of output that came before `output` and were let go.
    pub dropped_bytes: u64,
    /// From the start to the exit of the command.
    pub duration: Duration,
}

/// Runs the commands of checks: sandboxed, with a home of their own, bounded in time and output.
pub trait CheckRunner: Send + Sync {
    /// Runs `argv` in `dir`, for at most `limit`. When the future is done, no process is left.
    fn run<'a>(
        &'a self,
        argv: &'a [String],
        dir: &'a Path,
        limit: Duration,
    ) -> Pin<Box<dyn Future<Output = CheckRun> + Send + 'a>>;
}
