//! Making a base, and copying workspaces from it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use flashrig_record::CopyMethod;
use flashrig_workspace::Source;
use flashrig_workspace::{Base, WorkspaceError};
use tempfile::TempDir;

use crate::workspace_support::{Yard, commit, file, fixture, git, git_output, sample, user_repo};

fn from_repo(path: &Path, revision: &str) -> Source {
    Source::Repository {
        path: path.to_owned(),
        revision: revision.into(),
    }
}

fn objects(repo: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![repo.join(".git/objects")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path)
            } else {
                found.push(path)
            }
        }
    }
    found
}

#[test]
fn a_fixture_has_the_same_commit_id_every_time() {
    let (one, two) = (Yard::new(&sample()), Yard::new(&sample()));
    assert_eq!(one.base.base_commit(), two.base.base_commit());
    assert_eq!(one.base.base_tree(), two.base.base_tree());
}

#[test]
fn a_fixture_becomes_a_repository_that_git_finds_sound() {
    let yard = Yard::new(&sample());
    let ws = yard.workspace("ws");
    assert_eq!(git(&ws, &["rev-parse", "HEAD"]), yard.base.base_commit());
    assert_eq!(
        git(&ws, &["rev-parse", "HEAD^{tree}"]),
        yard.base.base_tree()
    );
    assert_eq!(git(&ws, &["symbolic-ref", "HEAD"]), "refs/heads/main");
    let log = git(&ws, &["log", "--format=%an <%ae> %at %cn %ct %s"]);
    let line = "Ada <ada@example.org> 1700000000 Ada 1700000000";
    assert_eq!(log, format!("{line} second\n{line} first"));
    git(&ws, &["fsck", "--strict"]);
    assert!(ws.join("run.sh").metadata().unwrap().mode() & 0o100 != 0);
}

#[test]
fn git_finds_nothing_modified_in_a_fresh_workspace_without_reading_a_file() {
    let yard = Yard::new(&sample());
    let ws = yard.workspace("ws");
    // `diff-files` trusts the index's times and does not refresh it first.
    assert_eq!(git(&ws, &["diff-files"]), "");
    assert_eq!(git(&ws, &["status", "--porcelain", "--ignored"]), "");
}

#[test]
fn an_agent_can_commit_in_a_workspace() {
    let yard = Yard::new(&sample());
    let ws = yard.workspace("ws");
    fs::write(ws.join("new"), "x").unwrap();
    git(&ws, &["add", "-A"]);
    git(&ws, &["commit", "-q", "-m", "mine"]);
    assert_eq!(git(&ws, &["rev-list", "--count", "HEAD"]), "3");
}

#[test]
fn a_copy_says_truly_how_it_was_made() {
    let yard = Yard::new(&sample());
    let report = yard.base.copy_to(&yard.path("ws")).unwrap();
    let (template, copy) = (
        objects(&yard.path("base/template")),
        objects(&yard.path("ws")),
    );
    assert_eq!(template.len(), copy.len());
    let same_inode = copy.iter().any(|path| path.metadata().unwrap().nlink() > 1);
    match report.method {
        CopyMethod::HardLinkedObjects => assert!(same_inode && report.shared_bytes > 0),
        CopyMethod::Reflink => assert!(!same_inode && report.shared_bytes > 0),
        CopyMethod::Copied => assert!(!same_inode && report.shared_bytes == 0),
    }
    assert!(report.files > 12);
}

#[test]
fn a_workspace_shares_no_working_file_with_its_siblings() {
    let yard = Yard::new(&sample());
    let (one, two) = (yard.workspace("one"), yard.workspace("two"));
    // In place, as an editor would that keeps the inode.
    fs::write(one.join("README.md"), "changed").unwrap();
    assert_eq!(
        fs::read_to_string(two.join("README.md")).unwrap(),
        "# Sample\n"
    );
    assert!(yard.base.patch(&two).unwrap().is_empty());
}

#[test]
fn a_workspace_is_not_copied_over_something() {
    let yard = Yard::new(&sample());
    fs::create_dir(yard.path("ws")).unwrap();
    fs::write(yard.path("ws").join("mine"), "").unwrap();
    let error = yard.base.copy_to(&yard.path("ws")).unwrap_err();
    assert!(
        matches!(error, WorkspaceError::DestinationTaken { .. }),
        "{error}"
    );
}

#[test]
fn a_vandal_in_one_workspaces_objects_does_not_reach_the_next_workspace() {
    let yard = Yard::new(&sample());
    let one = yard.workspace("one");
    for object in objects(&one) {
        fs::set_permissions(&object, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        fs::write(&object, "vandalised").unwrap();
    }
    let next = yard.workspace("next");
    git(&next, &["fsck", "--strict"]);
    assert!(yard.base.patch(&one).unwrap().is_empty());
}

#[test]
fn links_modes_and_times_of_a_users_repository_are_kept() {
    let dir = TempDir::new().unwrap();
    let repo = user_repo(dir.path());
    std::os::unix::fs::symlink("a.txt", repo.join("link")).unwrap();
    fs::write(repo.join("tool"), "x").unwrap();
    fs::set_permissions(
        repo.join("tool"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "three"]);
    let yard = Yard::new(&from_repo(&repo, "HEAD"));
    let ws = yard.workspace("ws");
    assert_eq!(fs::read_link(ws.join("link")).unwrap(), Path::new("a.txt"));
    assert!(ws.join("tool").metadata().unwrap().mode() & 0o100 != 0);
    assert_eq!(git(&ws, &["diff-files"]), "");
    assert!(yard.base.patch(&ws).unwrap().is_empty());
}

#[test]
fn a_branch_keeps_its_name_and_other_revisions_get_one() {
    let dir = TempDir::new().unwrap();
    let repo = user_repo(dir.path());
    let (one, two) = (
        git(&repo, &["rev-parse", "v1"]),
        git(&repo, &["rev-parse", "trunk"]),
    );
    let short = &one[..10];
    for (revision, branch, commit) in [
        ("trunk", "trunk", &two),
        ("HEAD", "trunk", &two),
        ("v1", "flashrig", &one),
        ("trunk~1", "flashrig", &one),
        (short, "flashrig", &one),
    ] {
        let yard = Yard::new(&from_repo(&repo, revision));
        assert_eq!(yard.base.branch(), branch, "{revision}");
        assert_eq!(&yard.base.base_commit(), commit, "{revision}");
        let ws = yard.workspace("ws");
        assert_eq!(git(&ws, &["symbolic-ref", "--short", "HEAD"]), branch);
        assert_eq!(git(&ws, &["status", "--porcelain"]), "");
    }
}

#[test]
fn nothing_can_be_pushed_back_and_no_other_ref_is_there() {
    let dir = TempDir::new().unwrap();
    let repo = user_repo(dir.path());
    let yard = Yard::new(&from_repo(&repo, "v1"));
    let ws = yard.workspace("ws");
    assert_eq!(git(&ws, &["remote"]), "");
    assert_eq!(
        git(&ws, &["for-each-ref", "--format=%(refname)"]),
        "refs/heads/flashrig"
    );
    let config = fs::read_to_string(ws.join(".git/config")).unwrap();
    assert!(!config.contains(repo.to_str().unwrap()), "{config}");
}

#[test]
fn what_is_uncommitted_in_the_users_repository_stays_there() {
    let dir = TempDir::new().unwrap();
    let repo = user_repo(dir.path());
    fs::write(repo.join("a.txt"), "draft\n").unwrap();
    fs::write(repo.join("b.txt"), "draft\n").unwrap();
    let yard = Yard::new(&from_repo(&repo, "trunk"));
    let ws = yard.workspace("ws");
    assert_eq!(fs::read_to_string(ws.join("a.txt")).unwrap(), "two\n");
    assert!(!ws.join("b.txt").exists());
    assert_eq!(fs::read_to_string(repo.join("a.txt")).unwrap(), "draft\n");
}

#[test]
fn a_vandal_in_a_workspaces_objects_does_not_reach_the_users_repository() {
    let dir = TempDir::new().unwrap();
    let repo = user_repo(dir.path());
    git(&repo, &["gc", "-q"]);
    let yard = Yard::new(&from_repo(&repo, "trunk"));
    let ws = yard.workspace("ws");
    for object in objects(&ws) {
        fs::set_permissions(&object, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        fs::write(&object, "vandalised").unwrap();
    }
    git(&repo, &["fsck", "--strict"]);
}

#[test]
fn borrowed_objects_linked_worktrees_and_shallow_clones_can_be_sources() {
    let dir = TempDir::new().unwrap();
    let repo = user_repo(dir.path());
    let path = dir.path();
    git(path, &["clone", "-q", "--shared", "theirs", "borrower"]);
    git(&repo, &["worktree", "add", "-q", "../tree", "-b", "side"]);
    let url = format!("file://{}", repo.display());
    git(path, &["clone", "-q", "--depth=1", &url, "shallow"]);
    for (name, branch) in [
        ("borrower", "trunk"),
        ("tree", "side"),
        ("shallow", "trunk"),
    ] {
        let yard = Yard::new(&from_repo(&path.join(name), "HEAD"));
        assert_eq!(yard.base.branch(), branch, "{name}");
        let ws = yard.workspace("ws");
        assert!(!ws.join(".git/objects/info/alternates").exists());
        assert_eq!(fs::read_to_string(ws.join("a.txt")).unwrap(), "two\n");
        git(&ws, &["fsck", "--strict"]);
    }
}

#[test]
fn a_repository_of_another_user_can_be_a_source() {
    if !nix::unistd::Uid::effective().is_root() {
        return; // Only root can give files away.
    }
    let dir = TempDir::new().unwrap();
    let repo = user_repo(dir.path());
    let chown = std::process::Command::new("chown")
        .args(["-R", "12345"])
        .arg(&repo)
        .status();
    assert!(chown.unwrap().success());
    let yard = Yard::new(&from_repo(&repo, "trunk"));
    assert_eq!(git(&yard.workspace("ws"), &["status", "--porcelain"]), "");
}

#[test]
fn an_unknown_revision_names_repository_and_revision() {
    let dir = TempDir::new().unwrap();
    let repo = user_repo(dir.path());
    let blob = "trunk:a.txt";
    for revision in [
        "no-such-branch",
        "deadbeefdeadbeef",
        "trunk~9",
        blob,
        "bad..syntax^^^{",
    ] {
        let error = Base::make(&from_repo(&repo, revision), &dir.path().join("base")).unwrap_err();
        assert!(
            matches!(error, WorkspaceError::NoSuchRevision { .. }),
            "{error}"
        );
        let message = error.to_string();
        assert!(
            message.contains(revision) && message.contains("theirs"),
            "{message}"
        );
        assert!(message.contains("name a branch"), "{message}");
        fs::remove_dir_all(dir.path().join("base")).unwrap();
    }
}

#[test]
fn a_path_that_is_no_repository_says_so() {
    let dir = TempDir::new().unwrap();
    for path in [dir.path().to_owned(), dir.path().join("absent")] {
        let base = TempDir::new().unwrap();
        let error = Base::make(&from_repo(&path, "HEAD"), base.path()).unwrap_err();
        assert!(
            matches!(error, WorkspaceError::NotARepository { .. }),
            "{error}"
        );
        assert!(
            error.to_string().contains(path.to_str().unwrap()),
            "{error}"
        );
    }
}

#[test]
fn an_empty_repository_has_no_revision() {
    let dir = TempDir::new().unwrap();
    git(dir.path(), &["init", "-q", "empty"]);
    let source = from_repo(&dir.path().join("empty"), "HEAD");
    let error = Base::make(&source, &dir.path().join("base")).unwrap_err();
    assert!(
        matches!(error, WorkspaceError::NoSuchRevision { .. }),
        "{error}"
    );
}

#[test]
fn a_fixture_that_git_cannot_hold_is_refused() {
    for path in ["../out", "/etc/x", ".git/config", "a//b", ""] {
        let dir = TempDir::new().unwrap();
        let source = fixture(vec![commit("x", vec![file(path, "x")])]);
        let error = Base::make(&source, dir.path()).unwrap_err().to_string();
        assert!(
            error.contains(&format!("{path:?}")) && error.contains("sample"),
            "{error}"
        );
    }
    let both = fixture(vec![commit("x", vec![file("a", "x"), file("a/b", "x")])]);
    let dir = TempDir::new().unwrap();
    let error = Base::make(&both, dir.path()).unwrap_err().to_string();
    assert!(error.contains("a file and a folder at once"), "{error}");
    let dir = TempDir::new().unwrap();
    assert!(Base::make(&fixture(vec![]), dir.path()).is_err());
}

/// Runs the test of this name again in a child process with another environment.
fn again_with(test: &str, home: &Path) -> std::process::Output {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env("FLASHRIG_TEST_CHILD", "1")
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home.join("xdg"))
        .env_remove("GIT_CONFIG_GLOBAL")
        .output()
        .unwrap()
}

#[test]
fn the_operators_git_configuration_does_not_matter() {
    let yard = Yard::new(&sample());
    let ws = yard.workspace("ws");
    fs::write(ws.join("src/new.rs"), "a\r\nb\n").unwrap();
    let patch = yard.base.patch(&ws).unwrap();
    assert_eq!(patch.changed.len(), 1);
    let facts = format!("FACTS {} {}", yard.base.base_commit(), patch.tree);
    if std::env::var_os("FLASHRIG_TEST_CHILD").is_some() {
        println!("{facts}");
        return;
    }
    let home = TempDir::new().unwrap();
    fs::write(home.path().join("excludes"), "*.rs\n").unwrap();
    fs::create_dir_all(home.path().join("xdg/git")).unwrap();
    fs::write(home.path().join("xdg/git/ignore"), "*.rs\n").unwrap();
    fs::write(home.path().join("xdg/git/attributes"), "* text eol=crlf\n").unwrap();
    let config = format!(
        "[core]\nautocrlf = true\nexcludesFile = {}\n[init]\ndefaultBranch = odd\n[user]\nname = Op\n",
        home.path().join("excludes").display()
    );
    fs::write(home.path().join(".gitconfig"), config).unwrap();
    let output = again_with(
        "base::the_operators_git_configuration_does_not_matter",
        home.path(),
    );
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains(&facts), "{printed}");
}

#[test]
fn a_tree_is_checked_out_without_any_git_folder() {
    let yard = Yard::new(&sample());
    let out = yard.path("out");
    yard.base.checkout(&yard.base.base_tree(), &out).unwrap();
    assert!(!out.join(".git").exists());
    assert_eq!(
        fs::read(out.join("logo.bin")).unwrap(),
        b"\x00\x01\x02binary"
    );
    assert!(out.join("run.sh").metadata().unwrap().mode() & 0o100 != 0);
    assert!(!git_output(&out, &["status"]).status.success());
    assert!(yard.base.checkout("0123", &yard.path("other")).is_err());
}
