//! Reading a workspace's files into a tree of the vault.
//!
//! The workspace was left by a program that may have done anything: nothing in it is trusted,
//! links are never followed, and nothing that would block is opened.

use std::collections::BTreeSet;
use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use anyhow::Context as _;
use git2::{ObjectType, Oid, Repository, Tree};
use nix::fcntl::OFlag;

use super::flat::{EXECUTABLE, FILE, FOLDER, LINK, SUBMODULE};
use super::ignores::Ignores;
use super::paths;
use flashrig_record::{SkipReason, Skipped};

/// The largest file, in bytes, that becomes part of a patch.
pub const LARGEST_FILE_BYTES: u64 = 32 << 20;

/// The deepest folder that becomes part of a patch: none that people make is as deep, and a
/// program gone wild must not exhaust the stack here.
const DEEPEST_FOLDER: usize = 200;

/// A workspace as it was found.
pub(super) struct Taken {
    pub(super) tree: Oid,
    pub(super) skipped: Vec<Skipped>,
}

/// Reads `workspace` and stores what differs from `base`.
pub(super) fn take(vault: &Repository, base: Oid, workspace: &Path) -> anyhow::Result<Taken> {
    let base = vault
        .find_tree(base)
        .context("the base tree is missing; make the base again")?;
    let mut reader = Reader {
        vault,
        root: workspace,
        ignores: Ignores::default(),
        skipped: Vec::new(),
    };
    // A link in the workspace's place leads elsewhere, and nothing elsewhere is the agent's work.
    let is_folder = fs::symlink_metadata(workspace).is_ok_and(|meta| meta.is_dir());
    let tree = match is_folder {
        true => reader.folder(&[], Some(&base), false)?,
        false => None,
    };
    let tree = match tree {
        Some(tree) => tree,
        None => vault
            .treebuilder(None)?
            .write()
            .context("cannot store an empty tree")?,
    };
    Ok(Taken {
        tree,
        skipped: reader.skipped,
    })
}

struct Reader<'a> {
    vault: &'a Repository,
    root: &'a Path,
    ignores: Ignores,
    skipped: Vec<Skipped>,
}

/// What became of one name.
enum Found {
    /// It goes into the tree.
    Entry { mode: i32, id: Oid },
    /// As in the base.
    Kept,
    /// Not part of the tree.
    Nothing,
}

/// What the base has at one name.
#[derive(Clone, Copy)]
struct Was {
    mode: i32,
    id: Oid,
}

impl Reader<'_> {
    /// The tree of one real folder; `None` when it holds nothing for git.
    fn folder(
        &mut self,
        at: &[u8],
        base: Option<&Tree<'_>>,
        ignored: bool,
    ) -> anyhow::Result<Option<Oid>> {
        let entered = base.is_some_and(|tree| self.ignores.enter(self.vault, at, tree));
        let result = self.folder_inside(at, base, ignored);
        if entered {
            self.ignores.leave();
        }
        result
    }

    fn folder_inside(
        &mut self,
        at: &[u8],
        base: Option<&Tree<'_>>,
        ignored: bool,
    ) -> anyhow::Result<Option<Oid>> {
        let Ok(names) = list(&self.root.join(paths::as_path(at))) else {
            self.skip(at, SkipReason::Unreadable);
            return Ok(base.map(Tree::id));
        };
        let mut builder = self
            .vault
            .treebuilder(base)
            .context("cannot begin a tree")?;
        let mut changed = false;
        for name in base
            .iter()
            .flat_map(|tree| tree.iter())
            .map(|e| e.name_bytes().to_vec())
        {
            // A submodule that is gone shows nothing: a clone has only its empty folder.
            let submodule = base
                .and_then(|tree| tree.get_name_bytes(&name))
                .is_some_and(|entry| entry.filemode() == SUBMODULE);
            if !names.contains(&name) && !submodule {
                builder
                    .remove(name.as_slice())
                    .context("cannot take a name out of a tree")?;
                changed = true;
            }
        }
        for name in names {
            let was = base
                .and_then(|tree| tree.get_name_bytes(&name))
                .map(|entry| Was {
                    mode: entry.filemode(),
                    id: entry.id(),
                });
            match self.name(at, &name, was, ignored)? {
                Found::Kept => {}
                Found::Entry { mode, id } => {
                    if builder.insert(name.as_slice(), id, mode).is_ok() {
                        changed = true;
                    } else {
                        self.skip(&paths::join(at, &name), SkipReason::BadName);
                    }
                }
                Found::Nothing if was.is_some() => {
                    builder
                        .remove(name.as_slice())
                        .context("cannot take a name out of a tree")?;
                    changed = true;
                }
                Found::Nothing => {}
            }
        }
        if let (Some(base), false) = (base, changed) {
            return Ok(Some(base.id()));
        }
        match builder.is_empty() {
            true => Ok(None),
            false => Ok(Some(builder.write().context("cannot store a tree")?)),
        }
    }

    fn name(
        &mut self,
        at: &[u8],
        name: &[u8],
        was: Option<Was>,
        ignored: bool,
    ) -> anyhow::Result<Found> {
        let path = paths::join(at, name);
        let Ok(meta) = fs::symlink_metadata(self.root.join(paths::as_path(&path))) else {
            self.skip(&path, SkipReason::Unreadable);
            return Ok(if was.is_some() {
                Found::Kept
            } else {
                Found::Nothing
            });
        };
        if !paths::is_safe_name(name) {
            // Such as `.GIT`, which is the git folder itself on some file systems.
            self.skip(&path, SkipReason::BadName);
            return Ok(if was.is_some() {
                Found::Kept
            } else {
                Found::Nothing
            });
        }
        let was_folder = was.filter(|was| was.mode == FOLDER);
        let was_file = was.filter(|was| was.mode != FOLDER && was.mode != SUBMODULE);
        if was.is_some_and(|was| was.mode == SUBMODULE) {
            if !meta.is_dir()
                || list(&self.root.join(paths::as_path(&path))).is_ok_and(|l| !l.is_empty())
            {
                self.skip(&path, SkipReason::Submodule);
            }
            return Ok(Found::Kept);
        }
        let ignored = ignored || self.ignores.ignores(&path, meta.is_dir());
        if meta.is_dir() {
            // Inside an ignored folder only the files that the base tracks count.
            if ignored && was_folder.is_none() {
                return Ok(Found::Nothing);
            }
            if path.iter().filter(|byte| **byte == b'/').count() >= DEEPEST_FOLDER {
                self.skip(&path, SkipReason::TooDeep);
                return Ok(if was_folder.is_some() {
                    Found::Kept
                } else {
                    Found::Nothing
                });
            }
            let base = was_folder
                .map(|was| self.vault.find_tree(was.id))
                .transpose()
                .context("a folder of the base is missing; make the base again")?;
            return Ok(match self.folder(&path, base.as_ref(), ignored)? {
                Some(id) if was_folder.is_some_and(|was| was.id == id) => Found::Kept,
                Some(id) => Found::Entry { mode: FOLDER, id },
                None => Found::Nothing,
            });
        }
        if ignored && was_file.is_none() {
            return Ok(Found::Nothing);
        }
        self.file(&path, &meta, was_file)
    }

    fn file(&mut self, path: &[u8], meta: &Metadata, was: Option<Was>) -> anyhow::Result<Found> {
        let full = self.root.join(paths::as_path(path));
        let (mode, bytes) = if meta.is_symlink() {
            (
                LINK,
                fs::read_link(&full).map(|target| target.into_os_string().into_vec()),
            )
        } else if meta.is_file() {
            let mode = if meta.mode() & 0o100 == 0 {
                FILE
            } else {
                EXECUTABLE
            };
            if meta.len() > LARGEST_FILE_BYTES {
                return self.large(path, &full, mode, was);
            }
            (mode, read(&full))
        } else {
            self.skip(path, SkipReason::Special);
            return Ok(Found::Nothing);
        };
        let Ok(bytes) = bytes else {
            self.skip(path, SkipReason::Unreadable);
            return Ok(if was.is_some() {
                Found::Kept
            } else {
                Found::Nothing
            });
        };
        if let Some(was) = was {
            let id = Oid::hash_object(ObjectType::Blob, &bytes).context("cannot hash a file")?;
            if id == was.id {
                return Ok(kept_or_mode(was, mode));
            }
        }
        let id = self
            .vault
            .blob(&bytes)
            .context("cannot store a file in the vault")?;
        Ok(Found::Entry { mode, id })
    }

    /// A file too large to store: fine when it is the base's own.
    fn large(
        &mut self,
        path: &[u8],
        full: &Path,
        mode: i32,
        was: Option<Was>,
    ) -> anyhow::Result<Found> {
        if let Some(was) = was
            && Oid::hash_file(ObjectType::Blob, full).is_ok_and(|id| id == was.id)
        {
            return Ok(kept_or_mode(was, mode));
        }
        self.skip(path, SkipReason::TooLarge);
        Ok(if was.is_some() {
            Found::Kept
        } else {
            Found::Nothing
        })
    }

    fn skip(&mut self, path: &[u8], why: SkipReason) {
        let path = if path.is_empty() { b"." } else { path };
        self.skipped.push(Skipped {
            path: paths::shown(path).into_owned(),
            why,
        });
    }
}

fn kept_or_mode(was: Was, mode: i32) -> Found {
    // Old repositories hold modes such as 100664, which mean a plain file too.
    let same = match mode {
        FILE => was.mode != EXECUTABLE && was.mode != LINK,
        mode => was.mode == mode,
    };
    if same {
        Found::Kept
    } else {
        Found::Entry { mode, id: was.id }
    }
}

/// Names in a folder, sorted, without any `.git`: a repository that the agent made inside is
/// files to us, as the workspace's own is nothing.
fn list(folder: &Path) -> io::Result<BTreeSet<Vec<u8>>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if name != ".git" {
            names.insert(name.as_bytes().to_vec());
        }
    }
    Ok(names)
}

/// Reads a plain file that may have been swapped for something else since it was looked at.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
