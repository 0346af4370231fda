//! Mixing the agent's tree with what it had no say in. Pure.

use anyhow::bail;
use globset::GlobSet;

use flashrig_workspace::{Entry, Flat, is_safe_path, path_of};

/// The tree to be judged.
pub(super) struct Restored {
    pub(super) files: Flat,
    /// Protected paths whose entry differs between base and agent.
    pub(super) touched: Vec<Vec<u8>>,
    /// Paths of hidden files that the agent had something else at.
    pub(super) overwritten: Vec<Vec<u8>>,
}

/// The agent's files, but with every protected path as in `base` (absent when absent there), and
/// the hidden files over all.
pub(super) fn restore(
    base: &Flat,
    agent: &Flat,
    protected: &GlobSet,
    hidden: &[(Vec<u8>, Entry)],
) -> anyhow::Result<Restored> {
    let is_protected = |path: &[u8]| protected.is_match(path_of(path));
    let mut files = agent.clone();
    let mut touched = Vec::new();

    files.retain(|path, entry| {
        let before = base.get(path);
        let keep = before == Some(entry) || !is_protected(path);
        if !keep {
            touched.push(path.clone());
        }
        keep
    });
    for (path, entry) in base.iter().filter(|(path, _)| is_protected(path)) {
        if agent.get(path) != Some(entry) {
            place(&mut files, path, *entry);
            touched.push(path.clone());
        }
    }
    touched.sort();
    touched.dedup();

    let mut overwritten = Vec::new();
    for (path, entry) in hidden {
        if !is_safe_path(path) {
            bail!(
                "hidden file {:?} would land outside the tree",
                String::from_utf8_lossy(path)
            );
        }
        if agent
            .get(path)
            .is_some_and(|there| there != entry && base.get(path) != Some(there))
        {
            overwritten.push(path.clone());
        }
        place(&mut files, path, *entry);
    }
    Ok(Restored {
        files,
        touched,
        overwritten,
    })
}

/// Puts an entry at `path`, clearing whatever stands in its way: a file or link where it needs a
/// folder, or a folder in its own place.
fn place(files: &mut Flat, path: &[u8], entry: Entry) {
    for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
        files.remove(&path[..at]);
    }
    let mut below = path.to_vec();
    below.push(b'/');
    let inside: Vec<_> = files
        .range(below.clone()..)
        .take_while(|(other, _)| other.starts_with(&below))
        .map(|(other, _)| other.clone())
        .collect();
    for other in inside {
        files.remove(&other);
    }
    files.insert(path.to_vec(), entry);
}

#[cfg(test)]
mod tests {
    use globset::{Glob, GlobSetBuilder};

    use super::*;

    fn entry(byte: u8) -> Entry {
        Entry::file(git2::Oid::from_bytes(&[byte; 20]).unwrap())
    }

    fn flat(list: &[(&str, u8)]) -> Flat {
        list.iter()
            .map(|(path, byte)| (path.as_bytes().to_vec(), entry(*byte)))
            .collect()
    }

    fn tests_protected() -> GlobSet {
        GlobSetBuilder::new()
            .add(Glob::new("tests/**").unwrap())
            .build()
            .unwrap()
    }

    fn text(paths: &[Vec<u8>]) -> Vec<String> {
        paths
            .iter()
            .map(|p| String::from_utf8_lossy(p).into_owned())
            .collect()
    }

    #[test]
    fn protected_files_come_from_the_base_and_others_from_the_agent() {
        let base = flat(&[("src/a", 1), ("tests/a", 2), ("tests/b", 3)]);
        let agent = flat(&[("src/a", 9), ("tests/a", 8), ("tests/new", 7)]);
        let restored = restore(&base, &agent, &tests_protected(), &[]).unwrap();
        assert_eq!(
            restored.files,
            flat(&[("src/a", 9), ("tests/a", 2), ("tests/b", 3)])
        );
        assert_eq!(text(&restored.touched), ["tests/a", "tests/b", "tests/new"]);
    }

    #[test]
    fn a_link_in_place_of_a_protected_folder_gives_way_to_the_folder() {
        let base = flat(&[("tests/a", 2)]);
        let agent = flat(&[("tests", 5), ("tests.txt", 6)]);
        let restored = restore(&base, &agent, &tests_protected(), &[]).unwrap();
        assert_eq!(restored.files, flat(&[("tests/a", 2), ("tests.txt", 6)]));
        assert_eq!(text(&restored.touched), ["tests/a"]);
    }

    #[test]
    fn a_folder_in_place_of_a_hidden_file_gives_way_to_the_file() {
        let agent = flat(&[("h/x/y", 1), ("h/xy", 2)]);
        let hidden = [(b"h/x".to_vec(), entry(3))];
        let restored = restore(&Flat::new(), &agent, &GlobSet::empty(), &hidden).unwrap();
        assert_eq!(restored.files, flat(&[("h/x", 3), ("h/xy", 2)]));
    }

    #[test]
    fn a_hidden_file_that_the_agent_wrote_first_is_replaced_and_reported() {
        let agent = flat(&[("h", 1)]);
        let hidden = [(b"h".to_vec(), entry(3))];
        let restored = restore(&Flat::new(), &agent, &GlobSet::empty(), &hidden).unwrap();
        assert_eq!(restored.files, flat(&[("h", 3)]));
        assert_eq!(text(&restored.overwritten), ["h"]);
    }

    #[test]
    fn a_hidden_file_outside_the_tree_is_refused() {
        let hidden = [(b"../x".to_vec(), entry(3))];
        assert!(restore(&Flat::new(), &Flat::new(), &GlobSet::empty(), &hidden).is_err());
    }
}
