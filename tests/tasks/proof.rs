//! Proving tasks: what `flashrig tasks verify` stands on.

use std::fs;

use flashrig::task::{Before, Cheat, DiffLimit, Task};
use flashrig::verify::{Proof, ProofCase, ProofOutcome, prove};
use flashrig_workspace::Base;
use tempfile::TempDir;

use crate::verify_support::{Plain, check, edit, globs, task};

async fn proof(task: &Task) -> Proof {
    let dir = TempDir::new().unwrap();
    let base = Base::make(&task.source, &dir.path().join("base")).unwrap();
    let scratch = dir.path().join("scratch");
    let proof = prove(task, &base, &scratch, &Plain, 3).await.unwrap();
    assert_eq!(
        fs::read_dir(&scratch).map_or(0, Iterator::count),
        0,
        "scratch is left empty"
    );
    proof
}

fn row(proof: &Proof, case: ProofCase) -> (ProofOutcome, &str) {
    let row = proof.rows.iter().find(|row| row.case == case).unwrap();
    (row.outcome, &row.message)
}

#[tokio::test]
async fn a_sound_task_is_proved_case_by_case() {
    let proof = proof(&task()).await;
    assert!(proof.is_sound(), "{proof:#?}");
    let lines: Vec<_> = proof
        .rows
        .iter()
        .map(|r| format!("{:?}: {}", r.case, r.message))
        .collect();
    assert_eq!(
        lines,
        [
            "Untouched: fails as it should: check hidden exited with 1",
            "Solution: passes as it should (1 file, +1 -1)",
            "Cheat(\"constant\"): fails as it should: check hidden exited with 1",
            "Cheat(\"delete-test\"): fails as it should: check hidden exited with 1; \
             protected files touched: tests/visible.sh",
        ]
    );
}

#[tokio::test]
async fn a_task_whose_test_is_weakened_is_found() {
    let mut task = task();
    task.hidden[0].bytes = b"echo hidden ok\n".to_vec();
    let proof = proof(&task).await;
    assert!(!proof.is_sound());
    let (outcome, message) = row(&proof, ProofCase::Untouched);
    assert_eq!(outcome, ProofOutcome::Unsound);
    assert_eq!(
        message,
        "check hidden must fail on the untouched base but passed"
    );
    let (outcome, message) = row(&proof, ProofCase::Cheat("constant".into()));
    assert_eq!(outcome, ProofOutcome::Unsound);
    assert!(message.contains("cheat constant passes"), "{message}");
}

#[tokio::test]
async fn a_check_that_fails_every_second_time_is_called_flaky() {
    let dir = TempDir::new().unwrap();
    let count = dir.path().join("count");
    let script = format!(
        "echo x >> {0}; test $(($(wc -l < {0}) % 2)) = 1",
        count.display()
    );
    let mut task = task();
    task.checks[0] = check("unsteady", &["sh", "-c", &script], Before::Pass, None);
    let proof = proof(&task).await;
    let (outcome, message) = row(&proof, ProofCase::Untouched);
    assert_eq!(outcome, ProofOutcome::Unsound);
    assert_eq!(
        message,
        "check unsteady is flaky: it passed 2 of 3 times on the same tree"
    );
}

#[tokio::test]
async fn a_check_that_must_pass_before_and_does_not_is_found() {
    let mut task = task();
    task.checks[1].before = Before::Pass;
    let proof = proof(&task).await;
    let (outcome, message) = row(&proof, ProofCase::Untouched);
    assert_eq!(outcome, ProofOutcome::Unsound);
    assert!(
        message.contains("check hidden must pass on the untouched base"),
        "{message}"
    );
}

#[tokio::test]
async fn a_task_that_asks_for_nothing_is_found() {
    let mut task = task();
    task.checks.truncate(1);
    let proof = proof(&task).await;
    let (outcome, message) = row(&proof, ProofCase::Untouched);
    assert_eq!(outcome, ProofOutcome::Unsound);
    assert!(message.contains("nothing is asked for"), "{message}");
}

#[tokio::test]
async fn a_solution_that_fails_breaks_limits_or_touches_tests_is_found() {
    let wrong = edit("add.sh", "echo $(($1 - $2))", "echo $(($1 * $2))");
    let mut touching = task().solution;
    touching.push_str(&edit(
        "tests/visible.sh",
        "test \"$(sh add.sh 0 0)\" = 0 && echo visible ok",
        "echo visible ok",
    ));
    for (solution, limit, message) in [
        (wrong, None, "check hidden exited with 1"),
        (touching, None, "protected files touched: tests/visible.sh"),
        (task().solution, Some(1), "more than the 1 allowed"),
        (
            edit("add.sh", "something else", "x"),
            None,
            "the change of add.sh does not apply",
        ),
        (String::new(), None, "changes nothing"),
    ] {
        let mut task = task();
        task.solution = solution;
        task.diff_limit = DiffLimit {
            files: None,
            lines: limit,
        };
        let proof = proof(&task).await;
        let (outcome, found) = row(&proof, ProofCase::Solution);
        assert_eq!(outcome, ProofOutcome::Unsound);
        assert!(found.contains(message), "{found}");
    }
}

#[tokio::test]
async fn a_cheat_that_passes_is_named() {
    let mut task = task();
    let patch = edit(
        "add.sh",
        "echo $(($1 - $2))",
        "test $1 = 2 && echo 5 || echo 0",
    );
    task.cheats = vec![Cheat {
        name: "only-what-is-asked".into(),
        patch,
    }];
    let proof = proof(&task).await;
    let (outcome, message) = row(&proof, ProofCase::Cheat("only-what-is-asked".into()));
    assert_eq!(outcome, ProofOutcome::Unsound);
    assert_eq!(
        message,
        "cheat only-what-is-asked passes: the checks do not see through it"
    );
}

#[tokio::test]
async fn a_check_that_cannot_start_proves_nothing() {
    let mut task = task();
    task.checks
        .push(check("absent", &["/no/such/program"], Before::Fail, None));
    let proof = proof(&task).await;
    assert!(!proof.is_sound());
    assert!(
        proof
            .rows
            .iter()
            .all(|row| row.outcome == ProofOutcome::Undecided),
        "{proof:#?}"
    );
    assert!(proof.rows[0].message.contains("absent"));
}

#[tokio::test]
async fn a_glob_that_protects_nothing_makes_a_task_unsound() {
    let mut task = task();
    (task.protected, task.protected_globs) = globs(&["tests/**", "test/**", "tests/hidden.sh"]);
    let proof = proof(&task).await;
    assert_eq!(proof.unused_globs, ["test/**"]);
    assert!(!proof.is_sound());
}
