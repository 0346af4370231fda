//! What every installation shares, of servers and of agents: one flashrig at a time, built beside its
//! place and renamed, so that what was interrupted never looks whole; and steps that say how they
//! failed.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use flashrig_config::{format_duration, without_temporary_name};
use flashrig_process::{CommandExit, Spec, run_command};

/// Between two looks whether another flashrig is done with its installation.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Lines of a failed step's output that are kept.
const LAST_LINES: usize = 12;

/// A place for one kind of thing to install, below flashrig's cache folder.
#[derive(Clone, Debug)]
pub struct Site {
    /// The folder that installations are put into.
    pub folder: PathBuf,
    /// What is installed, for the names of its lock and of folders that are being built.
    pub name: String,
}

impl Site {
    /// Waits until nobody else installs this, and removes what a killed flashrig left behind. Others
    /// wait as long as the returned file lives.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub async fn lock(&self, say: impl Fn(&str)) -> io::Result<File> {
        std::fs::create_dir_all(&self.folder)?;
        let lock = File::create(self.folder.join(format!(".{}.lock", self.name)))?;
        let mut is_said = false;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) => {}
            }
            if !is_said {
                say("another flashrig is installing it: waiting …");
                is_said = true;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        let prefix = self.prefix();
        for entry in std::fs::read_dir(&self.folder)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        Ok(lock)
    }

    /// A fresh folder to build in; it is removed again when it is dropped.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn build_folder(&self) -> io::Result<TempDir> {
        let mut builder = tempfile::Builder::new();
        let made = builder.prefix(&self.prefix()).tempdir_in(&self.folder);
        made.map_err(without_temporary_name)
    }

    /// Puts what was built into its place, instead of what may be there.
    ///
    /// # Errors
    /// It cannot be renamed; nothing half installed is left.
    pub fn put(&self, built: TempDir, target: &Path) -> io::Result<()> {
        let built = built.keep();
        let replaced = match target.is_dir() {
            true => std::fs::remove_dir_all(target),
            false => Ok(()),
        };
        let put = replaced.and_then(|()| std::fs::rename(&built, target));
        if put.is_err() {
            let _ = std::fs::remove_dir_all(&built);
        }
        put
    }

    fn prefix(&self) -> String {
        format!("installing-{}-", self.name)
    }
}

/// A step that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}; the end of its output: {output}")]
pub struct StepError {
    /// How it ended, such as `exited with code 1`.
    pub what: String,
    /// The end of its output.
    pub output: String,
}

impl StepError {
    /// A step that `what`, with the end of `output`.
    pub fn new(what: impl Into<String>, output: &str) -> Self {
        let lines: Vec<&str> = output.lines().filter(|l| !l.trim().is_empty()).collect();
        Self {
            what: what.into(),
            output: lines[lines.len().saturating_sub(LAST_LINES)..].join("\n"),
        }
    }
}

/// Runs a step; its output.
///
/// # Errors
/// It did not exit with code 0 within `limit`.
pub async fn run_step(spec: Spec, limit: Duration) -> Result<String, StepError> {
    let outcome = run_command(spec, limit).await;
    let what = match &outcome.exit {
        CommandExit::Exited(0) => return Ok(outcome.output),
        CommandExit::Exited(code) => format!("exited with code {code}"),
        CommandExit::Signalled(signal) => format!("was ended by signal {signal}"),
        CommandExit::TimedOut => format!("took longer than {}", format_duration(limit)),
        CommandExit::NotStarted(error) => format!("did not start: {error}"),
        CommandExit::Lost => "was lost".to_owned(),
    };
    Err(StepError::new(what, &outcome.output))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_killed_flashrig_left_is_removed_and_what_was_built_replaces_the_old() {
        let cache = TempDir::new().unwrap();
        let site = Site {
            folder: cache.path().join("things"),
            name: "x".to_owned(),
        };
        let left = site.folder.join("installing-x-old");
        let other = site.folder.join("installing-y-new");
        std::fs::create_dir_all(&left).unwrap();
        std::fs::create_dir_all(&other).unwrap();
        let _lock = site.lock(|_| ()).await.unwrap();
        assert!(!left.exists() && other.exists());
        let target = site.folder.join("x-1");
        for text in ["first", "second"] {
            let built = site.build_folder().unwrap();
            std::fs::write(built.path().join("file"), text).unwrap();
            site.put(built, &target).unwrap();
            let found = std::fs::read_to_string(target.join("file")).unwrap();
            assert_eq!(found, text);
        }
    }
}
