//! The text of a patch: what real git makes of it, and what this makes of real git's.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use flashrig_record::{ChangeKind, ChangedFile};
use flashrig_workspace::Patch;

use crate::workspace_support::{Yard, commit, file, fixture, git, git_output, sample};

#[cfg(target_os = "linux")]
#[test]
fn hostile_names_neither_break_the_patch_nor_its_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let yard = Yard::new(&sample());
    let ws = yard.workspace("ws");
    let names: [&[u8]; 12] = [
        b"new\nline",
        b"tab\there",
        b"quo\"te",
        b"back\\slash",
        b"-rf",
        b"a b ",
        b"\xff\xfe",
        "ünï".as_bytes(),
        b"* glob [x]",
        b"$(echo no)",
        b"b/../c".split_at(1).0,
        b"CON.",
    ];
    for name in names {
        fs::write(ws.join(OsStr::from_bytes(name)), "x\n").unwrap();
    }
    fs::create_dir(ws.join(OsStr::from_bytes(b"dir\xff"))).unwrap();
    fs::write(ws.join(OsStr::from_bytes(b"dir\xff/in side")), "y\n").unwrap();
    let patch = yard.base.patch(&ws).unwrap();
    assert_eq!(patch.files, 13);
    assert!(
        patch
            .changed
            .iter()
            .any(|file| file.path == r#""\377\376""#)
    );
    assert_eq!(applied(&yard, &patch), patch.tree);
}

/// Applies the patch's text to a fresh workspace with real git; the tree that gives.
fn applied(yard: &Yard, patch: &Patch) -> String {
    let ws = yard.path("applied");
    if ws.exists() {
        fs::remove_dir_all(&ws).unwrap();
    }
    yard.base.copy_to(&ws).unwrap();
    fs::write(yard.path("text.patch"), &patch.text).unwrap();
    let output = git_output(
        &ws,
        &["apply", "--index", "--whitespace=nowarn", "../text.patch"],
    );
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}\n{}", patch.text);
    git(&ws, &["write-tree"])
}

#[test]
fn git_apply_of_the_text_gives_the_agents_tree() {
    let base = vec![
        file("crlf", "a\r\nb\r\nc\r\n"),
        file("cr", "a\rb\rc\n"),
        file("bare", "no newline"),
        file("ended", "x\ny\n"),
        file("spa ce/f ile", "1\n2\n3\n"),
        file("gone", "bye\n"),
        file("gone empty", ""),
        file("script", "#!/bin/sh\n"),
        file("to-link", "text\n"),
        file("dup", "same\n".repeat(50)),
    ];
    let yard = Yard::new(&fixture(vec![commit("x", base)]));
    let ws = yard.workspace("ws");
    let write = |path: &str, text: &str| fs::write(ws.join(path), text).unwrap();
    write("crlf", "a\r\nB\r\nc\n");
    write("cr", "a\rB\rc\n");
    write("bare", "no newline, still");
    write("ended", "x\ny");
    write("spa ce/f ile", "1\n2\n3\n4\n");
    write("spa ce/n ew", "n\n");
    write("new empty", "");
    write("new bare", "z");
    write("script", "#!/bin/sh\nexit\n");
    write(
        "dup",
        &format!("{}x\n{}", "same\n".repeat(20), "same\n".repeat(31)),
    );
    write("form\u{b}feed", "a\u{c}b\u{85}c\u{2028}d\n");
    fs::set_permissions(ws.join("script"), fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["gone", "gone empty", "to-link"] {
        fs::remove_file(ws.join(name)).unwrap();
    }
    symlink("ended", ws.join("to-link")).unwrap();
    let patch = yard.base.patch(&ws).unwrap();
    assert_eq!(patch.files, 14);
    assert_eq!(applied(&yard, &patch), patch.tree);
    assert_eq!(yard.base.tree_with_patch(&patch.text).unwrap(), patch);
}

#[test]
fn a_mode_change_alone_is_a_change() {
    let yard = Yard::new(&sample());
    let ws = yard.workspace("ws");
    fs::set_permissions(ws.join("README.md"), fs::Permissions::from_mode(0o755)).unwrap();
    let patch = yard.base.patch(&ws).unwrap();
    let expected = ChangedFile {
        path: "README.md".into(),
        kind: ChangeKind::Modified,
        insertions: 0,
        deletions: 0,
        binary: false,
    };
    assert_eq!(patch.changed, [expected]);
    assert_eq!(applied(&yard, &patch), patch.tree);
}

#[test]
fn text_in_another_encoding_is_named_and_not_mangled() {
    let yard = Yard::new(&sample());
    let ws = yard.workspace("ws");
    fs::write(ws.join("latin1.txt"), b"gr\xfc\xdfe\n").unwrap();
    let patch = yard.base.patch(&ws).unwrap();
    assert!(patch.changed[0].binary);
    assert_eq!(patch.insertions, 1);
    assert!(
        patch
            .text
            .ends_with("Binary files /dev/null and b/latin1.txt differ\n"),
        "{}",
        patch.text
    );
}

#[test]
fn a_patch_that_does_not_apply_says_so() {
    let yard = Yard::new(&sample());
    for (text, message) in [
        ("no diff at all\n", "no"),
        (
            "diff --git a/README.md b/README.md\n--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-other\n+new\n",
            "does not apply",
        ),
        (
            "diff --git a/absent b/absent\n--- a/absent\n+++ b/absent\n@@ -1 +1 @@\n-other\n+new\n",
            "does not apply",
        ),
    ] {
        let error = format!("{:#}", yard.base.tree_with_patch(text).unwrap_err());
        assert!(error.contains(message), "{error}");
    }
    assert!(yard.base.tree_with_patch("\n").unwrap().is_empty());
}
