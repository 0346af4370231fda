//! The base: what every workspace of one task is copied from and compared with.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use git2::{IndexTime, Oid, Repository};
use parking_lot::Mutex;

use super::copy::{self, CopyReport, Linking};
use super::error::WorkspaceError;
use super::flat::{self, Flat, LINK, SUBMODULE};
use super::patch::{self, Patch};
use super::{apply, files, git, paths, snapshot, source};
use crate::Source;

/// A task's repository at its start, held where no agent can reach it.
#[derive(Clone, Debug)]
pub struct Base {
    /// Checked-out repository that workspaces are copied from.
    template: PathBuf,
    /// Bare repository that patches are computed in; shares no file with any workspace.
    vault: PathBuf,
    commit: Oid,
    tree: Oid,
    branch: String,
    /// How the template's object files looked when they were made.
    seal: Arc<Mutex<Seal>>,
}

/// Path, size and time of every object file of the template.
type Seal = BTreeMap<PathBuf, (u64, i64, i64)>;

impl Base {
    /// Makes the base of `source` in `folder`, which must be fresh and outside every workspace.
    ///
    /// A fixture gives the same commit id on every machine. A repository of the user's is only
    /// read: its object files are hard-linked into the vault where the file system can, and
    /// copied into the template, so that an agent that writes into an object file of its
    /// workspace cannot reach the user's.
    ///
    /// # Errors
    /// [`WorkspaceError`] as its variants say.
    pub fn make(source: &Source, folder: &Path) -> Result<Self, WorkspaceError> {
        claim(folder)?;
        let vault_path = folder.join("vault.git");
        let vault = git::init_bare(&vault_path).map_err(WorkspaceError::storage)?;
        let filled = source::fill(&vault, source)?;
        let commit = vault
            .find_commit(filled.commit)
            .context("cannot read the base commit")
            .map_err(WorkspaceError::storage)?;
        let base = Self {
            template: folder.join("template"),
            vault: vault_path,
            commit: commit.id(),
            tree: commit.tree_id(),
            branch: filled.branch,
            seal: Arc::default(),
        };
        base.ensure_template().map_err(WorkspaceError::storage)?;
        Ok(base)
    }

    /// Makes the template, or makes it again when an object file was written to.
    ///
    /// Workspaces share object files with the template where blocks cannot be shared. Git never
    /// writes into one, but an agent might, and the next workspace must not inherit that.
    fn ensure_template(&self) -> anyhow::Result<()> {
        let mut seal = self.seal.lock();
        let objects = self.template.join(".git/objects");
        if !seal.is_empty() && look(&objects).is_ok_and(|now| now == *seal) {
            return Ok(());
        }
        let context = || format!("cannot check out the base in {}", self.template.display());
        if self.template.exists() {
            fs::remove_dir_all(&self.template).with_context(context)?;
        }
        self.make_template().with_context(context)?;
        *seal = look(&objects)?;
        Ok(())
    }

    fn make_template(&self) -> anyhow::Result<()> {
        let repo = git::init_worktree(&self.template, &self.branch)?;
        let objects = repo.path().join("objects");
        for name in ["info", "pack"] {
            // Made again by the copy.
            fs::remove_dir(objects.join(name)).ok();
        }
        copy::folder(
            &self.vault.join("objects"),
            &objects,
            Linking::Nothing,
            &|_| false,
        )?;
        let shallow = self.vault.join("shallow");
        if shallow.is_file() {
            fs::copy(&shallow, repo.path().join("shallow")).context("cannot copy shallow marks")?;
        }
        // A handle opened now sees the objects.
        let repo = git::open(&self.template)?;
        repo.reference(
            &format!("refs/heads/{}", self.branch),
            self.commit,
            false,
            "flashrig: base",
        )
        .with_context(|| format!("cannot make branch {}", self.branch))?;
        files::write_tree(&repo, self.tree, &self.template)?;
        let mut index = repo.index().context("cannot open the index")?;
        index
            .read_tree(&repo.find_tree(self.tree)?)
            .context("cannot fill the index")?;
        index.write().context("cannot write the index")
    }

    /// Id of the commit that every workspace starts at, hexadecimal.
    pub fn base_commit(&self) -> String {
        self.commit.to_string()
    }

    /// Id of that commit's tree, hexadecimal.
    pub fn base_tree(&self) -> String {
        self.tree.to_string()
    }

    /// The branch that is checked out in every workspace.
    pub fn branch(&self) -> &str {
        &self.branch
    }

    /// Copies the template to `dest`, which is made and must be fresh. Git sees nothing modified
    /// in the copy, and has nothing to look up again.
    ///
    /// # Errors
    /// [`WorkspaceError::DestinationTaken`], or what went wrong while copying.
    pub fn copy_to(&self, dest: &Path) -> Result<CopyReport, WorkspaceError> {
        claim(dest)?;
        self.ensure_template().map_err(WorkspaceError::storage)?;
        let report = copy::folder(&self.template, dest, Linking::GitObjects, &|_| false)
            .map_err(WorkspaceError::storage)?;
        refresh_index(dest)
            .with_context(|| format!("cannot refresh the index of {}", dest.display()))
            .map_err(WorkspaceError::storage)?;
        Ok(report)
    }

    /// What the workspace at `workspace` changed against the base tree. Only its files count, not
    /// what became of its `.git`. Call it when no process of the agent is left.
    ///
    /// # Errors
    /// When the vault cannot be read or written. Whatever the agent left in its workspace is not
    /// an error: what cannot be part of a patch is listed in [`Patch::skipped`].
    pub fn patch(&self, workspace: &Path) -> Result<Patch, WorkspaceError> {
        let vault = self.vault()?;
        snapshot::take(&vault, self.tree, workspace)
            .and_then(|taken| patch::between(&vault, self.tree, taken.tree, taken.skipped))
            .with_context(|| format!("cannot read what changed in {}", workspace.display()))
            .map_err(WorkspaceError::storage)
    }

    /// The patch that applying a unified diff to the base tree gives; nothing is checked out.
    ///
    /// # Errors
    /// When the text is not a unified diff, or does not apply exactly.
    pub fn tree_with_patch(&self, text: &str) -> Result<Patch, WorkspaceError> {
        let vault = self.vault()?;
        let tree = apply::apply(&vault, self.tree, text).map_err(WorkspaceError::patch)?;
        patch::between(&vault, self.tree, tree, Vec::new()).map_err(WorkspaceError::storage)
    }

    /// Writes the tree with this id into `dest`, which is made and must be fresh; no `.git`.
    ///
    /// # Errors
    /// [`WorkspaceError::DestinationTaken`]; when the tree is unknown; when writing fails.
    pub fn checkout(&self, tree: &str, dest: &Path) -> Result<(), WorkspaceError> {
        claim(dest)?;
        files::write_tree(&self.vault()?, id(tree)?, dest).map_err(WorkspaceError::storage)
    }

    /// Lists a tree of this base or of one of its patches.
    ///
    /// # Errors
    /// When the tree is unknown.
    pub fn files(&self, tree: &str) -> Result<Flat, WorkspaceError> {
        flat::read(&self.vault()?, id(tree)?).map_err(WorkspaceError::storage)
    }

    /// Stores a list of files as a tree and returns its id, for [`Base::checkout`].
    ///
    /// # Errors
    /// When git cannot store a name or an object is missing.
    pub fn store_tree(&self, files: &Flat) -> Result<String, WorkspaceError> {
        let tree = flat::write(&self.vault()?, files).map_err(WorkspaceError::storage)?;
        Ok(tree.to_string())
    }

    /// Stores a file's bytes, for [`Base::store_tree`].
    ///
    /// # Errors
    /// When the vault cannot be written.
    pub fn store_file(&self, bytes: &[u8]) -> Result<flat::Entry, WorkspaceError> {
        let blob = self.vault()?.blob(bytes).context("cannot store a file");
        Ok(flat::Entry::file(blob.map_err(WorkspaceError::storage)?))
    }

    fn vault(&self) -> Result<Repository, WorkspaceError> {
        git::open(&self.vault).map_err(WorkspaceError::storage)
    }
}

fn look(folder: &Path) -> anyhow::Result<Seal> {
    let mut seal = Seal::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let context = || format!("cannot read folder {}", folder.display());
        for entry in fs::read_dir(&folder).with_context(context)? {
            let path = entry.with_context(context)?.path();
            let meta = fs::symlink_metadata(&path).with_context(context)?;
            if meta.is_dir() {
                folders.push(path);
            } else {
                seal.insert(path, (meta.len(), meta.mtime(), meta.mtime_nsec()));
            }
        }
    }
    Ok(seal)
}

fn id(text: &str) -> Result<Oid, WorkspaceError> {
    Oid::from_str(text).map_err(|e| WorkspaceError::BadId {
        id: text.to_owned(),
        reason: e.message().to_owned(),
    })
}

/// Makes `folder`, unless it is there and empty.
fn claim(folder: &Path) -> Result<(), WorkspaceError> {
    let entries = fs::create_dir_all(folder).and_then(|()| fs::read_dir(folder));
    let mut entries = entries
        .with_context(|| format!("cannot make folder {}", folder.display()))
        .map_err(WorkspaceError::storage)?;
    if entries.next().is_some() {
        return Err(WorkspaceError::DestinationTaken {
            path: folder.to_owned(),
        });
    }
    Ok(())
}

/// Enters the copy's own inode numbers and times into its index, so that git finds every file
/// unmodified without reading it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the index stores 32 bits of each of these, by its format"
)]
fn refresh_index(workspace: &Path) -> anyhow::Result<()> {
    let repo: Repository = git::open(workspace)?;
    let mut index = repo.index().context("cannot open it")?;
    let entries: Vec<_> = index.iter().collect();
    for mut entry in entries {
        if entry.mode == SUBMODULE as u32 {
            continue;
        }
        let path = workspace.join(paths::as_path(&entry.path));
        let meta = fs::symlink_metadata(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        debug_assert_eq!(meta.is_symlink(), entry.mode == LINK as u32);
        entry.ctime = IndexTime::new(meta.ctime() as i32, meta.ctime_nsec() as u32);
        entry.mtime = IndexTime::new(meta.mtime() as i32, meta.mtime_nsec() as u32);
        entry.dev = meta.dev() as u32;
        entry.ino = meta.ino() as u32;
        entry.uid = meta.uid();
        entry.gid = meta.gid();
        entry.file_size = meta.size() as u32;
        index
            .add(&entry)
            .with_context(|| format!("cannot enter {}", path.display()))?;
    }
    index.write().context("cannot write it")
}
