//! Proving a task: that it cannot be passed by doing nothing or by cheating, and that it can be
//! passed by its reference solution.

use flashrig_config::plural;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

use super::{CheckRunner, Verification, verify};
use crate::task::{Before, Task};
use flashrig_record::CheckOutcome;
use flashrig_workspace::{Base, Patch, shown_path};

/// What was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofCase {
    /// The base as it is.
    Untouched,
    /// The reference solution.
    Solution,
    /// A dishonest solution, by name.
    Cheat(String),
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofOutcome {
    /// As a sound task has it.
    AsItShould,
    /// The task is not sound.
    Unsound,
    /// A check could not be started: nothing is proved either way.
    Undecided,
}

/// One case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProofRow {
    /// What was tried.
    pub case: ProofCase,
    /// What came of it.
    pub outcome: ProofOutcome,
    /// The same in words.
    #[serde(rename = "words")]
    pub message: String,
    /// The verification; `None` when the case's patch does not apply.
    pub verification: Option<Verification>,
}

/// All cases of one task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proof {
    /// The task's name.
    pub task: String,
    /// Globs of `protected` that match no file of the base and no hidden file: they protect nothing,
    /// and the task is not sound.
    pub unused_globs: Vec<String>,
    /// Untouched, solution, then each cheat.
    pub rows: Vec<ProofRow>,
}

impl Proof {
    /// Whether every case went as it should.
    pub fn is_sound(&self) -> bool {
        let as_it_should = |row: &ProofRow| row.outcome == ProofOutcome::AsItShould;
        self.unused_globs.is_empty() && self.rows.iter().all(as_it_should)
    }
}

/// Tries every case of the task, each in its own folder inside the fresh folder `scratch`, which
/// is emptied again case by case. The untouched base and the solution are tried `times` times, each
/// in a fresh tree: a check that is not the same each time is flaky, and the task not sound.
///
/// # Errors
/// When a tree cannot be made. An unsound task is a result.
pub async fn prove(
    task: &Task,
    base: &Base,
    scratch: &Path,
    runner: &dyn CheckRunner,
    times: u32,
) -> anyhow::Result<Proof> {
    let solution = (ProofCase::Solution, task.solution.as_str());
    let cheats = task
        .cheats
        .iter()
        .map(|c| (ProofCase::Cheat(c.name.clone()), c.patch.as_str()));
    let cases = [(ProofCase::Untouched, ""), solution]
        .into_iter()
        .chain(cheats);
    let mut rows = Vec::new();
    for (number, (case, text)) in cases.enumerate() {
        let folder = scratch.join(format!("case-{number}"));
        let row = match patched(base, text).await? {
            Ok(patch) => {
                let times = match case {
                    ProofCase::Untouched | ProofCase::Solution => times.max(1),
                    ProofCase::Cheat(_) => 1,
                };
                let mut all = Vec::new();
                for _ in 0..times {
                    all.push(verify(task, base, &patch, &folder, runner).await?);
                    std::fs::remove_dir_all(&folder)
                        .with_context(|| format!("cannot remove folder {}", folder.display()))?;
                }
                judge(task, case, &patch, all)
            }
            Err(reason) => ProofRow {
                message: format!("the patch of {} is not usable: {reason}", name(&case)),
                case,
                outcome: ProofOutcome::Unsound,
                verification: None,
            },
        };
        rows.push(row);
    }
    Ok(Proof {
        task: task.name.clone(),
        unused_globs: unused_globs(task, base).await?,
        rows,
    })
}

async fn unused_globs(task: &Task, base: &Base) -> anyhow::Result<Vec<String>> {
    let tree = base.clone();
    let files = tokio::task::spawn_blocking(move || tree.files(&tree.base_tree()))
        .await
        .context("reading the base was cut off")??;
    let of_base = files.keys().map(|path| shown_path(path));
    let hidden = task.hidden.iter().map(|file| file.to.clone());
    let mut used = vec![false; task.protected_globs.len()];
    for path in of_base.chain(hidden) {
        for index in task.protected.matches(&path) {
            // Those of `forbidden` come after them, and match nothing on purpose.
            if let Some(used) = used.get_mut(index) {
                *used = true;
            }
        }
    }
    let globs = task.protected_globs.iter().zip(used);
    Ok(globs
        .filter(|(_, used)| !used)
        .map(|(glob, _)| glob.clone())
        .collect())
}

async fn patched(base: &Base, text: &str) -> anyhow::Result<Result<Patch, String>> {
    let (base, text) = (base.clone(), text.to_owned());
    let patch = tokio::task::spawn_blocking(move || base.tree_with_patch(&text))
        .await
        .context("applying a patch was cut off")?;
    Ok(patch.map_err(|error| format!("{error:#}")))
}

fn name(case: &ProofCase) -> String {
    match case {
        ProofCase::Untouched => "the untouched base".into(),
        ProofCase::Solution => "the reference solution".into(),
        ProofCase::Cheat(name) => format!("cheat {name}"),
    }
}

/// The checks that did not come out the same each time, with how often each passed.
fn flaky(task: &Task, all: &[Verification]) -> Vec<String> {
    let passed = |index: usize| {
        let outcomes = all.iter().filter_map(|found| found.checks.get(index));
        outcomes
            .filter(|check| check.outcome == CheckOutcome::Passed)
            .count()
    };
    let checks = task.checks.iter().enumerate();
    checks
        .map(|(index, check)| (check, passed(index)))
        .filter(|(_, passed)| *passed > 0 && *passed < all.len())
        .map(|(check, passed)| {
            format!(
                "check {} is flaky: it passed {passed} of {} times on the same tree",
                check.name,
                all.len()
            )
        })
        .collect()
}

/// Judges a case by all of its tries. Of a flaky one a try that failed is shown.
fn judge(task: &Task, case: ProofCase, patch: &Patch, all: Vec<Verification>) -> ProofRow {
    let flaky = flaky(task, &all);
    let failed = |found: &Verification| !found.passed();
    let is_shown = |found: &&Verification| flaky.is_empty() || failed(found);
    let shown = all.iter().find(is_shown).or_else(|| all.first()).cloned();
    let Some(found) = shown else {
        return ProofRow {
            message: "nothing was tried".to_owned(),
            case,
            outcome: ProofOutcome::Undecided,
            verification: None,
        };
    };
    let row = judge_once(task, case, patch, found);
    match (row.outcome, flaky.is_empty()) {
        (ProofOutcome::Undecided, _) | (_, true) => row,
        _ => ProofRow {
            outcome: ProofOutcome::Unsound,
            message: flaky.join("; "),
            ..row
        },
    }
}

fn judge_once(task: &Task, case: ProofCase, patch: &Patch, found: Verification) -> ProofRow {
    let not_run: Vec<_> = found
        .not_run()
        .map(|check| format!("check {} {}", check.name, check.detail))
        .collect();
    let (outcome, message) = if !not_run.is_empty() {
        // A check that never ran must not pass for one that failed as it should.
        (
            ProofOutcome::Undecided,
            format!("nothing is proved: {}", not_run.join("; ")),
        )
    } else {
        match &case {
            ProofCase::Untouched => untouched(task, &found),
            ProofCase::Solution => solution(patch, &found),
            ProofCase::Cheat(name) => cheat(name, patch, &found),
        }
    };
    ProofRow {
        case,
        outcome,
        message,
        verification: Some(found),
    }
}

fn untouched(task: &Task, found: &Verification) -> (ProofOutcome, String) {
    let mut wrong = Vec::new();
    let mut failing = Vec::new();
    for (check, result) in task.checks.iter().zip(&found.checks) {
        let passed = result.outcome == CheckOutcome::Passed;
        match (check.before, passed) {
            (Before::Pass, true) => {}
            (Before::Fail, false) => {
                failing.push(format!("check {} {}", check.name, result.detail))
            }
            (Before::Pass, false) => wrong.push(format!(
                "check {} must pass on the untouched base but {}",
                check.name, result.detail
            )),
            (Before::Fail, true) => wrong.push(format!(
                "check {} must fail on the untouched base but passed",
                check.name
            )),
        }
    }
    if !wrong.is_empty() {
        (ProofOutcome::Unsound, wrong.join("; "))
    } else if failing.is_empty() {
        (
            ProofOutcome::Unsound,
            "no check fails on the untouched base: nothing is asked for".into(),
        )
    } else {
        (
            ProofOutcome::AsItShould,
            format!("fails as it should: {}", failing.join("; ")),
        )
    }
}

fn solution(patch: &Patch, found: &Verification) -> (ProofOutcome, String) {
    if patch.is_empty() {
        return (
            ProofOutcome::Unsound,
            "the reference solution changes nothing".into(),
        );
    }
    if found.passed() {
        let message = format!(
            "passes as it should ({}, +{} -{})",
            plural(patch.files, "file"),
            patch.insertions,
            patch.deletions
        );
        (ProofOutcome::AsItShould, message)
    } else {
        let message = format!(
            "the reference solution must pass but: {}",
            found.reasons().join("; ")
        );
        (ProofOutcome::Unsound, message)
    }
}

fn cheat(name: &str, patch: &Patch, found: &Verification) -> (ProofOutcome, String) {
    if patch.is_empty() {
        (
            ProofOutcome::Unsound,
            format!("cheat {name} changes nothing"),
        )
    } else if found.passed() {
        (
            ProofOutcome::Unsound,
            format!("cheat {name} passes: the checks do not see through it"),
        )
    } else {
        (
            ProofOutcome::AsItShould,
            format!("fails as it should: {}", found.reasons().join("; ")),
        )
    }
}
