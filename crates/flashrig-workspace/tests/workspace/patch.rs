//! Case H1: the patch is the same however the agent left its repository.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use flashrig_record::{ChangeKind, SkipReason};
use flashrig_workspace::{LARGEST_FILE_BYTES, Patch};

use crate::workspace_support::{Yard, commit, file, fixture, git, sample};

/// One honest piece of work: every kind of change, and build output that is ignored.
fn work(ws: &Path) {
    let main = fs::read_to_string(ws.join("src/main.rs")).unwrap();
    let main = main
        .replace("line 3\n", "line three\n")
        .replace("line 30\n", "");
    fs::write(ws.join("src/main.rs"), main).unwrap();
    fs::rename(ws.join("src/lib.rs"), ws.join("src/library.rs")).unwrap();
    fs::create_dir_all(ws.join("src/deep/er")).unwrap();
    fs::write(ws.join("src/deep/er/new.rs"), "fresh\n").unwrap();
    fs::remove_file(ws.join("README.md")).unwrap();
    fs::write(ws.join("keep.log"), "tracked and changed\n").unwrap();
    fs::write(ws.join("no-newline.txt"), "one\ntwo\nthree").unwrap();
    fs::write(ws.join("logo.bin"), b"\x00other").unwrap();
    fs::set_permissions(ws.join("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    symlink("no-newline.txt", ws.join("link")).unwrap();
    fs::write(ws.join("docs/kept.tmp"), "kept by the inner rule\n").unwrap();
    fs::create_dir_all(ws.join("target/debug")).unwrap();
    fs::write(ws.join("target/debug/out"), "built").unwrap();
    fs::write(ws.join("noise.log"), "ignored").unwrap();
    fs::write(ws.join("docs/x.tmp"), "ignored").unwrap();
    fs::create_dir(ws.join("hollow")).unwrap();
}

fn commit_all(ws: &Path) {
    git(ws, &["add", "-A"]);
    git(ws, &["commit", "-q", "-m", "work"]);
}

fn garble(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            garble(&path);
        } else {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            fs::write(&path, b"\xffgarbage").unwrap();
        }
    }
}

fn kinds(patch: &Patch) -> Vec<(&str, ChangeKind)> {
    patch
        .changed
        .iter()
        .map(|file| (file.path.as_str(), file.kind))
        .collect()
}

#[test]
fn the_patch_is_the_same_however_the_agent_left_its_repository() {
    type Way = (&'static str, fn(&Path));
    let ways: [Way; 17] = [
        ("left as it is", |_| {}),
        ("staged", |ws| _ = git(ws, &["add", "-A"])),
        ("half staged", |ws| _ = git(ws, &["add", "src"])),
        ("new files intended", |ws| _ = git(ws, &["add", "-N", "."])),
        ("committed", commit_all),
        ("committed on a branch", |ws| {
            git(ws, &["switch", "-q", "-c", "feature"]);
            commit_all(ws);
        }),
        ("committed without a branch", |ws| {
            git(ws, &["checkout", "-q", "--detach"]);
            commit_all(ws);
        }),
        ("history rewritten and collected", |ws| {
            git(ws, &["checkout", "-q", "--orphan", "fresh"]);
            commit_all(ws);
            git(ws, &["branch", "-D", "main"]);
            git(ws, &["reflog", "expire", "--expire=all", "--all"]);
            git(ws, &["gc", "-q", "--prune=now"]);
        }),
        ("everything untracked", |ws| {
            _ = git(ws, &["rm", "-r", "-q", "--cached", "."])
        }),
        ("reset to the first commit", |ws| {
            _ = git(ws, &["reset", "-q", "HEAD~1"])
        }),
        ("cleaned of ignored files", |ws| {
            _ = git(ws, &["clean", "-q", "-f", "-d", "-X"])
        }),
        ("stashed and popped", |ws| {
            git(ws, &["stash", "-q", "-u"]);
            git(ws, &["stash", "pop", "-q"]);
        }),
        ("reset hard and done again", |ws| {
            git(ws, &["add", "-A"]);
            git(ws, &["reset", "-q", "--hard"]);
            git(ws, &["clean", "-q", "-f", "-d", "-x"]);
            work(ws);
        }),
        ("new files hidden by private rules", |ws| {
            fs::create_dir_all(ws.join(".git/info")).unwrap();
            fs::write(ws.join(".git/info/exclude"), "*\n").unwrap();
            git(ws, &["config", "core.excludesFile", ".git/info/exclude"]);
            git(ws, &["config", "core.fileMode", "false"]);
            git(ws, &["update-index", "--assume-unchanged", "src/main.rs"]);
        }),
        (".git deleted", |ws| {
            fs::remove_dir_all(ws.join(".git")).unwrap()
        }),
        (".git garbled", |ws| garble(&ws.join(".git"))),
        ("a repository of its own inside", |ws| {
            git(&ws.join("src/deep"), &["init", "-q"]);
            fs::remove_dir_all(ws.join(".git")).unwrap();
            fs::write(ws.join(".git"), "gitdir: /nowhere\n").unwrap();
        }),
    ];
    let yard = Yard::new(&sample());
    let mut first: Option<Patch> = None;
    for (number, (name, leave)) in ways.into_iter().enumerate() {
        let ws = yard.workspace(&format!("ws{number}"));
        work(&ws);
        leave(&ws);
        let patch = yard.base.patch(&ws).unwrap();
        let first = first.get_or_insert_with(|| patch.clone());
        assert_eq!(first.text, patch.text, "{name}");
        assert_eq!(*first, patch, "{name}");
    }
    let patch = first.unwrap();
    use ChangeKind::{Added, Deleted, Modified};
    let expected = [
        ("README.md", Deleted),
        ("docs/kept.tmp", Added),
        ("keep.log", Modified),
        ("link", Added),
        ("logo.bin", Modified),
        ("no-newline.txt", Modified),
        ("run.sh", Modified),
        ("src/deep/er/new.rs", Added),
        ("src/lib.rs", Deleted),
        ("src/library.rs", Added),
        ("src/main.rs", Modified),
    ];
    assert_eq!(kinds(&patch), expected);
    assert_eq!((patch.files, patch.insertions, patch.deletions), (11, 9, 7));
    assert_eq!(patch.skipped, []);
    let logo = patch
        .changed
        .iter()
        .find(|file| file.path == "logo.bin")
        .unwrap();
    assert_eq!((logo.binary, logo.insertions), (true, 0));
    insta::assert_snapshot!("every_kind_of_change", patch.text);
}

#[test]
fn an_untouched_workspace_has_an_empty_patch() {
    let yard = Yard::new(&sample());
    let patch = yard.base.patch(&yard.workspace("ws")).unwrap();
    assert!(patch.is_empty() && patch.text.is_empty());
    assert_eq!(patch.tree, yard.base.base_tree());
}

#[test]
fn a_rewritten_gitignore_hides_nothing_and_shows_nothing() {
    let yard = Yard::new(&sample());
    let ws = yard.workspace("ws");
    work(&ws);
    let before = yard.base.patch(&ws).unwrap();
    for rules in ["*\n", "!*\n!target/\n", ""] {
        fs::write(ws.join(".gitignore"), rules).unwrap();
        fs::write(ws.join("src/.gitignore"), rules).unwrap();
        let after = yard.base.patch(&ws).unwrap();
        let others: Vec<_> = after
            .changed
            .iter()
            .filter(|file| !file.path.ends_with(".gitignore"))
            .collect();
        assert_eq!(
            others,
            before.changed.iter().collect::<Vec<_>>(),
            "{rules:?}"
        );
        assert_eq!(after.changed.len(), before.changed.len() + 2);
    }
}

#[test]
fn a_tracked_file_in_an_ignored_folder_counts() {
    let yard = Yard::new(&sample());
    let ws = yard.workspace("ws");
    fs::write(ws.join("target/pinned.txt"), "changed\n").unwrap();
    fs::write(ws.join("target/other.txt"), "ignored\n").unwrap();
    assert_eq!(
        kinds(&yard.base.patch(&ws).unwrap()),
        [("target/pinned.txt", ChangeKind::Modified)]
    );
    fs::remove_dir_all(ws.join("target")).unwrap();
    assert_eq!(
        kinds(&yard.base.patch(&ws).unwrap()),
        [("target/pinned.txt", ChangeKind::Deleted)]
    );
}

#[test]
fn files_and_folders_may_trade_places() {
    let yard = Yard::new(&sample());
    let ws = yard.workspace("ws");
    fs::remove_file(ws.join("README.md")).unwrap();
    fs::create_dir(ws.join("README.md")).unwrap();
    fs::write(ws.join("README.md/inner"), "x\n").unwrap();
    fs::remove_dir_all(ws.join("src")).unwrap();
    fs::write(ws.join("src"), "flat\n").unwrap();
    fs::remove_file(ws.join("run.sh")).unwrap();
    symlink("/bin/sh", ws.join("run.sh")).unwrap();
    let patch = yard.base.patch(&ws).unwrap();
    assert_eq!(
        kinds(&patch),
        [
            ("README.md", ChangeKind::Deleted),
            ("README.md/inner", ChangeKind::Added),
            ("run.sh", ChangeKind::TypeChanged),
            ("src", ChangeKind::Added),
            ("src/lib.rs", ChangeKind::Deleted),
            ("src/main.rs", ChangeKind::Deleted),
        ]
    );
    let out = yard.path("out");
    yard.base.checkout(&patch.tree, &out).unwrap();
    assert_eq!(
        fs::read_to_string(out.join("README.md/inner")).unwrap(),
        "x\n"
    );
    assert_eq!(
        fs::read_link(out.join("run.sh")).unwrap(),
        Path::new("/bin/sh")
    );
}

#[test]
fn links_are_recorded_and_never_followed() {
    let yard = Yard::new(&sample());
    let outside = yard.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "s3cret\n").unwrap();
    let ws = yard.workspace("ws");
    symlink(&outside, ws.join("way-out")).unwrap();
    symlink("loop", ws.join("loop")).unwrap();
    fs::remove_dir_all(ws.join("docs")).unwrap();
    symlink(&outside, ws.join("docs")).unwrap();
    let patch = yard.base.patch(&ws).unwrap();
    assert!(!patch.text.contains("s3cret"), "{}", patch.text);
    assert!(patch.text.contains("new file mode 120000"));
    let added: Vec<_> = kinds(&patch)
        .into_iter()
        .filter(|(_, k)| *k == ChangeKind::Added)
        .collect();
    assert_eq!(added.len(), 3);
    // Nor is a link in the workspace's own place.
    fs::remove_dir_all(&ws).unwrap();
    symlink(&outside, &ws).unwrap();
    let patch = yard.base.patch(&ws).unwrap();
    assert_eq!(patch.files, 12);
    assert!(!patch.text.contains("s3cret"));
}

#[test]
fn a_workspace_that_is_gone_has_everything_deleted() {
    let yard = Yard::new(&sample());
    let patch = yard.base.patch(&yard.path("never")).unwrap();
    assert_eq!(patch.files, 12);
    assert!(
        patch
            .changed
            .iter()
            .all(|file| file.kind == ChangeKind::Deleted)
    );
}

#[test]
fn pipes_sockets_and_huge_files_are_listed_and_hang_nothing() {
    let yard = Yard::new(&sample());
    let ws = yard.workspace("ws");
    nix::unistd::mkfifo(&ws.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(ws.join("socket")).unwrap();
    fs::File::create(ws.join("huge"))
        .unwrap()
        .set_len(LARGEST_FILE_BYTES + 1)
        .unwrap();
    fs::File::create(ws.join("huge.log"))
        .unwrap()
        .set_len(LARGEST_FILE_BYTES + 1)
        .unwrap();
    #[cfg(target_os = "linux")]
    fs::create_dir(ws.join(".GIT")).unwrap();
    fs::remove_file(ws.join("README.md")).unwrap();
    nix::unistd::mkfifo(&ws.join("README.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let patch = yard.base.patch(&ws).unwrap();
    assert_eq!(kinds(&patch), [("README.md", ChangeKind::Deleted)]);
    let skipped: Vec<_> = patch
        .skipped
        .iter()
        .map(|s| (s.path.as_str(), s.why))
        .collect();
    assert_eq!(
        skipped,
        [
            #[cfg(target_os = "linux")]
            (".GIT", SkipReason::BadName),
            ("README.md", SkipReason::Special),
            ("huge", SkipReason::TooLarge),
            ("pipe", SkipReason::Special),
            ("socket", SkipReason::Special),
        ]
    );
}

#[test]
fn a_huge_file_of_the_base_is_fine_until_it_changes() {
    let huge = vec![b'x'; usize::try_from(LARGEST_FILE_BYTES).unwrap() + 10];
    let yard = Yard::new(&fixture(vec![commit("x", vec![file("huge", &huge)])]));
    let ws = yard.workspace("ws");
    let patch = yard.base.patch(&ws).unwrap();
    assert!(patch.is_empty() && patch.skipped.is_empty());
    fs::write(ws.join("huge"), "small now\n").unwrap();
    assert_eq!(yard.base.patch(&ws).unwrap().files, 1);
    fs::write(ws.join("huge"), [huge.as_slice(), b"y"].concat()).unwrap();
    let patch = yard.base.patch(&ws).unwrap();
    assert_eq!(patch.skipped[0].why, SkipReason::TooLarge);
}

#[test]
fn unreadable_files_are_listed_and_not_taken_for_deleted() {
    if nix::unistd::Uid::effective().is_root() {
        return; // Root reads everything.
    }
    let yard = Yard::new(&sample());
    let ws = yard.workspace("ws");
    for name in ["README.md", "docs"] {
        fs::set_permissions(ws.join(name), fs::Permissions::from_mode(0o000)).unwrap();
    }
    let patch = yard.base.patch(&ws).unwrap();
    fs::set_permissions(ws.join("docs"), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(
        patch
            .skipped
            .iter()
            .all(|s| s.why == SkipReason::Unreadable)
    );
    assert_eq!(patch.skipped.len(), 2);
    assert!(
        patch
            .changed
            .iter()
            .all(|file| file.kind == ChangeKind::Modified)
    );
}

#[test]
fn folders_nested_without_end_are_listed_and_break_nothing() {
    let yard = Yard::new(&sample());
    let ws = yard.workspace("ws");
    let mut deep = ws.clone();
    for _ in 0..900 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("leaf"), "x\n").unwrap();
    fs::write(ws.join("d/d/d/d/d/d/d/d/d/d/leaf"), "x\n").unwrap();
    let patch = yard.base.patch(&ws).unwrap();
    assert_eq!(
        kinds(&patch),
        [("d/d/d/d/d/d/d/d/d/d/leaf", ChangeKind::Added)]
    );
    assert_eq!(patch.skipped.len(), 1);
    assert_eq!(patch.skipped[0].why, SkipReason::TooDeep);
}
