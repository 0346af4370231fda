//! How a tree is kept together: by a PID namespace (bubblewrap), or by its supervisor alone.
//!
//! Only the choice is here; `helper_command` has the command line.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use super::programs::{self, ShortCommand};

/// The folder that bubblewrap hides behind an empty one.
pub(super) const HIDDEN: &str = "/tmp";
const PROBE_LIMIT: Duration = Duration::from_secs(5);

/// What the user asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SandboxChoice {
    /// Bubblewrap where it works.
    #[default]
    Auto,
    /// Bubblewrap, or an error.
    Bubblewrap,
    /// No sandbox.
    None,
}

/// What is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sandbox {
    /// A PID namespace whose end takes every process along; the file system read-only but for
    /// the named folders.
    Bubblewrap {
        /// The `bwrap` program.
        bwrap: PathBuf,
    },
    /// The supervisor alone: own process group and session, orphans adopted where the system
    /// can. The file system is not restricted.
    ProcessGroup,
}

/// Why bubblewrap cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// It is not in PATH.
    #[error(
        "bubblewrap was asked for but `bwrap` is not in PATH; install the package `bubblewrap` or choose no sandbox"
    )]
    Missing,
    /// It is there but does not work here.
    #[error("`{}` does not work on this machine: {message}; allow user namespaces or choose no sandbox", .bwrap.display())]
    Unusable {
        /// The program.
        bwrap: PathBuf,
        /// Its own error text.
        message: String,
    },
}

impl Sandbox {
    /// Settles what is used. Probes bubblewrap by running it once, with the flags of real use.
    ///
    /// # Errors
    /// When bubblewrap was asked for by name and cannot be used.
    pub async fn detect(choice: SandboxChoice) -> Result<Self, SandboxError> {
        match choice {
            SandboxChoice::None => Ok(Self::ProcessGroup),
            SandboxChoice::Bubblewrap => Self::probe_bubblewrap().await,
            SandboxChoice::Auto => Ok(Self::probe_bubblewrap().await.unwrap_or_else(|reason| {
                tracing::debug!(%reason, "no bubblewrap");
                Self::ProcessGroup
            })),
        }
    }

    /// Bubblewrap, if it works here.
    ///
    /// # Errors
    /// When it is missing or unusable, with its own error text.
    pub async fn probe_bubblewrap() -> Result<Self, SandboxError> {
        Self::probe_bubblewrap_in(&std::env::var_os("PATH").unwrap_or_default()).await
    }

    /// The same, with `bwrap` looked for in another `PATH` than flashrig's own.
    ///
    /// # Errors
    /// When it is missing or unusable, with its own error text.
    pub async fn probe_bubblewrap_in(path_var: &OsStr) -> Result<Self, SandboxError> {
        let bwrap = programs::find_program("bwrap", path_var).ok_or(SandboxError::Missing)?;
        let mut args = base_flags();
        args.extend(["--".into(), "/bin/sh".into(), "-c".into(), "exit 0".into()]);
        match programs::run_short(
            ShortCommand {
                program: bwrap.clone(),
                args,
                env: Vec::new(),
            },
            PROBE_LIMIT,
        )
        .await
        {
            Ok(output) if output.status.is_success() => Ok(Self::Bubblewrap { bwrap }),
            Ok(output) => Err(SandboxError::Unusable {
                bwrap,
                message: format!("{} ({})", output.text.trim(), output.status),
            }),
            Err(error) => Err(SandboxError::Unusable {
                bwrap,
                message: error.to_string(),
            }),
        }
    }

    /// The name used in records.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bubblewrap { .. } => "bubblewrap",
            Self::ProcessGroup => "process_group",
        }
    }
}

/// What every use of bubblewrap has.
pub(super) fn base_flags() -> Vec<OsString> {
    // `--die-with-parent` follows the thread that spawns; see `spawner`.
    [
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--tmpfs",
        HIDDEN,
        "--unshare-pid",
        "--as-pid-1",
        "--die-with-parent",
    ]
    .into_iter()
    .map(OsString::from)
    .collect()
}
