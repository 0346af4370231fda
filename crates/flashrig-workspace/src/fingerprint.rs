//! A cheap fingerprint of a folder, to prove afterwards that nothing touched it.
//!
//! For the user's own repositories and for sibling workspaces: an agent must work in its copy.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use git2::Repository;
use ignore::WalkBuilder;

use super::error::WorkspaceError;
use super::{git, paths};

/// What a folder looked like: its files, and when it is a repository, its refs, index and
/// configuration. Files that the repository ignores are left out, since builds and editors write
/// them at any time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    root: PathBuf,
    files: BTreeMap<Vec<u8>, Look>,
    /// HEAD, refs, and files of the git folder that can make git run something.
    git: BTreeMap<String, String>,
}

/// What is compared of a file: reading contents would take too long.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Look {
    mode: u32,
    size: u64,
    modified: (i64, i64),
}

impl Look {
    fn at(path: &Path) -> Option<Self> {
        let meta = fs::symlink_metadata(path).ok()?;
        Some(Self {
            mode: meta.mode(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
        })
    }
}

impl Fingerprint {
    /// Looks at `folder`, which may or may not be a repository.
    ///
    /// # Errors
    /// When the folder, or its repository, cannot be read.
    pub fn of(folder: &Path) -> Result<Self, WorkspaceError> {
        Self::without(folder, &[])
    }

    /// Looks at `folder` and leaves out what lies in `ours`, the folders that the caller itself
    /// writes into. A tracked file counts even there. A folder of `ours` that holds `folder`
    /// leaves out nothing.
    ///
    /// # Errors
    /// When the folder, or its repository, cannot be read.
    pub fn without(folder: &Path, ours: &[PathBuf]) -> Result<Self, WorkspaceError> {
        Self::look(folder, ours).map_err(WorkspaceError::storage)
    }

    fn look(folder: &Path, ours: &[PathBuf]) -> anyhow::Result<Self> {
        let real = folder
            .canonicalize()
            .with_context(|| format!("cannot read folder {}", folder.display()))?;
        let ours: Vec<PathBuf> = ours
            .iter()
            .filter_map(|path| {
                path.canonicalize()
                    .ok()?
                    .strip_prefix(&real)
                    .ok()
                    .map(Path::to_owned)
            })
            .filter(|inside| !inside.as_os_str().is_empty())
            .map(|inside| folder.join(inside))
            .collect();
        fs::read_dir(folder).with_context(|| format!("cannot read folder {}", folder.display()))?;
        let mut found = Self {
            root: folder.to_owned(),
            files: BTreeMap::new(),
            git: BTreeMap::new(),
        };
        if folder.join(".git").exists() {
            let repo = git::open(folder)?;
            found
                .look_at_git(&repo)
                .with_context(|| format!("cannot read the repository of {}", folder.display()))?;
        }
        let walk = WalkBuilder::new(folder)
            .hidden(false)
            .ignore(false)
            .git_global(false)
            .parents(false)
            .require_git(false)
            .filter_entry(move |entry| {
                entry.file_name() != ".git" && !ours.iter().any(|path| path == entry.path())
            })
            .build();
        // What cannot be read before cannot be read after: it is not a difference.
        for entry in walk
            .flatten()
            .filter(|e| !e.file_type().is_some_and(|t| t.is_dir()))
        {
            found.look_at_file(entry.path());
        }
        Ok(found)
    }

    fn look_at_file(&mut self, path: &Path) {
        let Ok(inside) = path.strip_prefix(&self.root) else {
            return;
        };
        if let Some(look) = Look::at(path) {
            self.files
                .insert(inside.as_os_str().as_bytes().to_vec(), look);
        }
    }

    fn look_at_git(&mut self, repo: &Repository) -> anyhow::Result<()> {
        let head = fs::read_to_string(repo.path().join("HEAD")).context("cannot read HEAD")?;
        self.git.insert("HEAD".into(), head.trim_end().to_owned());
        for reference in repo.references().context("cannot list refs")? {
            let Ok(reference) = reference else { continue };
            let to = reference
                .target()
                .map(|id| id.to_string())
                .or_else(|| {
                    reference
                        .symbolic_target()
                        .ok()
                        .flatten()
                        .map(str::to_owned)
                })
                .unwrap_or_default();
            self.git.insert(
                String::from_utf8_lossy(reference.name_bytes()).into_owned(),
                to,
            );
        }
        for name in ["config", "hooks", "info/exclude", "info/attributes"] {
            self.look_at_git_folder(&repo.commondir().join(name), name);
        }
        // Entries, not bytes: any `git status` of the user's own rewrites the index's times.
        for entry in repo.index().context("cannot read the index")?.iter() {
            let name = format!(
                "staged {} (stage {})",
                paths::shown(&entry.path),
                (entry.flags >> 12) & 3
            );
            self.git
                .insert(name, format!("{:o} {}", entry.mode, entry.id));
            // Tracked files count even where an ignore rule covers them.
            self.look_at_file(&self.root.join(paths::as_path(&entry.path)));
        }
        Ok(())
    }

    fn look_at_git_folder(&mut self, path: &Path, name: &str) {
        if path.is_dir() {
            for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                let name = format!("{name}/{}", entry.file_name().to_string_lossy());
                self.look_at_git_folder(&entry.path(), &name);
            }
        } else if let Some(look) = Look::at(path) {
            self.git.insert(format!(".git/{name}"), format!("{look:?}"));
        }
    }

    /// What is different in `later`, one line each, sorted; empty when nothing is.
    pub fn differences(&self, later: &Self) -> Vec<String> {
        let mut message = Vec::new();
        let files: BTreeSet<_> = self.files.keys().chain(later.files.keys()).collect();
        for path in files {
            if let Some(what) = difference(self.files.get(path), later.files.get(path)) {
                message.push(format!("{} {what}", paths::shown(path)));
            }
        }
        let git: BTreeSet<_> = self.git.keys().chain(later.git.keys()).collect();
        for name in git {
            if let Some(what) = difference(self.git.get(name), later.git.get(name)) {
                message.push(format!("{name} {what}"));
            }
        }
        message
    }
}

fn difference<T: PartialEq>(before: Option<&T>, after: Option<&T>) -> Option<&'static str> {
    match (before, after) {
        (None, Some(_)) => Some("was added"),
        (Some(_), None) => Some("was removed"),
        (Some(before), Some(after)) if before != after => Some("was changed"),
        _ => None,
    }
}
