//! A tree as one sorted list of paths, for those who mix trees.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use git2::{ObjectType, Oid, Repository};

use super::paths;

/// Mode of a plain file.
pub(super) const FILE: i32 = 0o100_644;
/// Mode of an executable file.
pub(super) const EXECUTABLE: i32 = 0o100_755;
/// Mode of a symbolic link.
pub(super) const LINK: i32 = 0o120_000;
/// Mode of a submodule.
pub(super) const SUBMODULE: i32 = 0o160_000;
/// Mode of a folder.
pub(super) const FOLDER: i32 = 0o040_000;

/// What a path of a tree holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Git's file mode.
    pub mode: i32,
    /// Id of the blob (or of the submodule's commit).
    pub id: Oid,
}

impl Entry {
    /// A plain file with this blob.
    pub fn file(id: Oid) -> Self {
        Self { mode: FILE, id }
    }
}

/// Every file, link and submodule of a tree, by its path.
pub type Flat = BTreeMap<Vec<u8>, Entry>;

/// Lists a tree.
pub(super) fn read(repo: &Repository, tree: Oid) -> anyhow::Result<Flat> {
    let mut flat = Flat::new();
    read_into(repo, tree, &[], &mut flat)?;
    Ok(flat)
}

fn read_into(repo: &Repository, tree: Oid, at: &[u8], flat: &mut Flat) -> anyhow::Result<()> {
    let tree = repo.find_tree(tree).with_context(|| {
        format!(
            "tree {tree} is missing from {}; make the base again",
            repo.path().display()
        )
    })?;
    for entry in &tree {
        let path = paths::join(at, entry.name_bytes());
        if entry.kind() == Some(ObjectType::Tree) {
            read_into(repo, entry.id(), &path, flat)?;
        } else {
            flat.insert(
                path,
                Entry {
                    mode: entry.filemode(),
                    id: entry.id(),
                },
            );
        }
    }
    Ok(())
}

/// Stores the list as a tree and returns its id.
pub(super) fn write(repo: &Repository, flat: &Flat) -> anyhow::Result<Oid> {
    let list: Vec<(&[u8], Entry)> = flat.iter().map(|(p, e)| (p.as_slice(), *e)).collect();
    write_level(repo, &list)
}

/// Writes one folder. `list` holds paths relative to it, grouped by their first name: in byte
/// order `a.b` sorts between `a` and `a/b`, so groups are collected rather than assumed adjacent.
fn write_level(repo: &Repository, list: &[(&[u8], Entry)]) -> anyhow::Result<Oid> {
    let mut builder = repo.treebuilder(None).context("cannot begin a tree")?;
    let mut folders: BTreeMap<&[u8], Vec<(&[u8], Entry)>> = BTreeMap::new();
    for (path, entry) in list {
        match path.iter().position(|byte| *byte == b'/') {
            Some(slash) => {
                folders
                    .entry(&path[..slash])
                    .or_default()
                    .push((&path[slash + 1..], *entry));
            }
            None => {
                builder
                    .insert(*path, entry.id, entry.mode)
                    .with_context(|| format!("git cannot store the name {}", paths::shown(path)))?;
            }
        }
    }
    for (name, list) in folders {
        let folder = write_level(repo, &list)?;
        let shown = paths::shown(name);
        if builder.get(name).ok().flatten().is_some() {
            bail!("{shown} is a file and a folder at once");
        }
        builder
            .insert(name, folder, FOLDER)
            .with_context(|| format!("git cannot store the name {shown}"))?;
    }
    builder.write().context("cannot store a tree")
}
