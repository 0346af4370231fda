//! The base: what every workspace of one task is copied from and compared with.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use git2::{IndexTime, Oid, Repository};
use parking_lot::Mutex;

use super::copy::{self, CopyReport, Linking};
use super::flat::{self, Flat, LINK, SUBMODULE};
use super::patch::{self, Patch};
use super::{apply, files, git, paths, snapshot, source};
use crate::Source;

/// Why a base or a copy of it could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BaseError {
    /// The task's path is no git repository.
    #[error(
        "{} is no git repository ({reason}); name the top folder of one", path.display()
    )]
    NotARepository {
        /// The path as given.
        path: PathBuf,
        /// What git2 said.
        reason: String,
    },
    /// The task's revision is not in its repository.
    #[error(
        "revision {revision:?} is not in {} ({reason}); name a branch, tag or commit that \
         `git -C {} rev-parse` knows", path.display(), path.display()
    )]
    NoSuchRevision {
        /// The repository.
        path: PathBuf,
        /// The revision as given.
        revision: String,
        /// What was wrong with it.
        reason: String,
    },
    /// The destination of a copy is taken.
    #[error("{} is there already and not empty; name a fresh folder", path.display())]
    DestinationTaken {
        /// The destination.
        path: PathBuf,
    },
    /// Anything else: storage, permissions, damaged repositories.
    #[error("{0:#}")]
    Other(#[from] anyhow::Error),
}

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
    /// [`BaseError`] as its variants say.
    pub fn make(source: &Source, folder: &Path) -> Result<Self, BaseError> {
        claim(folder)?;
        let vault_path = folder.join("vault.git");
        let vault = git::init_bare(&vault_path)?;
        let filled = source::fill(&vault, source)?;
        let commit = vault
            .find_commit(filled.commit)
            .context("cannot read the base commit")?;
        let base = Self {
            template: folder.join("template"),
            vault: vault_path,
            commit: commit.id(),
            tree: commit.tree_id(),
            branch: filled.branch,
            seal: Arc::default(),
        };
        base.ensure_template()?;
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
    /// [`BaseError::DestinationTaken`], or what went wrong while copying.
    pub fn copy_to(&self, dest: &Path) -> Result<CopyReport, BaseError> {
        claim(dest)?;
        self.ensure_template()?;
        let report = copy::folder(&self.template, dest, Linking::GitObjects, &|_| false)?;
        refresh_index(dest)
            .with_context(|| format!("cannot refresh the index of {}", dest.display()))?;
        Ok(report)
    }

    /// What the workspace at `workspace` changed against the base tree. Only its files count, not
    /// what became of its `.git`. Call it when no process of the agent is left.
    ///
    /// # Errors
    /// When the vault cannot be read or written. Whatever the agent left in its workspace is no
    /// error: what cannot be part of a patch is listed in [`Patch::skipped`].
    pub fn patch(&self, workspace: &Path) -> anyhow::Result<Patch> {
        let vault = git::open(&self.vault)?;
        let taken = snapshot::take(&vault, self.tree, workspace)
            .with_context(|| format!("cannot tell what changed in {}", workspace.display()))?;
        patch::between(&vault, self.tree, taken.tree, taken.skipped)
    }

    /// The patch that applying a unified diff to the base tree gives; nothing is checked out.
    ///
    /// # Errors
    /// When the text is no unified diff, or does not apply exactly.
    pub fn tree_with_patch(&self, text: &str) -> anyhow::Result<Patch> {
        let vault = git::open(&self.vault)?;
        let tree = apply::apply(&vault, self.tree, text)?;
        patch::between(&vault, self.tree, tree, Vec::new())
    }

    /// Writes the tree with this id into `dest`, which is made and must be fresh; no `.git`.
    ///
    /// # Errors
    /// [`BaseError::DestinationTaken`]; when the tree is unknown; when writing fails.
    pub fn checkout(&self, tree: &str, dest: &Path) -> Result<(), BaseError> {
        claim(dest)?;
        let vault = git::open(&self.vault)?;
        files::write_tree(&vault, id(tree)?, dest)?;
        Ok(())
    }

    /// Lists a tree of this base or of one of its patches.
    ///
    /// # Errors
    /// When the tree is unknown.
    pub fn files(&self, tree: &str) -> anyhow::Result<Flat> {
        flat::read(&git::open(&self.vault)?, id(tree)?)
    }

    /// Stores a list of files as a tree and returns its id, for [`Base::checkout`].
    ///
    /// # Errors
    /// When git cannot store a name or an object is missing.
    pub fn store_tree(&self, files: &Flat) -> anyhow::Result<String> {
        Ok(flat::write(&git::open(&self.vault)?, files)?.to_string())
    }

    /// Stores a file's bytes, for [`Base::store_tree`].
    ///
    /// # Errors
    /// When the vault cannot be written.
    pub fn store_file(&self, bytes: &[u8]) -> anyhow::Result<flat::Entry> {
        let vault = git::open(&self.vault)?;
        Ok(flat::Entry::file(
            vault.blob(bytes).context("cannot store a file")?,
        ))
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

fn id(text: &str) -> anyhow::Result<Oid> {
    Oid::from_str(text).map_err(|e| anyhow!("{text:?} is no object id: {}", e.message()))
}

/// Makes `folder`, unless it is there and empty.
fn claim(folder: &Path) -> Result<(), BaseError> {
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot make folder {}", folder.display()))?;
    let mut entries =
        fs::read_dir(folder).with_context(|| format!("cannot read folder {}", folder.display()))?;
    if entries.next().is_some() {
        return Err(BaseError::DestinationTaken {
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
