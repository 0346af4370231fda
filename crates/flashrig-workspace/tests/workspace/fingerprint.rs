//! Case H3: an agent that leaves its copy for the source repository is found out.

use std::fs;
use std::path::Path;

use flashrig_workspace::Fingerprint;
use flashrig_workspace::Source;
use tempfile::TempDir;

use crate::workspace_support::{Yard, git, sample, user_repo};

fn differences(folder: &Path, act: impl FnOnce(&Path)) -> Vec<String> {
    let before = Fingerprint::of(folder).unwrap();
    act(folder);
    before.differences(&Fingerprint::of(folder).unwrap())
}

#[test]
fn edits_additions_and_removals_are_named() {
    let dir = TempDir::new().unwrap();
    let repo = user_repo(dir.path());
    fs::write(repo.join("untracked"), "x").unwrap();
    let found = differences(&repo, |repo| {
        fs::write(repo.join("a.txt"), "edited\n").unwrap();
        fs::create_dir(repo.join("new")).unwrap();
        fs::write(repo.join("new/.hidden"), "x").unwrap();
        fs::remove_file(repo.join("untracked")).unwrap();
    });
    assert_eq!(
        found,
        [
            "a.txt was changed",
            "new/.hidden was added",
            "untracked was removed"
        ]
    );
}

#[test]
fn commits_refs_staging_configuration_and_hooks_are_named() {
    type Act = fn(&Path);
    let acts: [(Act, &str); 6] = [
        (
            |r| _ = git(r, &["commit", "-q", "--allow-empty", "-m", "x"]),
            "refs/heads/trunk was changed",
        ),
        (
            |r| _ = git(r, &["branch", "other"]),
            "refs/heads/other was added",
        ),
        (
            |r| _ = git(r, &["symbolic-ref", "HEAD", "refs/heads/x"]),
            "HEAD was changed",
        ),
        (
            |r| _ = git(r, &["rm", "-q", "--cached", "a.txt"]),
            "staged a.txt (stage 0) was removed",
        ),
        (
            |r| _ = git(r, &["config", "core.pager", "evil"]),
            ".git/config was changed",
        ),
        (
            |r| fs::write(r.join(".git/hooks/pre-commit"), "evil").unwrap(),
            ".git/hooks/pre-commit was added",
        ),
    ];
    for (act, message) in acts {
        let dir = TempDir::new().unwrap();
        let repo = user_repo(dir.path());
        fs::create_dir_all(repo.join(".git/hooks")).unwrap();
        let found = differences(&repo, act);
        assert!(
            found.iter().any(|found| found == message),
            "{message}: {found:?}"
        );
    }
}

#[test]
fn an_editor_looking_at_the_repository_is_no_difference() {
    let dir = TempDir::new().unwrap();
    let repo = user_repo(dir.path());
    fs::write(repo.join(".gitignore"), "target/\n").unwrap();
    let found = differences(&repo, |repo| {
        // A build, and a `git status` that rewrites the index.
        fs::create_dir(repo.join("target")).unwrap();
        fs::write(repo.join("target/out"), "x").unwrap();
        let later = std::time::SystemTime::now();
        fs::File::open(repo.join(".git/index"))
            .unwrap()
            .set_modified(later)
            .unwrap();
        git(repo, &["status"]);
        git(repo, &["gc", "-q"]);
    });
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_tracked_file_counts_although_it_is_ignored() {
    let yard = Yard::new(&sample());
    let ws = yard.workspace("ws");
    let found = differences(&ws, |ws| {
        fs::write(ws.join("target/pinned.txt"), "x").unwrap()
    });
    assert_eq!(found, ["target/pinned.txt was changed"]);
}

#[test]
fn a_plain_folder_has_a_fingerprint_and_an_absent_one_does_not() {
    let dir = TempDir::new().unwrap();
    let found = differences(dir.path(), |dir| fs::write(dir.join("x"), "").unwrap());
    assert_eq!(found, ["x was added"]);
    let error = Fingerprint::of(&dir.path().join("absent"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("absent"), "{error}");
}

#[test]
fn making_a_base_and_working_in_a_copy_leaves_the_source_as_it_was() {
    let dir = TempDir::new().unwrap();
    let repo = user_repo(dir.path());
    let found = differences(&repo, |repo| {
        let source = Source::Repository {
            path: repo.to_owned(),
            revision: "trunk".into(),
        };
        let yard = Yard::new(&source);
        let ws = yard.workspace("ws");
        fs::write(ws.join("a.txt"), "work\n").unwrap();
        git(&ws, &["commit", "-q", "-am", "work"]);
        git(&ws, &["gc", "-q"]);
        yard.base.patch(&ws).unwrap();
    });
    assert_eq!(found, Vec::<String>::new());
}
