//! Finds programs, and runs short commands (version probes) that need no supervisor. They run in a
//! process group of their own, write to a file (a grandchild could hold a pipe open), and are
//! killed when their time is up.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flashrig_units::format_duration;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{AccessFlags, Pid, access};

use super::usage::ExitStatus;

/// Bytes of output that are kept; some programs list hundreds of flags.
const OUTPUT_LIMIT: u64 = 1 << 20;

/// The first executable file called `name` in the folders of `path_var` (the value of a `PATH`),
/// as an absolute path. A `name` with a slash is looked at as it is.
pub fn find_program(name: impl AsRef<OsStr>, path_var: impl AsRef<OsStr>) -> Option<PathBuf> {
    let name = Path::new(name.as_ref());
    if name.components().count() > 1 || name.is_absolute() {
        return std::path::absolute(name)
            .ok()
            .filter(|file| is_executable(file));
    }
    std::env::split_paths(path_var.as_ref())
        // An empty entry means the current folder, which is never meant here.
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.metadata()
        .is_ok_and(|facts| facts.is_file() && facts.mode() & 0o111 != 0)
        && access(file, AccessFlags::X_OK).is_ok()
}

/// A command that is over in a moment.
#[derive(Clone, Debug)]
pub struct ShortCommand {
    /// Absolute path.
    pub program: PathBuf,
    /// Arguments.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
}

/// What a short command printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortOutput {
    /// How it ended.
    pub status: ExitStatus,
    /// Standard output and error as they were written, the first MiB.
    pub text: String,
}

/// Why a short command gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ShortError {
    /// It could not be run.
    #[error("cannot run `{}`", .program.display())]
    NotStarted {
        /// The program.
        program: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It was killed, with its process group.
    #[error("`{}` gave no answer within {} and was killed", .program.display(), format_duration(*.limit))]
    TimedOut {
        /// The program.
        program: PathBuf,
        /// The time it had.
        limit: Duration,
    },
    /// It was refused by its own exit status.
    #[error("`{}` failed ({}): {}", .program.display(), .output.status, .output.text.trim())]
    Failed {
        /// The program.
        program: PathBuf,
        /// What it printed.
        output: ShortOutput,
    },
}

/// The first line that a program prints when asked for its version.
///
/// # Errors
/// When it cannot be run, takes longer than `limit`, or fails.
pub async fn probe_version(
    program: &Path,
    args: &[OsString],
    env: &[(OsString, OsString)],
    limit: Duration,
) -> Result<String, ShortError> {
    let command = ShortCommand {
        program: program.to_path_buf(),
        args: args.to_vec(),
        env: env.to_vec(),
    };
    let output = run_short(command, limit).await?;
    if !output.status.is_success() {
        return Err(ShortError::Failed {
            program: program.to_path_buf(),
            output,
        });
    }
    Ok(output
        .text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default()
        .to_owned())
}

/// Runs a command that should be over within `limit`.
///
/// # Errors
/// When it cannot be run or takes longer; its exit status is no error here.
pub async fn run_short(command: ShortCommand, limit: Duration) -> Result<ShortOutput, ShortError> {
    let program = command.program.clone();
    tokio::task::spawn_blocking(move || run_blocking(&command, limit))
        .await
        .unwrap_or_else(|broken| {
            Err(ShortError::NotStarted {
                program,
                source: io::Error::other(broken),
            })
        })
}

fn run_blocking(command: &ShortCommand, limit: Duration) -> Result<ShortOutput, ShortError> {
    let not_started = |source| ShortError::NotStarted {
        program: command.program.clone(),
        source,
    };
    let mut file = tempfile::tempfile().map_err(not_started)?;
    let handle = duct::cmd(&command.program, &command.args)
        .full_env(command.env.iter().cloned())
        .stdin_null()
        .stderr_to_stdout()
        .stdout_file(file.try_clone().map_err(not_started)?)
        .before_spawn(|command| {
            command.process_group(0);
            Ok(())
        })
        .unchecked()
        .start()
        .map_err(not_started)?;
    let group = handle
        .pids()
        .first()
        .and_then(|pid| i32::try_from(*pid).ok())
        .filter(|pid| *pid > 1);
    let finished = handle.wait_timeout(limit);
    let status = match finished {
        Ok(Some(output)) => output.status,
        Ok(None) => {
            // The group's leader was not reaped yet, so its number cannot mean anyone else.
            if let Some(group) = group {
                let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
            }
            let _ = handle.kill();
            return Err(ShortError::TimedOut {
                program: command.program.clone(),
                limit,
            });
        }
        Err(source) => return Err(not_started(source)),
    };
    let status = match (status.code(), status.signal()) {
        (Some(code), _) => ExitStatus::Exited(code),
        (None, signal) => ExitStatus::Signalled(signal.unwrap_or_default()),
    };
    Ok(ShortOutput {
        status,
        text: head(&mut file).map_err(not_started)?,
    })
}

fn head(file: &mut File) -> io::Result<String> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(OUTPUT_LIMIT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
