//! Reading unified diffs as `git diff` and `git format-patch` write them. Pure.

use anyhow::{Context as _, anyhow, bail};

use super::error::WorkspaceError;
use super::paths;

/// What a diff does to one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FilePatch<'a> {
    /// Path before; `None` for a new file.
    pub(super) old: Option<Vec<u8>>,
    /// Path after; `None` for a deleted file.
    pub(super) new: Option<Vec<u8>>,
    /// Mode after, when the diff states one.
    pub(super) new_mode: Option<i32>,
    /// Whether the old file stays beside the new one (a copy).
    pub(super) keeps_old: bool,
    pub(super) hunks: Vec<Hunk<'a>>,
}

/// A run of lines, and where it stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hunk<'a> {
    /// Its `@@` part, for messages.
    pub(super) header: &'a str,
    /// Lines of the old file before it.
    pub(super) old_start: usize,
    pub(super) lines: Vec<Line<'a>>,
}

/// One line of a hunk, with its end if it has one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) sign: Sign,
    pub(super) bytes: &'a [u8],
}

/// What becomes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Context,
    Removed,
    Added,
}

impl FilePatch<'_> {
    /// The file's path for messages.
    pub(super) fn name(&self) -> String {
        let path = self.new.as_ref().or(self.old.as_ref());
        path.map_or_else(String::new, |path| paths::shown(path).into_owned())
    }
}

type Lines<'a> = std::iter::Peekable<std::iter::Enumerate<std::str::SplitInclusive<'a, char>>>;

/// Reads all files of a diff. Text before the first and after the last is passed over.
pub(super) fn parse(text: &str) -> anyhow::Result<Vec<FilePatch<'_>>> {
    let mut lines: Lines<'_> = text.split_inclusive('\n').enumerate().peekable();
    let mut patches = Vec::new();
    while let Some((number, line)) = lines.next() {
        let patch = if let Some(names) = line.strip_prefix("diff --git ") {
            extended(names.trim_end_matches('\n'), &mut lines)
        } else if line.starts_with("--- ") && next_starts_with(&mut lines, "+++ ") {
            let mut patch = FilePatch::default();
            old_and_new(&mut patch, line, &mut lines).map(|()| patch)
        } else if line.starts_with("@@ -") {
            Err(anyhow!("a hunk stands without the file that it belongs to"))
        } else {
            continue;
        };
        let with_hunks = patch.and_then(|mut patch| {
            while next_starts_with(&mut lines, "@@ -") {
                if let Some((_, header)) = lines.next() {
                    patch.hunks.push(hunk(header.trim_end(), &mut lines)?);
                }
            }
            Ok(patch)
        });
        let patch =
            with_hunks.with_context(|| format!("not a valid diff, at line {}", number + 1))?;
        patches.push(patch);
    }
    Ok(patches)
}

/// The number of files that a unified diff changes, with or without the `diff --git` lines of git.
///
/// # Errors
/// The text is not a diff that can be applied; says where and why.
pub fn patched_files(text: &str) -> Result<usize, WorkspaceError> {
    Ok(parse(text).map_err(WorkspaceError::patch)?.len())
}

fn next_starts_with(lines: &mut Lines<'_>, prefix: &str) -> bool {
    lines
        .peek()
        .is_some_and(|(_, line)| line.starts_with(prefix))
}

/// The lines between `diff --git` and the first hunk.
fn extended<'a>(names: &str, lines: &mut Lines<'a>) -> anyhow::Result<FilePatch<'a>> {
    let mut patch = FilePatch::default();
    let (mut is_new, mut is_deleted, mut named) = (false, false, false);
    while let Some((_, line)) = lines.next_if(|(_, line)| is_header(line)) {
        let bare = line.trim_end_matches('\n');
        if let Some(mode) = bare.strip_prefix("new file mode ") {
            (is_new, patch.new_mode) = (true, Some(octal(mode)?));
        } else if let Some(mode) = bare.strip_prefix("new mode ") {
            patch.new_mode = Some(octal(mode)?);
        } else if bare.starts_with("deleted file mode ") {
            is_deleted = true;
        } else if let Some(path) = bare.strip_prefix("rename from ") {
            patch.old = Some(whole_name(path)?);
            named = true;
        } else if let Some(path) = bare.strip_prefix("copy from ") {
            patch.old = Some(whole_name(path)?);
            (named, patch.keeps_old) = (true, true);
        } else if let Some(path) = bare
            .strip_prefix("rename to ")
            .or_else(|| bare.strip_prefix("copy to "))
        {
            patch.new = Some(whole_name(path)?);
        } else if bare.starts_with("--- ") {
            let mut plain = FilePatch::default();
            old_and_new(&mut plain, line, lines)?;
            if !named {
                (patch.old, patch.new, named) = (plain.old, plain.new, true);
            }
            break;
        } else if bare.starts_with("GIT binary patch") || bare.starts_with("Binary files ") {
            bail!("{names} is binary; only text can be patched");
        }
    }
    if !named {
        let path = doubled(names)?;
        patch.old = (!is_new).then(|| path.clone());
        patch.new = (!is_deleted).then_some(path);
    }
    if patch.old.is_some() == is_new || patch.new.is_some() == is_deleted {
        bail!("the header of {names} contradicts itself");
    }
    Ok(patch)
}

fn is_header(line: &str) -> bool {
    const KNOWN: [&str; 15] = [
        "old mode ",
        "new mode ",
        "new file mode ",
        "deleted file mode ",
        "index ",
        "similarity ",
        "dissimilarity ",
        "rename from ",
        "rename to ",
        "copy from ",
        "copy to ",
        "--- ",
        "GIT binary patch",
        "Binary files ",
        "+++ ",
    ];
    KNOWN.iter().any(|known| line.starts_with(known))
}

fn old_and_new(patch: &mut FilePatch<'_>, old: &str, lines: &mut Lines<'_>) -> anyhow::Result<()> {
    let (_, new) = lines
        .next_if(|(_, line)| line.starts_with("+++ "))
        .context("a line with --- has none with +++ after it")?;
    patch.old = side(&old[4..])?;
    patch.new = side(&new[4..])?;
    if patch.old.is_none() && patch.new.is_none() {
        bail!("both sides are /dev/null");
    }
    Ok(())
}

/// A name of a `---` or `+++` line: `None` for `/dev/null`.
fn side(text: &str) -> anyhow::Result<Option<Vec<u8>>> {
    let text = text.trim_end_matches('\n');
    let name = match text.starts_with('"') {
        true => unquoted(text)?.0,
        // After a tab comes a date, or nothing.
        false => text
            .split('\t')
            .next()
            .unwrap_or_default()
            .as_bytes()
            .to_vec(),
    };
    if name == b"/dev/null" {
        Ok(None)
    } else {
        without_prefix(&name).map(Some)
    }
}

fn whole_name(text: &str) -> anyhow::Result<Vec<u8>> {
    if text.starts_with('"') {
        Ok(unquoted(text)?.0)
    } else {
        Ok(text.as_bytes().to_vec())
    }
}

/// The one path of a `diff --git a/PATH b/PATH` line, which may hold spaces.
fn doubled(names: &str) -> anyhow::Result<Vec<u8>> {
    let problem = || anyhow!("the names in {names:?} are not the same file");
    let (old, new) = if names.starts_with('"') {
        let (old, rest) = unquoted(names)?;
        (old, whole_name(rest.trim_start())?)
    } else {
        let (old, new) = names
            .split_at_checked(names.len() / 2)
            .ok_or_else(problem)?;
        let new = new.strip_prefix(' ').ok_or_else(problem)?;
        (old.as_bytes().to_vec(), new.as_bytes().to_vec())
    };
    let (old, new) = (without_prefix(&old)?, without_prefix(&new)?);
    if old == new { Ok(old) } else { Err(problem()) }
}

/// Takes off the `a/` or `b/`.
fn without_prefix(name: &[u8]) -> anyhow::Result<Vec<u8>> {
    let slash = name.iter().position(|byte| *byte == b'/');
    let slash = slash.with_context(|| {
        format!(
            "{:?} lacks the a/ or b/ that git writes",
            String::from_utf8_lossy(name)
        )
    })?;
    Ok(name[slash + 1..].to_vec())
}

/// Reads a quoted name; returns it and what follows.
fn unquoted(text: &str) -> anyhow::Result<(Vec<u8>, &str)> {
    let problem = || anyhow!("the quoted name in {text:?} has no end");
    let mut name = Vec::new();
    let mut bytes = text.bytes().enumerate().skip(1);
    loop {
        let (at, byte) = bytes.next().ok_or_else(problem)?;
        match byte {
            b'"' => return Ok((name, &text[at + 1..])),
            b'\\' => {
                let (_, escaped) = bytes.next().ok_or_else(problem)?;
                name.push(match escaped {
                    b'a' => 7,
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 11,
                    b'f' => 12,
                    b'r' => b'\r',
                    b'0'..=b'3' => {
                        let mut value = escaped - b'0';
                        for _ in 0..2 {
                            let (_, digit) = bytes.next().ok_or_else(problem)?;
                            value = value * 8 + (digit & 7);
                        }
                        value
                    }
                    other => other,
                });
            }
            other => name.push(other),
        }
    }
}

fn octal(text: &str) -> anyhow::Result<i32> {
    i32::from_str_radix(text.trim(), 8).map_err(|_| anyhow!("{text:?} is not a file mode"))
}

fn hunk<'a>(header: &'a str, lines: &mut Lines<'a>) -> anyhow::Result<Hunk<'a>> {
    let problem = || anyhow!("{header:?} is not a hunk header");
    let end = header[3..].find(" @@").ok_or_else(problem)? + 3;
    let (old, new) = header[4..end].split_once(" +").ok_or_else(problem)?;
    let ((start, mut old_left), (_, mut new_left)) = (
        range(old).ok_or_else(problem)?,
        range(new).ok_or_else(problem)?,
    );
    let mut hunk = Hunk {
        header: &header[..end + 3],
        // A range without lines names the line before it.
        old_start: if old_left == 0 {
            start
        } else {
            start.saturating_sub(1)
        },
        lines: Vec::new(),
    };
    while old_left > 0 || new_left > 0 {
        let (_, line) = lines
            .next()
            .with_context(|| format!("hunk {} is cut off", hunk.header))?;
        let (sign, bytes) = match line.as_bytes() {
            [b' ', bytes @ ..] => (Sign::Context, bytes),
            [b'-', bytes @ ..] => (Sign::Removed, bytes),
            [b'+', bytes @ ..] => (Sign::Added, bytes),
            // Editors that strip spaces at line ends do this to an empty context line.
            bytes @ [b'\n'] => (Sign::Context, bytes),
            _ => bail!("hunk {} holds {line:?}, which has no sign", hunk.header),
        };
        let short = || format!("hunk {} holds more lines than its header says", hunk.header);
        if sign != Sign::Added {
            old_left = old_left.checked_sub(1).with_context(short)?;
        }
        if sign != Sign::Removed {
            new_left = new_left.checked_sub(1).with_context(short)?;
        }
        hunk.lines.push(Line { sign, bytes });
        if lines.next_if(|(_, line)| line.starts_with('\\')).is_some()
            && let Some(last) = hunk.lines.last_mut()
        {
            last.bytes = last.bytes.strip_suffix(b"\n").unwrap_or(last.bytes);
        }
    }
    Ok(hunk)
}

/// `START,COUNT` or `START`, of one line.
fn range(text: &str) -> Option<(usize, usize)> {
    match text.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_spaces_and_quotes_are_read() {
        assert_eq!(doubled("a/x y b/x y").unwrap(), b"x y");
        assert_eq!(doubled(r#""a/x\n\377" "b/x\n\377""#).unwrap(), b"x\n\xff");
        assert!(doubled("a/x b/y").is_err());
        assert_eq!(side("b/x y\t\n").unwrap(), Some(b"x y".to_vec()));
        assert_eq!(side("/dev/null\n").unwrap(), None);
    }

    #[test]
    fn renames_copies_and_mode_changes_are_read() {
        let text = "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n\
                    diff --git a/x b/z\nsimilarity index 100%\ncopy from x\ncopy to z\n\
                    diff --git a/s b/s\nold mode 100644\nnew mode 100755\n";
        let found = parse(text).unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|p| (p.old.as_deref(), p.new.as_deref()))
            .collect();
        assert_eq!(
            names,
            [
                (Some(&b"x"[..]), Some(&b"y"[..])),
                (Some(b"x"), Some(b"z")),
                (Some(b"s"), Some(b"s"))
            ]
        );
        assert_eq!([found[0].keeps_old, found[1].keeps_old], [false, true]);
        assert_eq!(found[2].new_mode, Some(0o100_755));
    }

    #[test]
    fn mail_around_the_diff_is_passed_over() {
        let text = "From 123\nSubject: x\n---\n a | 2 +-\n\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n\
                    @@ -1 +1 @@ fn x() {\n-old\n+new\n-- \n2.47.3\n";
        let found = parse(text).unwrap();
        assert_eq!((found.len(), found[0].hunks[0].lines.len()), (1, 2));
        assert_eq!(found[0].hunks[0].header, "@@ -1 +1 @@");
    }

    #[test]
    fn damaged_diffs_are_refused_with_the_line() {
        for text in [
            "diff --git a/a b/a\n--- a/a\n",
            "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1 @@\n-old\n",
            "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-old\n-older\n+new\n",
            "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -x +1 @@\n-old\n+new\n",
            "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\nold\n+new\n",
            "diff --git a/a b/a\nnew file mode 100644\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-old\n+new\n",
            "diff --git a/a b/a\nindex 1..2\nBinary files a/a and b/a differ\n",
            "diff --git a/a b/b\n",
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains("at line 1: "), "{text}: {error}");
        }
        assert!(parse("@@ -1 +1 @@\n").is_err());
    }
}
