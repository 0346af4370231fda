//! Opening and making repositories so that only their own configuration counts.
//!
//! Every repository of this crate is opened here. The operator's global and system git
//! configuration (excludes, autocrlf, signing, hooks) would make results differ between machines.

use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context as _, anyhow};
use git2::{ConfigLevel, Repository, RepositoryInitOptions};

/// Detaches libgit2 from the operator's configuration, once per process.
///
/// Ownership checks go with it: a repository that belongs to another user (usual in containers)
/// is only read here, and libgit2 runs nothing that a repository's configuration names.
fn detach() -> anyhow::Result<()> {
    static DETACHED: OnceLock<Result<(), String>> = OnceLock::new();
    DETACHED
        .get_or_init(|| {
            #[expect(
                unsafe_code,
                reason = "libgit2's options are process-wide; they are set once, before the first \
                          repository is opened, under a lock"
            )]
            // SAFETY: only this module opens repositories, and always after this call returned.
            unsafe {
                for level in [
                    ConfigLevel::System,
                    ConfigLevel::Global,
                    ConfigLevel::XDG,
                    ConfigLevel::ProgramData,
                ] {
                    git2::opts::set_search_path(level, "").map_err(|e| e.to_string())?;
                }
                git2::opts::set_verify_owner_validation(false).map_err(|e| e.to_string())
            }
        })
        .clone()
        .map_err(|e| anyhow!("git2 could not be detached from the operator's configuration: {e}"))
}

/// Opens the repository at `path`, which is its top folder or its git folder.
pub(super) fn open(path: &Path) -> anyhow::Result<Repository> {
    detach()?;
    Repository::open(path).with_context(|| format!("cannot open repository {}", path.display()))
}

/// Makes a bare repository at `path`.
pub(super) fn init_bare(path: &Path) -> anyhow::Result<Repository> {
    detach()?;
    let mut options = RepositoryInitOptions::new();
    options.bare(true).external_template(false).no_reinit(true);
    Repository::init_opts(path, &options)
        .with_context(|| format!("cannot make repository {}", path.display()))
}

/// Makes a repository with a working tree at `path`, with `branch` as its unborn branch, set up
/// so that an agent can commit in it and that git does nothing behind the agent's back.
pub(super) fn init_worktree(path: &Path, branch: &str) -> anyhow::Result<Repository> {
    detach()?;
    let mut options = RepositoryInitOptions::new();
    options
        .external_template(false)
        .no_reinit(true)
        .initial_head(branch);
    let repo = Repository::init_opts(path, &options)
        .with_context(|| format!("cannot make repository {}", path.display()))?;
    let mut config = repo.config().context("cannot open its configuration")?;
    for (key, value) in [
        ("user.name", "flashrig"),
        ("user.email", "flashrig@localhost"),
        // A file's bytes are the tree's bytes, on every machine.
        ("core.autocrlf", "false"),
        // No background work that would take CPU from a measured session.
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
        ("core.fsmonitor", "false"),
        // No key of the operator's is asked for.
        ("commit.gpgsign", "false"),
        ("tag.gpgsign", "false"),
    ] {
        config
            .set_str(key, value)
            .with_context(|| format!("cannot set {key}"))?;
    }
    Ok(repo)
}
