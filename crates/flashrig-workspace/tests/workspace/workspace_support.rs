//! A fixture with something of everything, and a git that reads no configuration but the
//! repository's own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flashrig_workspace::Base;
use flashrig_workspace::{Fixture, FixtureCommit, FixtureFile, Source};
use tempfile::TempDir;

pub fn file(path: &str, bytes: impl AsRef<[u8]>) -> FixtureFile {
    FixtureFile {
        path: path.into(),
        bytes: bytes.as_ref().to_vec(),
        executable: false,
    }
}

pub fn commit(message: &str, files: Vec<FixtureFile>) -> FixtureCommit {
    FixtureCommit {
        author: "Ada".into(),
        email: "ada@example.org".into(),
        time: 1_700_000_000,
        message: message.into(),
        files,
    }
}

pub fn fixture(commits: Vec<FixtureCommit>) -> Source {
    Source::Fixture(Fixture {
        name: "sample".into(),
        title: "A sample".into(),
        commits,
    })
}

/// Twelve files: ignored but tracked, executable, empty, binary, without a last newline.
pub fn sample() -> Source {
    let script = FixtureFile {
        executable: true,
        ..file("run.sh", "#!/bin/sh\necho hi\n")
    };
    let main: String = (1..=40).map(|n| format!("line {n}\n")).collect();
    let second = vec![
        file(".gitignore", "target/\n*.log\n"),
        file("README.md", "# Sample\n"),
        file("docs/a b.md", "spaced\n"),
        file("docs/.gitignore", "*.tmp\n!kept.tmp\n"),
        file("empty", ""),
        file("keep.log", "tracked though ignored\n"),
        file("logo.bin", b"\x00\x01\x02binary"),
        file("no-newline.txt", "one\ntwo"),
        script,
        file("src/lib.rs", "pub fn a() {}\npub fn b() {}\n"),
        file("src/main.rs", main),
        file("target/pinned.txt", "tracked in an ignored folder\n"),
    ];
    fixture(vec![
        commit("first\n", vec![file("README.md", "# S\n")]),
        commit("second\n", second),
    ])
}

pub struct Yard {
    pub dir: TempDir,
    pub base: Base,
}

impl Yard {
    pub fn new(source: &Source) -> Self {
        let dir = TempDir::new().unwrap();
        let base = Base::make(source, &dir.path().join("base")).unwrap();
        Self { dir, base }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn workspace(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        self.base.copy_to(&path).unwrap();
        path
    }
}

pub fn git_output<S: AsRef<OsStr>>(dir: &Path, args: &[S]) -> Output {
    Command::new("git")
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CEILING_DIRECTORIES", dir.parent().unwrap())
        .env_remove("GIT_DIR")
        .output()
        .unwrap()
}

/// Runs git, which must succeed, and returns what it printed, trimmed.
pub fn git(dir: &Path, args: &[&str]) -> String {
    let output = git_output(dir, args);
    assert!(
        output.status.success(),
        "git {args:?}: {}{}",
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

/// A repository of the user's with two commits on `trunk` and a tag at the first.
pub fn user_repo(dir: &Path) -> PathBuf {
    let repo = dir.join("theirs");
    std::fs::create_dir(&repo).unwrap();
    git(&repo, &["init", "-q", "-b", "trunk"]);
    git(&repo, &["config", "user.name", "u"]);
    git(&repo, &["config", "user.email", "u@example.org"]);
    git(
        &repo,
        &["remote", "add", "origin", "https://example.invalid/x.git"],
    );
    std::fs::write(repo.join("a.txt"), "one\n").unwrap();
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "one"]);
    git(&repo, &["tag", "v1"]);
    std::fs::write(repo.join("a.txt"), "two\n").unwrap();
    git(&repo, &["commit", "-q", "-am", "two"]);
    repo
}
