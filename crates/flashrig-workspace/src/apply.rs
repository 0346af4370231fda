//! Applying a unified diff to a tree, without any working folder.
//!
//! libgit2's own reader refuses diffs that `git diff` writes (empty files, names with spaces) and
//! names no file in its errors, so patches are read in `unified.rs` and applied here, strictly:
//! every hunk must stand where it says.

use anyhow::{Context as _, bail};
use git2::{Oid, Repository};

use super::flat::{self, EXECUTABLE, Entry, FILE, Flat, LINK};
use super::paths;
use super::unified::{self, FilePatch, Hunk, Sign};

/// Applies the diff to the tree `base` and returns the new tree.
pub(super) fn apply(vault: &Repository, base: Oid, text: &str) -> anyhow::Result<Oid> {
    if text.trim().is_empty() {
        return Ok(base);
    }
    let patches = unified::parse(text)?;
    if patches.is_empty() {
        bail!("it holds no change; write it with `git diff`");
    }
    let mut files = flat::read(vault, base)?;
    for patch in &patches {
        one(vault, &mut files, patch)
            .with_context(|| format!("the change of {} does not apply", patch.name()))?;
    }
    flat::write(vault, &files)
}

fn one(vault: &Repository, files: &mut Flat, patch: &FilePatch) -> anyhow::Result<()> {
    let before = match &patch.old {
        Some(path) => Some(*files.get(path).with_context(|| {
            format!(
                "{} is not in the tree; write the patch anew",
                paths::shown(path)
            )
        })?),
        None => None,
    };
    let old = match before {
        Some(entry) => vault
            .find_blob(entry.id)
            .context("it is not a file")?
            .content()
            .to_vec(),
        None => Vec::new(),
    };
    let new = patched(&old, &patch.hunks)?;
    if let (Some(path), false) = (&patch.old, patch.keeps_old) {
        files.remove(path);
    }
    match &patch.new {
        Some(path) => {
            if !paths::is_safe(path) {
                bail!("{} would land outside the tree", paths::shown(path));
            }
            if files.contains_key(path) {
                bail!("{} is in the tree already", paths::shown(path));
            }
            let mode = patch
                .new_mode
                .or(before.map(|entry| entry.mode))
                .unwrap_or(FILE);
            if ![FILE, EXECUTABLE, LINK].contains(&mode) {
                bail!("mode {mode:06o} is neither a file's nor a link's");
            }
            let id = vault.blob(&new).context("cannot store it in the vault")?;
            files.insert(path.clone(), Entry { mode, id });
        }
        None if !new.is_empty() => bail!("it deletes the file but not all of its lines"),
        None => {}
    }
    Ok(())
}

/// The content after all hunks.
fn patched(old: &[u8], hunks: &[Hunk<'_>]) -> anyhow::Result<Vec<u8>> {
    let lines: Vec<&[u8]> = old.split_inclusive(|byte| *byte == b'\n').collect();
    let mut new = Vec::with_capacity(old.len());
    let mut at = 0;
    for hunk in hunks {
        let unchanged = lines
            .get(at..hunk.old_start)
            .with_context(|| format!("hunk {} lies outside the file", hunk.header))?;
        new.extend(unchanged.concat());
        at = hunk.old_start;
        for line in &hunk.lines {
            if line.sign == Sign::Added {
                new.extend_from_slice(line.bytes);
                continue;
            }
            let found = lines.get(at).copied().unwrap_or_default();
            if found != line.bytes {
                bail!(
                    "hunk {} expects {:?} at line {} but {:?} is there; write the patch anew",
                    hunk.header,
                    String::from_utf8_lossy(line.bytes),
                    at + 1,
                    String::from_utf8_lossy(found),
                );
            }
            if line.sign == Sign::Context {
                new.extend_from_slice(line.bytes);
            }
            at += 1;
        }
    }
    new.extend(lines[at..].concat());
    Ok(new)
}
