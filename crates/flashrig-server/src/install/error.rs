//! Why a server could not be installed.

use std::path::PathBuf;

use super::site::StepError;
use flashrig_config::FileError;

/// A server that could not be installed. Nothing half installed is left.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The recipe cannot be read.
    #[error(transparent)]
    Recipe(#[from] FileError),
    /// No Python.
    #[error(
        "server {0}: python3 is not on PATH; install Python {1} or newer, or put the server's own \
         program on PATH"
    )]
    NoPython(String, String),
    /// A Python without what it takes.
    #[error(
        "server {server}: {python} cannot make virtual environments: {message}; install its venv \
         module (Debian and Ubuntu: apt-get install python3-venv)"
    )]
    NoVenv {
        /// Which server.
        server: String,
        /// The Python.
        python: PathBuf,
        /// The end of its output.
        message: String,
    },
    /// A Python that the packages do not run on.
    #[error("server {server}: {python} is Python {found}; the packages need {needed} or newer")]
    OldPython {
        /// Which server.
        server: String,
        /// The Python.
        python: PathBuf,
        /// Its version.
        found: String,
        /// The oldest that will do.
        needed: String,
    },
    /// Something else that it needs is missing.
    #[error("server {server} needs {program} while it runs, which is not on PATH; install it")]
    Needs {
        /// Which server.
        server: String,
        /// The program.
        program: String,
    },
    /// The cache folder cannot be written.
    #[error("server {server}: cannot write flashrig's cache folder {folder}: {source}")]
    Cache {
        /// Which server.
        server: String,
        /// Folder.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A step failed.
    #[error("server {server}: {step} {error}")]
    Step {
        /// Which server.
        server: String,
        /// What was done.
        step: &'static str,
        /// How it ended.
        error: StepError,
    },
}
