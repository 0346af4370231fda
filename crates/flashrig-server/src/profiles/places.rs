//! Where the operator's programs, caches and this binary are, for starting servers.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use flashrig_config::cache_folder;
use flashrig_process::find_program;

/// What every server gets of the operator's environment: where programs, libraries and models are,
/// how to write, and which devices there are. Variables that set a server by themselves
/// (`LLAMA_ARG_…`, `VLLM_…`) are not among them.
const PASSED: [&str; 20] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "HF_HOME",
    "HF_HUB_CACHE",
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
];

/// Where things are.
#[derive(Clone, Debug)]
pub struct Places {
    /// The operator's environment.
    pub operator: BTreeMap<OsString, OsString>,
    /// The folder that relative paths count from.
    pub project: PathBuf,
    /// flashrig's cache folder.
    pub cache: PathBuf,
    /// This binary, which supervises what it starts.
    pub shim: PathBuf,
}

impl Places {
    /// Looks around; `project` is the current folder unless it is given.
    ///
    /// # Errors
    /// The current folder or this binary cannot be told.
    pub fn look(project: Option<&Path>) -> io::Result<Self> {
        let operator = std::env::vars_os().collect();
        let project = match project {
            Some(project) => std::path::absolute(project)?,
            None => std::env::current_dir()?,
        };
        Ok(Self {
            cache: cache_folder(&operator),
            operator,
            project,
            shim: std::env::current_exe()?,
        })
    }

    pub(crate) fn of_environment(&self, name: &str) -> Option<&OsString> {
        self.operator.get(OsStr::new(name))
    }

    pub(crate) fn on_path(&self, name: &str) -> Option<PathBuf> {
        find_program(name, self.of_environment("PATH")?)
    }

    /// What is passed on of the operator's environment, `more` beside the usual.
    pub(crate) fn passed(&self, more: &[String]) -> BTreeMap<OsString, OsString> {
        let names = PASSED.into_iter().chain(more.iter().map(String::as_str));
        names
            .filter_map(|name| Some((OsString::from(name), self.of_environment(name)?.clone())))
            .collect()
    }
}
