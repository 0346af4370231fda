//! Whatever an agent makes of a tree, the patch's text brings the tree back.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;

use crate::workspace_support::{Yard, commit, file, fixture, git, git_output};

type Files = BTreeMap<String, String>;

/// Few names and few different lines, so that edits, moves of lines and clashes between files and
/// folders are likely.
fn files() -> impl Strategy<Value = Files> {
    let name = prop::sample::select(vec!["a", "b c", "d/e", "d/f g", "a.b", "h\"i", "ü"]);
    let line = prop::sample::select(vec![
        "",
        "x",
        "y",
        "  z",
        "-- ",
        "@@ -1 +1 @@",
        "\\ no",
        "w\r",
    ]);
    let text = (prop::collection::vec(line, 0..12), any::<bool>()).prop_map(|(lines, ended)| {
        let text = lines.join("\n");
        if ended && !lines.is_empty() {
            text + "\n"
        } else {
            text
        }
    });
    prop::collection::btree_map(name.prop_map(str::to_owned), text, 1..6)
}

fn write_all(folder: &Path, files: &Files) {
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn clear(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }
}

fn yard(before: &Files) -> Yard {
    let files = before.iter().map(|(path, text)| file(path, text)).collect();
    Yard::new(&fixture(vec![commit("x", files)]))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_text_of_a_patch_brings_back_its_tree(before in files(), after in files()) {
        let yard = yard(&before);
        let ws = yard.workspace("ws");
        clear(&ws);
        write_all(&ws, &after);
        let patch = yard.base.patch(&ws).unwrap();
        let again = yard.base.tree_with_patch(&patch.text).unwrap();
        prop_assert_eq!(&again, &patch, "{}", patch.text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..Default::default() })]

    #[test]
    fn patches_go_back_and_forth_between_git_and_this(before in files(), after in files()) {
        let yard = yard(&before);
        let ws = yard.workspace("ws");
        for path in before.keys() {
            fs::remove_file(ws.join(path)).unwrap();
        }
        fs::remove_dir(ws.join("d")).ok();
        write_all(&ws, &after);
        let patch = yard.base.patch(&ws).unwrap();

        git(&ws, &["add", "-A"]);
        prop_assert_eq!(&git(&ws, &["write-tree"]), &patch.tree);
        let theirs = git_output(&ws, &["diff", "--cached"]).stdout;
        let theirs = String::from_utf8(theirs).unwrap();
        prop_assert_eq!(&yard.base.tree_with_patch(&theirs).unwrap(), &patch, "{}", theirs);

        if !patch.is_empty() {
            fs::write(yard.path("text.patch"), &patch.text).unwrap();
            git(&ws, &["reset", "-q", "--hard"]);
            let apply = ["apply", "--index", "--whitespace=nowarn", "../text.patch"];
            let output = git_output(&ws, &apply);
            prop_assert!(output.status.success(), "{:?}\n{}", output, patch.text);
            prop_assert_eq!(&git(&ws, &["write-tree"]), &patch.tree);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_damaged_diff_is_an_error_or_a_patch_but_never_a_crash(
        before in files(),
        after in files(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..12), 1..6),
    ) {
        let yard = yard(&before);
        write_all(&yard.path("other"), &after);
        let text = yard.base.patch(&yard.path("other")).unwrap().text;
        let mut chars: Vec<char> = text.chars().collect();
        for (at, length) in cuts {
            if !chars.is_empty() {
                let at = at.index(chars.len());
                chars.drain(at..(at + length).min(chars.len()));
            }
        }
        let damaged: String = chars.into_iter().collect();
        if let Ok(patch) = yard.base.tree_with_patch(&damaged) {
            prop_assert!(patch.files as usize <= before.len() + after.len() + 2);
        }
    }
}
