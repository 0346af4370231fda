//! Paths as git sees them: bytes with forward slashes, which need not be UTF-8.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The path that these bytes name.
pub fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// `folder/name`, or `name` at the top.
pub(super) fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(folder.len() + 1 + name.len());
    if !folder.is_empty() {
        path.extend_from_slice(folder);
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// The path for people and for patch headers: as it is when it is plain text, else quoted as git
/// quotes it, with octal escapes.
pub(crate) fn shown(path: &[u8]) -> Cow<'_, str> {
    prefixed("", path)
}

/// The same for `prefix` and path together, since git puts the prefix inside the quotes.
pub(super) fn prefixed<'a>(prefix: &str, path: &'a [u8]) -> Cow<'a, str> {
    let plain = std::str::from_utf8(path)
        .ok()
        .filter(|text| !text.contains(|c: char| c.is_control() || c == '"' || c == '\\'));
    match plain {
        Some(text) if prefix.is_empty() => Cow::Borrowed(text),
        Some(text) => Cow::Owned(format!("{prefix}{text}")),
        None => Cow::Owned(quoted(prefix, path)),
    }
}

/// The same, in quotes even when the path is plain.
pub(super) fn quoted(prefix: &str, path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len() + 8);
    out.push('"');
    out.push_str(prefix);
    for &byte in path {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            0x20..=0x7e => out.push(char::from(byte)),
            _ => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out.push('"');
    out
}

/// Whether a single name may become a file in a folder of ours: not empty, no way up, no slash,
/// and no spelling of `.git`.
pub fn is_safe_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name != b"."
        && name != b".."
        && !name.eq_ignore_ascii_case(b".git")
        && !name.contains(&b'/')
        && !name.contains(&0)
}

/// Whether every part of a relative path is a safe name.
pub fn is_safe(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').all(is_safe_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_paths_are_shown_as_they_are() {
        assert_eq!(shown(b"src/main.rs"), "src/main.rs");
        assert_eq!(
            shown("docs/übersicht 1.md".as_bytes()),
            "docs/übersicht 1.md"
        );
    }

    #[test]
    fn hostile_paths_are_quoted_as_git_quotes_them() {
        assert_eq!(shown(b"a\nb\"c\\d\xff"), r#""a\nb\"c\\d\377""#);
        assert_eq!(prefixed("a/", b"x\ty"), r#""a/x\ty""#);
    }

    #[test]
    fn ways_out_and_git_folders_are_not_safe() {
        for path in [
            "",
            "/etc/passwd",
            "a/../b",
            "..",
            "a//b",
            ".git/config",
            "a/.GIT/x",
            "a/",
        ] {
            assert!(!is_safe(path.as_bytes()), "{path:?}");
        }
        assert!(is_safe(b"a/.gitignore"));
        assert!(is_safe(b"a/b..c"));
    }
}
