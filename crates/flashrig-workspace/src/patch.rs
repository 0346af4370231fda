//! What an agent changed: facts from git2, text for people.

use anyhow::Context as _;
use git2::{Delta, Diff, DiffOptions, Oid, Repository};

use super::render::{self, Side};
use super::{flat, paths};
use flashrig_record::{ChangeKind, ChangedFile, Skipped};

/// The difference between the base tree and an agent's workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Id of the base tree, hexadecimal.
    pub base_tree: String,
    /// Id of the workspace's tree, in the base's vault.
    pub tree: String,
    /// Changed files.
    pub files: u64,
    /// Inserted lines.
    pub insertions: u64,
    /// Deleted lines.
    pub deletions: u64,
    /// Each changed file, sorted by path.
    pub changed: Vec<ChangedFile>,
    /// What in the workspace is not part of the patch.
    pub skipped: Vec<Skipped>,
    /// Unified diff. `git apply` of it on the base gives the workspace's text files.
    pub text: String,
}

impl Patch {
    /// Whether the workspace holds what the base holds.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty()
    }
}

/// Compares two trees of the vault.
pub(super) fn between(
    vault: &Repository,
    base: Oid,
    tree: Oid,
    skipped: Vec<Skipped>,
) -> anyhow::Result<Patch> {
    let mut patch = Patch {
        base_tree: base.to_string(),
        tree: tree.to_string(),
        files: 0,
        insertions: 0,
        deletions: 0,
        changed: Vec::new(),
        skipped,
        text: String::new(),
    };
    if base == tree {
        return Ok(patch);
    }
    let mut options = DiffOptions::new();
    options.include_typechange(true);
    let (old, new) = (vault.find_tree(base)?, vault.find_tree(tree)?);
    let diff = vault
        .diff_tree_to_tree(Some(&old), Some(&new), Some(&mut options))
        .context("cannot compare the trees")?;
    for index in 0..diff.deltas().len() {
        one(vault, &diff, index, &mut patch).context("cannot read how a file changed")?;
    }
    patch.files = patch.changed.len() as u64;
    Ok(patch)
}

fn one(vault: &Repository, diff: &Diff<'_>, index: usize, patch: &mut Patch) -> anyhow::Result<()> {
    let facts = git2::Patch::from_diff(diff, index)?;
    // Loading the content, as the line above does, is what settles whether it is binary.
    let delta = diff.get_delta(index).context("a change vanished")?;
    let kind = match delta.status() {
        Delta::Added => ChangeKind::Added,
        Delta::Deleted => ChangeKind::Deleted,
        Delta::Typechange => ChangeKind::TypeChanged,
        _ => ChangeKind::Modified,
    };
    let path = delta
        .new_file()
        .path_bytes()
        .or(delta.old_file().path_bytes());
    let path = path.context("a change has no path")?.to_vec();
    let old = side(vault, &delta.old_file(), kind != ChangeKind::Added)?;
    let new = side(vault, &delta.new_file(), kind != ChangeKind::Deleted)?;
    let binary = facts
        .as_ref()
        .is_some_and(|facts| facts.delta().flags().is_binary())
        || [&old, &new]
            .into_iter()
            .flatten()
            .any(|side| side.text().is_none());
    let (_, insertions, deletions) = match &facts {
        Some(facts) => facts.line_stats()?,
        None => (0, 0, 0),
    };
    render::file(&mut patch.text, &path, old.as_ref(), new.as_ref(), binary);
    patch.insertions += insertions as u64;
    patch.deletions += deletions as u64;
    patch.changed.push(ChangedFile {
        path: paths::shown(&path).into_owned(),
        kind,
        insertions: insertions as u64,
        deletions: deletions as u64,
        binary,
    });
    Ok(())
}

fn side(
    vault: &Repository,
    file: &git2::DiffFile<'_>,
    present: bool,
) -> anyhow::Result<Option<Side>> {
    if !present {
        return Ok(None);
    }
    let mode = i32::from(file.mode());
    let bytes = match mode {
        flat::SUBMODULE => format!("Subproject commit {}\n", file.id()).into_bytes(),
        _ => vault.find_blob(file.id())?.content().to_vec(),
    };
    Ok(Some(Side {
        mode,
        id: file.id(),
        bytes,
    }))
}
