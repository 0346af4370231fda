//! Relative paths and globs as people write them in task files.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

/// Checks that `path` is relative, with forward slashes, and stays in its folder.
///
/// # Errors
/// In words that complete "FIELD: …".
pub(super) fn inside(path: &str) -> Result<(), String> {
    let problem = if path.is_empty() {
        "the path is empty"
    } else if path.starts_with('/') || path.contains('\\') || path.get(1..2) == Some(":") {
        "is not a relative path with forward slashes"
    } else if path.split('/').any(|part| part == "..") {
        "leaves its folder; `..` is not allowed"
    } else if path.split('/').any(|part| part.is_empty() || part == ".") {
        "holds an empty or `.` part; write it without"
    } else if path
        .split('/')
        .any(|part| part.eq_ignore_ascii_case(".git"))
    {
        "reaches into `.git`, which belongs to flashrig"
    } else {
        return Ok(());
    };
    Err(if path.is_empty() {
        problem.to_owned()
    } else {
        format!("`{path}` {problem}")
    })
}

/// Reads one glob. `*` stays within a folder, `**` crosses folders.
///
/// # Errors
/// In words that complete "FIELD: …".
pub(super) fn glob(text: &str) -> Result<Glob, String> {
    if text.starts_with('/') || text.split('/').any(|part| part == "..") {
        return Err(format!("the glob `{text}` leaves its folder"));
    }
    GlobBuilder::new(text)
        .literal_separator(true)
        .build()
        .map_err(|e| format!("`{text}` is not a glob: {}", e.kind()))
}

/// Joins globs into one set.
///
/// # Errors
/// When the set gets too large to compile.
pub(super) fn glob_set(globs: impl IntoIterator<Item = Glob>) -> Result<GlobSet, String> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(glob);
    }
    set.build()
        .map_err(|e| format!("the globs cannot be compiled: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_must_stay_in_its_folder() {
        for path in ["a", "a/b.rs", "..a/b", ".cargo/config.toml", ".gitignore"] {
            assert_eq!(inside(path), Ok(()), "{path}");
        }
        for path in [
            "",
            "/a",
            "../a",
            "a/../../b",
            "a//b",
            "./a",
            "a/",
            "C:/a",
            "a\\b",
            ".git/config",
        ] {
            assert!(inside(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_star_stays_within_a_folder() {
        let matches = |g: &str, path: &str| glob(g).unwrap().compile_matcher().is_match(path);
        assert!(matches("src/*.rs", "src/a.rs"));
        assert!(!matches("src/*.rs", "src/b/a.rs"));
        assert!(matches("tests/**", "tests/b/a.rs"));
        assert!(matches(".cargo/**", ".cargo/config.toml"));
        assert!(!matches("tests/**", "src/tests/a.rs"));
    }
}
