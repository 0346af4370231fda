//! Verification: an agent's tree, with the protected files as they were, judged by the task's
//! checks.
//!
//! The tree is made anew from the patch, outside the workspace: nothing that the agent left lying
//! about takes part. Protected files come from the base, new files in protected places go, hidden
//! files come last; all this happens to git trees, before a single file is written, so that no
//! link of the agent's can lead a write astray. What must not enter this room: spawning processes
//! (see [`CheckRunner`]) and any knowledge of how the patch came about.

mod checks;
mod proof;
mod restore;
mod runner;

use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

pub use proof::{Proof, ProofCase, ProofOutcome, ProofRow, prove};
pub use runner::{CheckExit, CheckRun, CheckRunner};

use crate::task::Task;
use flashrig_record::{CheckOutcome, CheckResult, SessionFailure};
use flashrig_workspace::{Base, Patch, shown_path};

/// What verification found. Data only; [`Verification::passed`] says what it comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verification {
    /// Every check of the task, in its order.
    pub checks: Vec<CheckResult>,
    /// Protected files that the agent changed, deleted or added; restored before the checks.
    pub protected_touched: Vec<String>,
    /// Files that the agent left where a hidden file goes; replaced before the checks.
    pub hidden_overwritten: Vec<String>,
    /// Size limits of the patch that were exceeded.
    pub diff_limit_exceeded: Vec<SessionFailure>,
}

impl Verification {
    /// Whether the task is done: every check passed, nothing protected was touched, and the patch
    /// is within its limits.
    pub fn passed(&self) -> bool {
        self.checks
            .iter()
            .all(|check| check.outcome == CheckOutcome::Passed)
            && self.protected_touched.is_empty()
            && self.diff_limit_exceeded.is_empty()
    }

    /// Checks that could not be started: the rig's failure, which says nothing about the agent.
    pub fn not_run(&self) -> impl Iterator<Item = &CheckResult> {
        self.checks
            .iter()
            .filter(|check| check.outcome == CheckOutcome::NotRun)
    }

    /// Why the task is not done, one phrase for each reason; empty when it is.
    pub fn reasons(&self) -> Vec<String> {
        let checks = self
            .checks
            .iter()
            .filter(|check| check.outcome != CheckOutcome::Passed)
            .map(|check| format!("check {} {}", check.name, check.detail));
        let touched = (!self.protected_touched.is_empty()).then(|| {
            format!(
                "protected files touched: {}",
                self.protected_touched.join(", ")
            )
        });
        checks
            .chain(touched)
            .chain(self.diff_limit_exceeded.iter().map(ToString::to_string))
            .collect()
    }
}

/// Verifies a patch: writes the tree to be judged into the fresh folder `scratch` and runs the
/// task's checks there, one after the other, all of them.
///
/// # Errors
/// When the tree cannot be made. A check that fails, hangs or cannot be started is a result.
pub async fn verify(
    task: &Task,
    base: &Base,
    patch: &Patch,
    scratch: &Path,
    runner: &dyn CheckRunner,
) -> anyhow::Result<Verification> {
    let (touched, overwritten) = {
        let (task, base) = (task.clone(), base.clone());
        let (tree, scratch) = (patch.tree.clone(), scratch.to_owned());
        // Files are written by the hundreds; the gateway must not wait for it.
        tokio::task::spawn_blocking(move || prepare(&task, &base, &tree, &scratch))
            .await
            .context("the preparation of a verification was cut off")??
    };
    let mut checks = Vec::with_capacity(task.checks.len());
    for check in &task.checks {
        let run = runner.run(&check.run, scratch, check.time_limit).await;
        checks.push(checks::judge(check, &run));
    }
    Ok(Verification {
        checks,
        protected_touched: touched,
        hidden_overwritten: overwritten,
        diff_limit_exceeded: checks::exceeded(task.diff_limit, patch),
    })
}

/// Makes the tree to be judged and checks it out.
fn prepare(
    task: &Task,
    base: &Base,
    tree: &str,
    scratch: &Path,
) -> anyhow::Result<(Vec<String>, Vec<String>)> {
    let mut hidden = Vec::with_capacity(task.hidden.len());
    for file in &task.hidden {
        hidden.push((file.to.as_bytes().to_vec(), base.store_file(&file.bytes)?));
    }
    let restored = restore::restore(
        &base.files(&base.base_tree())?,
        &base.files(tree)?,
        &task.protected,
        &hidden,
    );
    let restored = restored.with_context(|| format!("task {} cannot be verified", task.name))?;
    let tree = base.store_tree(&restored.files)?;
    base.checkout(&tree, scratch)
        .with_context(|| format!("cannot write the tree to verify into {}", scratch.display()))?;
    let shown = |paths: Vec<Vec<u8>>| paths.iter().map(|p| shown_path(p)).collect();
    Ok((shown(restored.touched), shown(restored.overwritten)))
}
