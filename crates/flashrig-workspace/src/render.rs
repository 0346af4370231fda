//! Unified diffs as git writes them, rendered with `similar`. Pure.

use std::fmt::Write as _;

use git2::Oid;
use similar::udiff::UnifiedHunkHeader;
use similar::{Algorithm, ChangeTag, DiffOp, capture_diff_slices, group_diff_ops};

use super::flat::LINK;
use super::paths;

/// Unchanged lines shown around a change.
const CONTEXT_LINES: usize = 3;

/// One side of a changed file.
pub(super) struct Side {
    pub(super) mode: i32,
    pub(super) id: Oid,
    pub(super) bytes: Vec<u8>,
}

impl Side {
    /// The content, when it can stand in a text.
    pub(super) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok()
    }
}

/// Appends what happened to one file.
pub(super) fn file(
    out: &mut String,
    path: &[u8],
    old: Option<&Side>,
    new: Option<&Side>,
    binary: bool,
) {
    if let (Some(before), Some(after)) = (old, new)
        && (before.mode == LINK) != (after.mode == LINK)
    {
        // As git has it: a link is not a version of a file.
        section(out, path, old, None, binary);
        section(out, path, None, new, binary);
    } else {
        section(out, path, old, new, binary);
    }
}

fn section(out: &mut String, path: &[u8], old: Option<&Side>, new: Option<&Side>, binary: bool) {
    // Writing to a String cannot fail.
    let _ = write_section(out, path, old, new, binary);
}

fn write_section(
    out: &mut String,
    path: &[u8],
    old: Option<&Side>,
    new: Option<&Side>,
    binary: bool,
) -> std::fmt::Result {
    let contents = match (text(old), text(new), binary) {
        (Some(old), Some(new), false) => Some((lines(old), lines(new))),
        _ => None,
    };
    let (old_id, new_id) = (short(old), short(new));
    let has_hunks = old_id != new_id
        && contents
            .as_ref()
            .is_some_and(|(old, new)| !old.is_empty() || !new.is_empty());
    let (a, b) = (paths::prefixed("a/", path), paths::prefixed("b/", path));
    if path.contains(&b' ') && !has_hunks {
        // With no `---` line to settle it, some readers cannot tell where a bare name ends.
        writeln!(
            out,
            "diff --git {} {}",
            paths::quoted("a/", path),
            paths::quoted("b/", path)
        )?;
    } else {
        writeln!(out, "diff --git {a} {b}")?;
    }
    let mut index_mode = String::new();
    match (old, new) {
        (None, Some(new)) => writeln!(out, "new file mode {:06o}", new.mode)?,
        (Some(old), None) => writeln!(out, "deleted file mode {:06o}", old.mode)?,
        (Some(old), Some(new)) if old.mode != new.mode => {
            writeln!(out, "old mode {:06o}\nnew mode {:06o}", old.mode, new.mode)?;
        }
        (Some(old), _) => index_mode = format!(" {:06o}", old.mode),
        (None, None) => {}
    }
    if old_id == new_id {
        return Ok(());
    }
    writeln!(out, "index {old_id}..{new_id}{index_mode}")?;
    let none = "/dev/null";
    let (from, to) = (old.map_or(none, |_| &a), new.map_or(none, |_| &b));
    let Some((old, new)) = contents else {
        return writeln!(out, "Binary files {from} and {to} differ");
    };
    if !has_hunks {
        return Ok(());
    }
    writeln!(out, "--- {}\n+++ {}", header(from), header(to))?;
    let ops = capture_diff_slices(Algorithm::Myers, &old, &new);
    for hunk in group_diff_ops(ops, CONTEXT_LINES) {
        write_hunk(out, &hunk, &old, &new)?;
    }
    Ok(())
}

fn write_hunk(out: &mut String, hunk: &[DiffOp], old: &[&str], new: &[&str]) -> std::fmt::Result {
    writeln!(out, "{}", UnifiedHunkHeader::new(hunk))?;
    for change in hunk.iter().flat_map(|op| op.iter_changes(old, new)) {
        out.push(match change.tag() {
            ChangeTag::Equal => ' ',
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        });
        out.push_str(change.value());
        if !change.value().ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
    Ok(())
}

/// A name in a `---` or `+++` line: git ends one with a space in it by a tab, or readers of the
/// old format take the rest for a date.
fn header(name: &str) -> String {
    if name.contains(' ') && !name.starts_with('"') {
        format!("{name}\t")
    } else {
        name.to_owned()
    }
}

fn short(side: Option<&Side>) -> String {
    let mut id = side.map_or_else(|| "0".repeat(40), |side| side.id.to_string());
    id.truncate(10);
    id
}

fn text(side: Option<&Side>) -> Option<&str> {
    side.map_or(Some(""), Side::text)
}

/// Lines with their ends. Only `\n` ends a line, as in git; `similar` would also split at `\r`.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}
