//! The built-in tasks do what they claim, proven with the plain `git` and `cargo` commands and
//! with none of flashrig's own workspace and verification code.
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flashrig::task::{Before, Check, Fixture, FixtureCommit, Library, Source, Step, Task};

/// The folders of one task's trial: a repository, and a target folder shared by its trees.
struct Bench {
    task: Task,
    root: tempfile::TempDir,
}

/// Why a tree does not pass.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    Protected(String),
    Check(String),
}

impl Bench {
    fn new(name: &str) -> Self {
        let task = Library::new(None)
            .load(name)
            .unwrap_or_else(|e| panic!("{e}"));
        let bench = Self {
            task,
            root: tempfile::tempdir().unwrap(),
        };
        let repository = bench.path("base");
        std::fs::create_dir(&repository).unwrap();
        bench.git(&repository, &["init", "-q", "-b", "main"]);
        for commit in &bench.fixture().commits {
            replace_files(&repository, commit);
            bench.git(&repository, &["add", "-A"]);
            let date = format!("{} +0000", commit.time);
            let output = bench
                .command("git", &repository)
                .args(["commit", "-q", "-m", &commit.message])
                .env("GIT_AUTHOR_NAME", &commit.author)
                .env("GIT_AUTHOR_EMAIL", &commit.email)
                .env("GIT_AUTHOR_DATE", &date)
                .env("GIT_COMMITTER_NAME", &commit.author)
                .env("GIT_COMMITTER_EMAIL", &commit.email)
                .env("GIT_COMMITTER_DATE", &date)
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
        }
        bench
    }

    fn fixture(&self) -> &Fixture {
        match &self.task.source {
            Source::Fixture(fixture) => fixture,
            Source::Repository { .. } => panic!("a built-in task starts from a fixture"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn command(&self, program: &str, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("CARGO_TARGET_DIR", self.path("target"))
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_INCREMENTAL", "0")
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS");
        command
    }

    fn git(&self, folder: &Path, args: &[&str]) -> String {
        let output = self.command("git", folder).args(args).output().unwrap();
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            printed(&output)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// A fresh clone of the base.
    fn clone(&self, name: &str) -> PathBuf {
        self.git(self.root.path(), &["clone", "-q", "base", name]);
        self.path(name)
    }

    /// A fresh clone with a patch applied.
    fn patched(&self, name: &str, patch: &str) -> PathBuf {
        let file = self.path(&format!("{name}.patch"));
        std::fs::write(&file, patch).unwrap();
        let tree = self.clone(name);
        self.git(&tree, &["apply", file.to_str().unwrap()]);
        tree
    }

    /// Every path that differs from the base, untracked ones included.
    fn touched(&self, tree: &Path) -> Vec<String> {
        self.git(tree, &["add", "-A"]);
        let names = self.git(
            tree,
            &["diff", "--cached", "--name-only", "--no-renames", "HEAD"],
        );
        names.lines().map(str::to_owned).collect()
    }

    /// What the verifier does, in short: protected files put back, hidden files in, checks.
    fn faults(&self, tree: &Path) -> Vec<Fault> {
        let mut faults = Vec::new();
        for path in self.touched(tree) {
            if !self.task.protected.is_match(&path) {
                continue;
            }
            if self
                .git(tree, &["ls-tree", "--name-only", "HEAD", &path])
                .is_empty()
            {
                std::fs::remove_file(tree.join(&path)).unwrap();
            } else {
                self.git(tree, &["checkout", "-q", "HEAD", "--", &path]);
            }
            faults.push(Fault::Protected(path));
        }
        for file in &self.task.hidden {
            std::fs::write(tree.join(&file.to), &file.bytes).unwrap();
        }
        for check in &self.task.checks {
            if !self.passes(check, tree) {
                faults.push(Fault::Check(check.name.clone()));
            }
        }
        faults
    }

    fn passes(&self, check: &Check, tree: &Path) -> bool {
        let output = self
            .command(&check.run[0], tree)
            .args(&check.run[1..])
            .output()
            .unwrap();
        let text = printed(&output);
        output.status.success() && check.must_print.as_ref().is_none_or(|p| p.is_match(&text))
    }
}

fn printed(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// Makes the working tree hold exactly the files of a commit.
fn replace_files(folder: &Path, commit: &FixtureCommit) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::remove_file(path).unwrap();
        } else if path.file_name().unwrap() != ".git" {
            std::fs::remove_dir_all(path).unwrap();
        }
    }
    for file in &commit.files {
        let path = folder.join(&file.path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, &file.bytes).unwrap();
    }
}

/// Plays the walkthrough: edits by plain text replacement, commands by the shell.
fn play(bench: &Bench, tree: &Path) {
    for step in &bench.task.walkthrough.as_ref().unwrap().steps {
        match step {
            Step::Read { path, .. } => assert!(tree.join(path).is_file(), "{path}"),
            Step::Search { pattern, path, .. } => {
                let place = path.as_deref().unwrap_or(".");
                let mut grep = bench.command("grep", tree);
                let output = grep.args(["-rnE", pattern, place]).output().unwrap();
                assert!(output.status.success(), "nothing found for {pattern}");
            }
            Step::Edit { path, old, new, .. } => {
                let text = std::fs::read_to_string(tree.join(path)).unwrap();
                assert_eq!(text.matches(old.as_str()).count(), 1, "{path}: {old}");
                std::fs::write(tree.join(path), text.replacen(old, new, 1)).unwrap();
            }
            Step::Write { path, content, .. } => std::fs::write(tree.join(path), content).unwrap(),
            Step::Run { command, .. } => {
                let output = bench
                    .command("sh", tree)
                    .args(["-c", command])
                    .output()
                    .unwrap();
                assert!(output.status.success(), "{command}: {}", printed(&output));
            }
            Step::Say { .. } => {}
        }
    }
}

/// Everything that a built-in task claims. The steps share a target folder, to be quick.
fn prove(name: &str) {
    let bench = Bench::new(name);
    let task = &bench.task;

    let commits = bench.git(&bench.path("base"), &["rev-list", "--count", "HEAD"]);
    assert!(
        (5..=8).contains(&commits.trim().parse().unwrap()),
        "{commits} commits"
    );

    let failing = task
        .checks
        .iter()
        .filter(|check| check.before == Before::Fail);
    let expected: Vec<Fault> = failing
        .map(|check| Fault::Check(check.name.clone()))
        .collect();
    assert!(!expected.is_empty());
    assert_eq!(
        bench.faults(&bench.clone("untouched")),
        expected,
        "untouched"
    );

    let solved = bench.patched("solved", &task.solution);
    assert_eq!(bench.faults(&solved), [], "solution");

    let played = bench.clone("played");
    play(&bench, &played);
    let touched = bench.touched(&played);
    assert!(
        touched.len() as u64 <= task.diff_limit.files.unwrap(),
        "{touched:?}"
    );
    let stat = bench.git(&played, &["diff", "--cached", "--numstat", "HEAD"]);
    let counts = stat.lines().flat_map(|line| line.split('\t').take(2));
    let lines: u64 = counts.map(|count| count.parse::<u64>().unwrap()).sum();
    assert!(lines <= task.diff_limit.lines.unwrap(), "{lines} lines");
    assert_eq!(bench.faults(&played), [], "walkthrough");

    assert!(task.cheats.len() >= 3);
    for cheat in &task.cheats {
        let tree = bench.patched(&format!("cheat-{}", cheat.name), &cheat.patch);
        let faults = bench.faults(&tree);
        println!("{name}: {}: {faults:?}", cheat.name);
        assert_ne!(faults, [], "the cheat {} went through", cheat.name);
    }
}

#[test]
fn fix_bug_fails_untouched_and_passes_when_solved_and_lets_no_cheat_through() {
    prove("fix-bug");
}

#[test]
fn add_flag_fails_untouched_and_passes_when_solved_and_lets_no_cheat_through() {
    prove("add-flag");
}

#[test]
fn every_commit_of_a_fixture_builds_without_a_warning_and_passes_its_tests() {
    for name in ["fix-bug", "add-flag"] {
        let bench = Bench::new(name);
        let tree = bench.clone("history");
        let commits = bench.git(&tree, &["rev-list", "--reverse", "HEAD"]);
        for commit in commits.lines() {
            bench.git(&tree, &["checkout", "-q", commit]);
            let mut cargo = bench.command("cargo", &tree);
            let cargo = cargo
                .args(["test", "--offline", "--lib"])
                .env("RUSTFLAGS", "-Dwarnings");
            let output = cargo.output().unwrap();
            assert!(
                output.status.success(),
                "{name} {commit}: {}",
                printed(&output)
            );
        }
    }
}

#[test]
fn each_walkthrough_reads_a_file_before_it_edits_it() {
    let library = Library::new(None);
    for name in library.names().unwrap() {
        let mut seen = Vec::new();
        for step in library.load(&name).unwrap().walkthrough.unwrap().steps {
            match step {
                Step::Read { path, .. } => seen.push(path),
                Step::Edit { path, .. } => assert!(seen.contains(&path), "{name}: {path}"),
                _ => {}
            }
        }
    }
}

#[test]
fn the_tasks_start_from_different_fixtures_and_have_unlike_prompts() {
    let library = Library::new(None);
    assert_eq!(library.names().unwrap(), ["add-flag", "fix-bug"]);
    let [a, b] = ["add-flag", "fix-bug"].map(|name| library.load(name).unwrap());
    let fixture = |task: &Task| match &task.source {
        Source::Fixture(fixture) => fixture.name.clone(),
        Source::Repository { .. } => panic!("not a fixture"),
    };
    assert_ne!(fixture(&a), fixture(&b));
    assert!(!a.prompt.contains(&b.prompt) && !b.prompt.contains(&a.prompt));
}
