//! The functional verdict: was everything done, unharmed and answered?

use crate::records::{CheckOutcome, Functional, Run, RunState, Session, Status};

/// Why a session does not count as done; empty when it does. `diff_exceeded` are the task's size
/// limits that the patch broke, in words.
pub fn session_failures(session: &Session, diff_exceeded: &[String]) -> Vec<String> {
    let mut why = Vec::new();
    if !session.status.is_completed() {
        why.push(session.detail.clone());
    }
    if session.status == Status::Interrupted {
        return why;
    }
    if let Some(diff) = &session.diff {
        if diff.files == 0
            && session
                .checks
                .iter()
                .any(|c| c.outcome != CheckOutcome::Passed)
        {
            why.push("the agent changed nothing".to_owned());
        }
        if !diff.protected_touched.is_empty() {
            why.push(format!(
                "protected files touched: {}",
                diff.protected_touched.join(", ")
            ));
        }
    }
    for check in session
        .checks
        .iter()
        .filter(|c| c.outcome != CheckOutcome::Passed)
    {
        why.push(format!("check {:?} {}", check.name, check.detail));
    }
    if session.checks.is_empty() && session.status.is_completed() {
        why.push("not verified".to_owned());
    }
    why.extend(diff_exceeded.iter().cloned());
    if session.refusals > 0 {
        why.push(format!(
            "{} of its requests refused or answered with an error",
            session.refusals
        ));
    }
    if session.lost_streams > 0 {
        why.push(format!("{} of its answers broke off", session.lost_streams));
    }
    why
}

/// The verdict over all sessions of all rounds, with its reasons.
pub fn judge(run: &Run, state: RunState) -> (Functional, Vec<String>) {
    let mut reasons = Vec::new();
    let mut seen = 0usize;
    let mut rig_failed = false;
    for round in &run.rounds {
        for arm in &round.arms {
            for session in &arm.sessions {
                match session.status {
                    Status::Interrupted => continue,
                    Status::RigError => rig_failed = true,
                    _ => seen += 1,
                }
                if !session.failures.is_empty() {
                    reasons.push(format!(
                        "{} ({}, round {}): {}",
                        session.id,
                        arm.kind.words(),
                        round.index,
                        session.failures.join("; ")
                    ));
                }
            }
        }
    }
    let functional = if rig_failed || seen == 0 {
        Functional::Unknown
    } else if !reasons.is_empty() {
        Functional::Fail
    } else if state == RunState::Finished {
        Functional::Pass
    } else {
        Functional::Unknown
    };
    (functional, reasons)
}
