//! Installing the pinned version of an agent from its npm package into flashrig's cache folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::find::{Found, Places, cached_root, manifest};
use super::profile::Profile;
use flashrig_process::{Sandbox, Spec};
use flashrig_server::install::{Site, StepError, run_step};

/// 400 MB over a slow line.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// An agent that could not be installed. Nothing half installed is left.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The profile names no package.
    #[error("agent {0} is not one that flashrig installs; put its program on PATH")]
    NoPackage(String),
    /// No npm.
    #[error("agent {0}: npm is not on PATH; install Node.js with npm, or put the agent on PATH")]
    NoNpm(String),
    /// The cache folder cannot be written.
    #[error("agent {agent}: cannot write flashrig's cache folder {folder}: {source}")]
    Cache {
        /// Profile.
        agent: String,
        /// Folder.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// npm failed.
    #[error("agent {agent}: `npm install` {error}")]
    Npm {
        /// Profile.
        agent: String,
        /// How it ended.
        error: StepError,
    },
}

/// Installs the agent unless its pinned version is there already.
///
/// # Errors
/// See [`InstallError`].
pub async fn install(
    profile: &Profile,
    places: &Places,
    shim: &Path,
) -> Result<Found, InstallError> {
    let agent = profile.name.clone();
    let no_package = || InstallError::NoPackage(agent.clone());
    let npm_folder = profile.npm.as_deref().ok_or_else(no_package)?;
    let program = profile.program.as_deref().ok_or_else(no_package)?;
    let manifest = manifest(npm_folder).ok_or_else(no_package)?;
    let root = cached_root(npm_folder, &places.cache).ok_or_else(no_package)?;
    let found = Found {
        program: root.join("node_modules/.bin").join(program),
        root: root.clone(),
        from_cache: true,
    };
    if found.program.exists() {
        return Ok(found);
    }
    let npm = places
        .on_path("npm")
        .ok_or_else(|| InstallError::NoNpm(agent.clone()))?;
    let parent = root.parent().unwrap_or(&places.cache).to_owned();
    let fail = |source| InstallError::Cache {
        agent: agent.clone(),
        folder: parent.clone(),
        source,
    };
    let site = Site {
        folder: parent.clone(),
        name: npm_folder.to_owned(),
    };
    let lock = site.lock(|message| tracing::info!("{message}")).await;
    let _lock = lock.map_err(fail)?;
    // Another flashrig may have been faster.
    if found.program.exists() {
        return Ok(found);
    }
    let building = site.build_folder().map_err(fail)?;
    std::fs::write(building.path().join("package.json"), manifest).map_err(fail)?;

    let mut spec = Spec::new("npm", npm, building.path(), Sandbox::ProcessGroup, shim);
    // The exact version is pinned in the manifest, and each platform's package by its parent. A
    // lock file made on one platform can lack the packages of another.
    spec.args = [
        "install",
        "--no-package-lock",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ]
    .map(Into::into)
    .into();
    spec.env = places.operator.clone().into_iter().collect();
    let npm = |error| InstallError::Npm {
        agent: agent.clone(),
        error,
    };
    let output = run_step(spec, LIMIT).await.map_err(npm)?;
    let built = building.path().join("node_modules/.bin").join(program);
    if !built.exists() {
        let what = format!("left no program {program:?}");
        return Err(npm(StepError::new(what, &output)));
    }
    site.put(building, &root).map_err(fail)?;
    Ok(found)
}
