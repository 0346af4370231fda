//! Finding an agent's program: on PATH, else in flashrig's own cache folder.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::launch::{CommandLine, HOME_FOLDERS, base_environment};
use super::profile::Profile;
use flashrig_harness::HARNESS;
use flashrig_process::{find_program, probe_version};

/// A first start in a fresh home takes some agents ten seconds and more.
const VERSION_LIMIT: Duration = Duration::from_secs(60);

/// An agent's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Absolute path.
    pub program: PathBuf,
    /// The folder that must stay visible to it, beside its own.
    pub root: PathBuf,
    /// Whether it is the one that flashrig installed.
    pub from_cache: bool,
}

/// An agent that cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// Neither on PATH nor in the cache, but flashrig can install it.
    #[error(
        "agent {agent}: {program:?} is neither on PATH nor in flashrig's cache; run `flashrig \
         agents install {agent}`, or leave out --no-install"
    )]
    NotInstalled {
        /// Profile.
        agent: String,
        /// Program.
        program: String,
    },
    /// Not there, and flashrig cannot install it.
    #[error("agent {agent}: the program {program:?} is not there; give a path, or put it on PATH")]
    Missing {
        /// Profile.
        agent: String,
        /// Program.
        program: String,
    },
    /// A profile without a program, and no command line.
    #[error("agent {0} runs any program: give it with --agent-command 'PROGRAM ARGS'")]
    CommandNeeded(String),
}

/// Where things are looked for.
#[derive(Clone, Debug)]
pub struct Places {
    /// The operator's environment.
    pub operator: BTreeMap<OsString, OsString>,
    /// The folder that relative program paths count from.
    pub project: PathBuf,
    /// flashrig's cache folder.
    pub cache: PathBuf,
}

impl Places {
    fn path_var(&self) -> &OsStr {
        self.operator
            .get(OsStr::new("PATH"))
            .map_or(OsStr::new(""), OsString::as_os_str)
    }

    /// What a sandboxed process must see of the operator's files to find programs, wherever it
    /// lies: the folders of PATH, and the toolchains that rustup's shims lead to.
    pub fn visible(&self) -> Vec<PathBuf> {
        let rustup = match self.operator.get(OsStr::new("RUSTUP_HOME")) {
            Some(folder) => Some(PathBuf::from(folder)),
            None => self
                .operator
                .get(OsStr::new("HOME"))
                .map(|h| Path::new(h).join(".rustup")),
        };
        std::env::split_paths(self.path_var())
            .chain(rustup)
            .filter(|p| p.is_absolute() && p.exists())
            .collect()
    }

    /// Looks a program up on PATH.
    pub fn on_path(&self, name: impl AsRef<OsStr>) -> Option<PathBuf> {
        find_program(name, self.path_var())
    }
}

/// Finds the program of a profile, or of its command line.
///
/// # Errors
/// See [`FindError`].
pub fn find(
    profile: &Profile,
    command: Option<&CommandLine>,
    places: &Places,
) -> Result<Found, FindError> {
    let agent = profile.name.clone();
    let program = match (command, &profile.program) {
        (Some(command), _) => command.program(),
        (None, Some(program)) => program.clone(),
        (None, None) => return Err(FindError::CommandNeeded(agent)),
    };
    let found = if program.contains('/') {
        Some(places.project.join(&program)).filter(|p| p.is_file())
    } else {
        places.on_path(&program)
    };
    if let Some(program) = found {
        let real = program.canonicalize().unwrap_or_else(|_| program.clone());
        let root = real.parent().unwrap_or(Path::new("/")).to_owned();
        return Ok(Found {
            program,
            root,
            from_cache: false,
        });
    }
    let root = profile
        .npm
        .as_deref()
        .and_then(|npm| cached_root(npm, &places.cache));
    let Some(root) = root.filter(|_| command.is_none()) else {
        return Err(FindError::Missing { agent, program });
    };
    let cached = root.join("node_modules/.bin").join(&program);
    if cached.exists() {
        Ok(Found {
            program: cached,
            root,
            from_cache: true,
        })
    } else {
        Err(FindError::NotInstalled { agent, program })
    }
}

/// The folder that a pinned manifest is installed into: another manifest, another folder.
pub fn cached_root(npm: &str, cache: &Path) -> Option<PathBuf> {
    let hash = Sha256::digest(manifest(npm)?.as_bytes());
    let tag = hex::encode(&hash[..6]);
    Some(cache.join("agents").join(format!("{npm}-{tag}")))
}

/// The pinned manifest, by its folder below `harness/npm/`.
pub fn manifest(npm: &str) -> Option<&'static str> {
    HARNESS
        .get_file(format!("npm/{npm}/package.json"))?
        .contents_utf8()
}

/// The version that a manifest pins.
pub fn pinned_version(npm: &str) -> Option<String> {
    let manifest: serde_json::Value = serde_json::from_str(manifest(npm)?).ok()?;
    let dependencies = manifest.get("dependencies")?.as_object()?;
    dependencies.values().next()?.as_str().map(str::to_owned)
}

/// Asks a program for its version, in a home of its own; `None` when it tells none that the
/// profile understands.
pub async fn version(profile: &Profile, found: &Found, places: &Places) -> Option<String> {
    let probe = profile.version.as_ref()?;
    let home = tempfile::tempdir().ok()?;
    for folder in HOME_FOLDERS {
        std::fs::create_dir_all(home.path().join(folder)).ok()?;
    }
    let env: Vec<(OsString, OsString)> = base_environment(home.path(), &places.operator)
        .into_iter()
        .collect();
    let args: Vec<OsString> = probe.args.iter().map(OsString::from).collect();
    match probe_version(&found.program, &args, &env, VERSION_LIMIT).await {
        Ok(text) => probe
            .pattern
            .captures(text.trim())
            .and_then(|c| Some(c.get(1)?.as_str().to_owned())),
        Err(error) => {
            tracing::warn!(agent = profile.name, %error, "the version probe failed");
            None
        }
    }
}
