//! Writing a tree's files into a folder.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, symlink};
use std::path::Path;

use anyhow::{Context as _, bail};
use git2::{ObjectType, Oid, Repository};

use super::flat::{EXECUTABLE, LINK};
use super::paths;

/// Writes the tree into `folder`, which is made when it is not there and must hold nothing of the
/// same name. Bytes are written as stored: no line-end conversion, no filters.
pub(super) fn write_tree(repo: &Repository, tree: Oid, folder: &Path) -> anyhow::Result<()> {
    if !folder.is_dir() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(folder)
            .with_context(|| format!("cannot make folder {}", folder.display()))?;
    }
    write_level(repo, tree, folder)
}

fn write_level(repo: &Repository, tree: Oid, folder: &Path) -> anyhow::Result<()> {
    let tree = repo
        .find_tree(tree)
        .with_context(|| format!("cannot read tree {tree}"))?;
    for entry in &tree {
        let name = entry.name_bytes();
        let to = folder.join(paths::as_path(name));
        if !paths::is_safe_name(name) {
            bail!(
                "{} cannot be checked out: it would leave its folder",
                to.display()
            );
        }
        match entry.kind() {
            Some(ObjectType::Tree) => {
                fs::create_dir(&to)
                    .with_context(|| format!("cannot make folder {}", to.display()))?;
                write_level(repo, entry.id(), &to)?;
            }
            Some(ObjectType::Blob) => {
                let blob = repo.find_blob(entry.id()).with_context(|| {
                    format!(
                        "the content of {} is missing from its repository (a partial clone?); \
                         fetch it there first",
                        to.display()
                    )
                })?;
                write_file(&to, entry.filemode(), blob.content())
                    .with_context(|| format!("cannot write {}", to.display()))?;
            }
            // A submodule's content is not in this repository; git too leaves an empty folder.
            _ => {
                fs::create_dir(&to)
                    .with_context(|| format!("cannot make folder {}", to.display()))?;
            }
        }
    }
    Ok(())
}

fn write_file(to: &Path, mode: i32, bytes: &[u8]) -> std::io::Result<()> {
    if mode == LINK {
        return symlink(paths::as_path(bytes), to);
    }
    let permissions = if mode == EXECUTABLE { 0o755 } else { 0o644 };
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(permissions)
        .open(to)?
        .write_all(bytes)
}
