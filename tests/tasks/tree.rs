//! Case H2: what the agent did to tests and verifier has no effect, and is reported.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flashrig::task::{Before, DiffLimit, HiddenFile, Task};
use flashrig::verify::{Verification, verify};
use flashrig_record::CheckOutcome;
use flashrig_workspace::Base;
use tempfile::TempDir;

use crate::verify_support::{Plain, check, task};

struct Yard {
    dir: TempDir,
    base: Base,
    task: Task,
}

impl Yard {
    fn new(task: Task) -> Self {
        let dir = TempDir::new().unwrap();
        let base = Base::make(&task.source, &dir.path().join("base")).unwrap();
        Self { dir, base, task }
    }

    fn scratch(&self) -> PathBuf {
        self.dir.path().join("scratch")
    }

    /// Lets `act` work in a workspace, and verifies that.
    async fn after(&self, act: impl FnOnce(&Path)) -> Verification {
        let ws = self.dir.path().join("ws");
        self.base.copy_to(&ws).unwrap();
        act(&ws);
        let patch = self.base.patch(&ws).unwrap();
        verify(&self.task, &self.base, &patch, &self.scratch(), &Plain)
            .await
            .unwrap()
    }
}

fn outcomes(found: &Verification) -> Vec<(&str, CheckOutcome)> {
    found
        .checks
        .iter()
        .map(|check| (check.name.as_str(), check.outcome))
        .collect()
}

fn solve(ws: &Path) {
    fs::write(ws.join("add.sh"), "echo $(($1 + $2))\n").unwrap();
}

const PASSED: CheckOutcome = CheckOutcome::Passed;
const FAILED: CheckOutcome = CheckOutcome::Failed;

#[tokio::test]
async fn honest_work_passes() {
    let found = Yard::new(task()).after(solve).await;
    assert_eq!(outcomes(&found), [("visible", PASSED), ("hidden", PASSED)]);
    assert!(found.passed() && found.reasons().is_empty(), "{found:?}");
    assert_eq!(found.checks[1].output_tail, "hidden ok\n");
}

#[tokio::test]
async fn doing_nothing_does_not_pass() {
    let found = Yard::new(task()).after(|_| {}).await;
    assert_eq!(outcomes(&found), [("visible", PASSED), ("hidden", FAILED)]);
    assert!(!found.passed());
    assert_eq!(found.reasons(), ["check hidden exited with 1"]);
}

#[tokio::test]
async fn a_weakened_test_is_restored_and_reported() {
    let found = Yard::new(task())
        .after(|ws| {
            fs::write(ws.join("add.sh"), "echo 7\n").unwrap();
            fs::write(ws.join("tests/visible.sh"), "echo visible ok\n").unwrap();
        })
        .await;
    assert_eq!(outcomes(&found), [("visible", FAILED), ("hidden", FAILED)]);
    assert_eq!(found.protected_touched, ["tests/visible.sh"]);
}

#[tokio::test]
async fn touching_a_protected_file_fails_even_when_every_check_passes() {
    let yard = Yard::new(task());
    let found = yard
        .after(|ws| {
            solve(ws);
            fs::write(ws.join("tests/visible.sh"), "echo visible ok\n").unwrap();
        })
        .await;
    assert_eq!(outcomes(&found), [("visible", PASSED), ("hidden", PASSED)]);
    assert!(!found.passed());
    assert_eq!(
        found.reasons(),
        ["protected files touched: tests/visible.sh"]
    );
    let text = fs::read_to_string(yard.scratch().join("tests/visible.sh")).unwrap();
    assert!(text.contains("add.sh 0 0"));
}

#[tokio::test]
async fn a_verifier_that_the_agent_planted_has_no_effect() {
    let yard = Yard::new(task());
    let found = yard
        .after(|ws| {
            fs::write(ws.join("tests/hidden.sh"), "echo hidden ok\n").unwrap();
            fs::write(ws.join("tests/other.sh"), "echo hidden ok\n").unwrap();
        })
        .await;
    assert_eq!(outcomes(&found), [("visible", PASSED), ("hidden", FAILED)]);
    assert_eq!(found.hidden_overwritten, ["tests/hidden.sh"]);
    assert_eq!(
        found.protected_touched,
        ["tests/hidden.sh", "tests/other.sh"]
    );
    assert!(!yard.scratch().join("tests/other.sh").exists());
}

#[tokio::test]
async fn a_deleted_test_is_back() {
    let found = Yard::new(task())
        .after(|ws| fs::remove_dir_all(ws.join("tests")).unwrap())
        .await;
    assert_eq!(outcomes(&found), [("visible", PASSED), ("hidden", FAILED)]);
    assert_eq!(found.protected_touched, ["tests/visible.sh"]);
}

#[tokio::test]
async fn a_link_in_place_of_the_tests_leads_no_write_astray() {
    let yard = Yard::new(task());
    let outside = yard.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let target = outside.clone();
    let found = yard
        .after(move |ws| {
            fs::remove_dir_all(ws.join("tests")).unwrap();
            symlink(&target, ws.join("tests")).unwrap();
        })
        .await;
    assert_eq!(found.protected_touched, ["tests/visible.sh"]);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert!(
        yard.scratch()
            .join("tests")
            .symlink_metadata()
            .unwrap()
            .is_dir()
    );
}

#[tokio::test]
async fn what_the_agent_left_in_ignored_folders_takes_no_part() {
    let yard = Yard::new(task());
    let found = yard
        .after(|ws| {
            solve(ws);
            fs::create_dir_all(ws.join(".git/hooks")).unwrap();
            fs::write(ws.join(".git/hooks/post-checkout"), "#!/bin/sh\nexit 1\n").unwrap();
        })
        .await;
    assert!(found.passed());
    assert!(!yard.scratch().join(".git").exists());
}

#[tokio::test]
async fn success_without_the_real_tests_output_does_not_pass() {
    let mut task = task();
    task.checks = vec![check(
        "early",
        &["sh", "add.sh"],
        Before::Fail,
        Some("all [0-9]+ ran"),
    )];
    let found = Yard::new(task)
        .after(|ws| fs::write(ws.join("add.sh"), "exit 0\n").unwrap())
        .await;
    assert_eq!(outcomes(&found), [("early", CheckOutcome::LacksOutput)]);
    assert!(
        found.reasons()[0].contains("all [0-9]+ ran"),
        "{:?}",
        found.reasons()
    );
}

#[tokio::test]
async fn every_check_runs_and_each_end_is_told_apart() {
    let mut task = task();
    let mut slow = check("slow", &["sleep", "60"], Before::Fail, None);
    slow.time_limit = Duration::from_millis(100);
    task.checks = vec![
        slow,
        check("killed", &["sh", "-c", "kill -9 $$"], Before::Fail, None),
        check("absent", &["/no/such/program"], Before::Fail, None),
        check("fine", &["true"], Before::Pass, None),
    ];
    let found = Yard::new(task).after(|_| {}).await;
    assert_eq!(
        outcomes(&found),
        [
            ("slow", CheckOutcome::TimedOut),
            ("killed", CheckOutcome::Killed),
            ("absent", CheckOutcome::NotRun),
            ("fine", PASSED),
        ]
    );
    assert_eq!(found.not_run().count(), 1);
    assert!(
        found.reasons()[0].contains("within 0.1 s"),
        "{:?}",
        found.reasons()
    );
}

#[tokio::test]
async fn a_patch_beyond_its_limits_does_not_pass() {
    let mut task = task();
    task.diff_limit = DiffLimit {
        files: Some(1),
        lines: Some(3),
    };
    let found = Yard::new(task)
        .after(|ws| {
            solve(ws);
            fs::write(ws.join("notes"), "1\n2\n").unwrap();
        })
        .await;
    assert_eq!(
        found.reasons(),
        [
            "the patch changes 2 files, more than the 1 allowed",
            "the patch changes 4 lines, more than the 3 allowed"
        ]
    );
}

#[tokio::test]
async fn a_hidden_file_outside_the_tree_is_an_error_that_names_the_task() {
    let mut task = task();
    task.hidden.push(HiddenFile {
        to: "../x".into(),
        bytes: Vec::new(),
    });
    let yard = Yard::new(task);
    let patch = yard.base.tree_with_patch("").unwrap();
    let error = verify(&yard.task, &yard.base, &patch, &yard.scratch(), &Plain)
        .await
        .unwrap_err();
    let message = format!("{error:#}");
    assert!(
        message.contains("fix-add") && message.contains("../x"),
        "{message}"
    );
}

#[tokio::test]
async fn verification_adds_little_to_the_checks_own_time() {
    let yard = Yard::new(task());
    let patch = yard.base.tree_with_patch(&yard.task.solution).unwrap();
    let mut best = Duration::MAX;
    // The best of a few: the machine is shared, the limit is not about its worst moment.
    for _ in 0..5 {
        let start = Instant::now();
        let found = verify(&yard.task, &yard.base, &patch, &yard.scratch(), &Plain)
            .await
            .unwrap();
        let own: f64 = found.checks.iter().map(|check| check.duration_s.0).sum();
        best = best.min(start.elapsed().saturating_sub(Duration::from_secs_f64(own)));
        fs::remove_dir_all(yard.scratch()).unwrap();
    }
    assert!(best < Duration::from_millis(100), "{best:?}");
}
