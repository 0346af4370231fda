//! The surroundings of a command: the operator's environment, the project's folder, this binary.

use std::path::PathBuf;

use crate::agent::{Places, cache_folder};
use crate::exit::{Failure, OrFail};
use flashrig_process::{Sandbox, SandboxChoice};

/// The surroundings of a command.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Where programs and caches are.
    pub places: Places,
    /// This binary, which supervises what it starts.
    pub shim: PathBuf,
}

impl Setting {
    /// Looks around.
    ///
    /// # Errors
    /// The current folder or this binary cannot be told.
    pub fn new() -> Result<Self, Failure> {
        let operator = std::env::vars_os().collect();
        let cache = cache_folder(&operator);
        let project = std::env::current_dir().or_rig()?;
        let shim = std::env::current_exe().or_rig()?;
        Ok(Self {
            places: Places {
                operator,
                project,
                cache,
            },
            shim,
        })
    }
}

/// Settles how sessions are contained.
///
/// # Errors
/// Bubblewrap was asked for by name and cannot be used.
pub async fn sandbox(choice: impl Into<SandboxChoice>) -> Result<Sandbox, Failure> {
    Sandbox::detect(choice.into()).await.or_rig()
}
