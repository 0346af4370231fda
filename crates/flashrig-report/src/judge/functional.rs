//! The functional verdict: was everything done, unharmed and answered?

use std::collections::BTreeMap;

use super::server_event::is_explained;
use flashrig_record::{
    Arm, CheckOutcome, Functional, LifeFact, LifeKind, OddAnswers, Oddity, Place, Placed, Run,
    RunState, ServerLoss, Session, SessionFailure, Status, VerdictReason, group,
};

/// Why a session does not count as done; empty when it does. `exceeded` are the task's size limits
/// that the patch broke.
pub fn session_failures(session: &Session, exceeded: Vec<SessionFailure>) -> Vec<SessionFailure> {
    let mut why = Vec::new();
    if !session.status.is_completed() {
        why.push(SessionFailure::NotCompleted {
            status: session.status,
            detail: session.detail.clone(),
        });
    }
    if session.status == Status::Interrupted {
        return why;
    }
    let failed = || {
        let checks = session.checks.iter();
        checks.filter(|check| check.outcome != CheckOutcome::Passed)
    };
    if let Some(diff) = &session.diff {
        if diff.files == 0 && failed().next().is_some() {
            let contradicts = |odd: &&OddAnswers| {
                matches!(
                    odd.oddity,
                    Oddity::ToolCallAsText | Oddity::StopContradictsToolCalls
                )
            };
            let odd: Vec<OddAnswers> = session
                .odd_answers
                .iter()
                .filter(contradicts)
                .cloned()
                .collect();
            if !odd.is_empty() {
                why.push(SessionFailure::AnswersContradict { odd });
            }
            why.push(SessionFailure::NothingChanged);
        }
        if !diff.protected_touched.is_empty() {
            let paths = diff.protected_touched.clone();
            why.push(SessionFailure::ProtectedTouched { paths });
        }
    }
    why.extend(failed().map(|check| SessionFailure::CheckFailed {
        check: check.name.clone(),
        detail: check.detail.clone(),
    }));
    if !session.verified {
        why.push(SessionFailure::NotVerified);
    }
    why.extend(exceeded);
    if session.refusals > 0 {
        let requests = session.refusals;
        why.push(SessionFailure::RequestsRefused { requests });
    }
    if session.long_prompts > 0 {
        let prompts = session.long_prompts;
        why.push(SessionFailure::PromptsTooLong { prompts });
    }
    if session.lost_streams > 0 {
        let answers = session.lost_streams;
        why.push(SessionFailure::AnswersBrokeOff { answers });
    }
    why
}

/// The verdict over all sessions of all rounds, with its reasons.
pub fn judge(run: &Run, state: RunState) -> (Functional, Vec<Placed<VerdictReason>>) {
    let mut failed: Vec<(&Session, Place)> = Vec::new();
    let mut ran: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut unreported, mut failed_by_itself) = (false, false);
    let arms = run
        .rounds
        .iter()
        .flat_map(|r| r.arms.iter().map(move |a| (r.index, a)));
    let mut reasons = Vec::new();
    for (round, arm) in arms {
        let place = Place::arm(arm.kind).in_round(round);
        if arm.server_lost.is_none() {
            let events = arm.server_events.iter().cloned();
            let events = events.map(|event| VerdictReason::ServerFailed { event });
            reasons.extend(group(events.map(|event| (place.clone(), event))));
        }
        let sessions = arm.sessions.iter();
        for session in sessions.filter(|s| s.status != Status::Interrupted) {
            *ran.entry(&session.id).or_default() += 1;
            if session.failures.is_empty() {
                continue;
            }
            if is_unreported(arm, session) {
                unreported = true;
            } else {
                failed_by_itself = true;
            }
            if !is_explained(arm, session) {
                let session_there = Place::session(&session.id).in_arm(arm.kind);
                failed.push((session, session_there.in_round(round)));
            }
        }
    }
    for loss in losses(run) {
        unreported = true;
        let mut known = run.rounds.iter().flat_map(|round| &round.invalid_reasons);
        if !known.any(|reason| reason.fact.loss() == Some(loss)) {
            reasons.push(VerdictReason::ServerLost { loss: loss.clone() }.into());
        }
    }
    let functional = if failed_by_itself {
        Functional::Fail
    } else if unreported || ran.is_empty() {
        Functional::Unknown
    } else if state == RunState::Finished {
        Functional::Pass
    } else {
        Functional::Unknown
    };
    reasons.extend(of_sessions(&failed, &ran));
    (functional, reasons)
}

/// How the server was lost, each time.
fn losses(run: &Run) -> impl Iterator<Item = &ServerLoss> {
    let died = run.server.life.iter().filter(|l| l.what == LifeKind::Died);
    died.filter_map(|life| match &life.fact {
        LifeFact::Lost { loss } => Some(loss),
        _ => None,
    })
}

/// Equal failures once, with the sessions that have them. A session that failed so every time is
/// named without arms and rounds.
fn of_sessions(
    failed: &[(&Session, Place)],
    ran: &BTreeMap<&str, usize>,
) -> Vec<Placed<VerdictReason>> {
    let reasons = failed.iter().map(|(session, place)| {
        let same = failed
            .iter()
            .filter(|(other, _)| other.id == session.id && other.failures == session.failures);
        let times = same.count();
        let always = times > 1 && ran.get(session.id.as_str()) == Some(&times);
        let place = if always {
            Place::session(&session.id)
        } else {
            place.clone()
        };
        let failures = session.failures.clone();
        (place, VerdictReason::SessionFailed { failures })
    });
    let mut grouped = group(reasons);
    for reason in &mut grouped {
        let mut known = Vec::new();
        reason.places.retain(|place| {
            let is_new = !known.contains(place);
            known.push(place.clone());
            is_new
        });
    }
    grouped
}

/// Whether it cannot be told if the session's work was done: the rig failed, a check could not be
/// started, an agent that came to its own end was not verified, or the server was lost under it.
fn is_unreported(arm: &Arm, session: &Session) -> bool {
    let is_cut = arm.server_lost.is_some() && session.status == Status::ServerError;
    is_cut
        || session.status == Status::RigError
        || session
            .checks
            .iter()
            .any(|c| c.outcome == CheckOutcome::NotRun)
        || (session.status.is_completed() && !session.verified)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_record::testing::session;

    #[test]
    fn a_completed_session_whose_checks_passed_has_no_failure() {
        let mut s = session("a", 0.0, 1.0);
        s.verified = false;
        assert_eq!(
            session_failures(&s, Vec::new()),
            [SessionFailure::NotVerified]
        );
        s.verified = true;
        s.checks = vec![check(CheckOutcome::Passed)];
        assert!(session_failures(&s, Vec::new()).is_empty());
    }

    #[test]
    fn a_touched_protected_file_fails_also_when_every_check_passed() {
        let mut s = session("a", 0.0, 1.0);
        s.checks = vec![check(CheckOutcome::Passed)];
        s.diff = Some(flashrig_record::Diff {
            files: 1,
            protected_touched: vec!["tests/a.rs".into()],
            ..Default::default()
        });
        assert_eq!(
            session_failures(&s, Vec::new()),
            [SessionFailure::ProtectedTouched {
                paths: vec!["tests/a.rs".into()]
            }]
        );
    }

    #[test]
    fn a_refusal_or_a_lost_answer_fails_also_when_the_agent_got_over_it() {
        let mut s = session("a", 0.0, 1.0);
        s.checks = vec![check(CheckOutcome::Passed)];
        (s.refusals, s.lost_streams) = (2, 1);
        assert_eq!(session_failures(&s, Vec::new()).len(), 2);
    }

    #[test]
    fn what_the_loss_of_the_server_cut_short_is_neither_done_nor_a_fault_of_the_agents() {
        use flashrig_record::testing::{arm, run};
        use flashrig_record::{ArmKind, Fact as _, InvalidReason, Round, ServerLife, ServerLoss};
        let mut cut = session("a", 0.0, 1.0);
        cut.status = Status::ServerError;
        cut.failures = vec![SessionFailure::NotVerified];
        let loss = ServerLoss::other("the server died".into());
        let mut lost = arm(ArmKind::Together, vec![cut]);
        lost.server_lost = Some(loss.clone());
        let mut record = run(&["a"]);
        record.rounds = vec![Round {
            index: 1,
            valid: false,
            invalid_reasons: vec![InvalidReason::ServerLost { loss: loss.clone() }.into()],
            arms: vec![lost],
        }];
        record.server.life = vec![ServerLife {
            at_s: flashrig_clock::Seconds(0.5),
            what: LifeKind::Died,
            fact: LifeFact::Lost { loss },
            last_lines: Vec::new(),
            ready_after_s: None,
        }];
        let (functional, reasons) = judge(&record, RunState::Finished);
        assert_eq!(functional, Functional::Unknown);
        assert!(
            reasons.is_empty(),
            "the round's reason says it: {reasons:?}"
        );
    }

    fn check(outcome: CheckOutcome) -> flashrig_record::CheckResult {
        flashrig_record::CheckResult {
            name: "c".into(),
            outcome,
            detail: flashrig_record::CheckDetail::Passed,
            exit_code: Some(0),
            duration_s: flashrig_clock::Seconds(0.1),
            output_tail: String::new(),
        }
    }
}
