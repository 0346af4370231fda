//! The functional verdict: was everything done, unharmed and answered?

use std::collections::BTreeMap;

use super::server_event::{event_message, is_explained, names};
use flashrig_record::{Arm, CheckOutcome, Functional, LifeKind, Run, RunState, Session, Status};

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
    if !session.verified {
        why.push("not verified".to_owned());
    }
    why.extend(diff_exceeded.iter().cloned());
    if session.refusals > 0 {
        why.push(format!(
            "{} of its requests refused or answered with an error",
            session.refusals
        ));
    }
    if session.long_prompts > 0 {
        why.push(format!(
            "{} of its prompts refused by flashrig's gateway as longer than --max-prompt",
            session.long_prompts
        ));
    }
    if session.lost_streams > 0 {
        why.push(format!("{} of its answers broke off", session.lost_streams));
    }
    why
}

/// The verdict over all sessions of all rounds, with its reasons.
pub fn judge(run: &Run, state: RunState) -> (Functional, Vec<String>) {
    let mut failed: Vec<Failed> = Vec::new();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut unreported, mut failed_by_itself) = (false, false);
    let arms = run
        .rounds
        .iter()
        .flat_map(|r| r.arms.iter().map(move |a| (r.index, a)));
    let mut events: Vec<String> = Vec::new();
    for (round, arm) in arms {
        let place = format!("{}, round {round}", arm.kind.label());
        let of_server = arm.server_events.iter();
        let of_server = of_server.filter(|_| arm.server_lost.is_none());
        events.extend(of_server.map(|event| {
            let (who, what) = (names(event), event_message(event));
            format!("{who} ({place}): one failure of the server: {what}")
        }));
        for session in arm
            .sessions
            .iter()
            .filter(|s| s.status != Status::Interrupted)
        {
            *seen.entry(&session.id).or_default() += 1;
            if session.failures.is_empty() {
                continue;
            }
            if is_unreported(arm, session) {
                unreported = true;
            } else {
                failed_by_itself = true;
            }
            if is_explained(arm, session) {
                continue;
            }
            let why = session.failures.join("; ");
            match failed
                .iter_mut()
                .find(|f| f.id == session.id && f.why == why)
            {
                Some(known) => known.places.push(place.clone()),
                None => failed.push(Failed {
                    id: &session.id,
                    why,
                    places: vec![place.clone()],
                }),
            }
        }
    }
    for death in run.server.life.iter().filter(|l| l.what == LifeKind::Died) {
        unreported = true;
        let said = |message: &String| message.contains(&death.message);
        let mut rounds = run.rounds.iter();
        if !rounds.any(|round| round.invalid_reasons.iter().any(said)) {
            events.push(death.message.clone());
        }
    }
    let functional = if failed_by_itself {
        Functional::Fail
    } else if unreported || seen.is_empty() {
        Functional::Unknown
    } else if state == RunState::Finished {
        Functional::Pass
    } else {
        Functional::Unknown
    };
    events.extend(failed.iter().map(|f| f.label(seen[f.id])));
    (functional, events)
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

/// A session that failed in one way, and where it did.
struct Failed<'r> {
    id: &'r str,
    why: String,
    places: Vec<String>,
}

impl Failed<'_> {
    /// `of` is the number of times that the session ran.
    fn label(&self, of: usize) -> String {
        let places = match self.places.len() {
            n if n == of && n > 1 => format!("all {n} times"),
            _ => self.places.join(" and "),
        };
        format!("{} ({places}): {}", self.id, self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_record::testing::session;

    #[test]
    fn a_completed_session_whose_checks_passed_has_no_failure() {
        let mut s = session("a", 0.0, 1.0);
        s.verified = false;
        assert_eq!(session_failures(&s, &[]), ["not verified"]);
        s.verified = true;
        s.checks = vec![check(CheckOutcome::Passed)];
        assert!(session_failures(&s, &[]).is_empty());
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
            session_failures(&s, &[]),
            ["protected files touched: tests/a.rs"]
        );
    }

    #[test]
    fn a_refusal_or_a_lost_answer_fails_also_when_the_agent_got_over_it() {
        let mut s = session("a", 0.0, 1.0);
        s.checks = vec![check(CheckOutcome::Passed)];
        (s.refusals, s.lost_streams) = (2, 1);
        assert_eq!(session_failures(&s, &[]).len(), 2);
    }

    #[test]
    fn what_the_loss_of_the_server_cut_short_is_neither_done_nor_a_fault_of_the_agents() {
        use flashrig_record::testing::{arm, run};
        use flashrig_record::{ArmKind, Round};
        let mut cut = session("a", 0.0, 1.0);
        cut.status = Status::ServerError;
        cut.failures = vec!["the server died".into()];
        let mut lost = arm(ArmKind::Together, vec![cut]);
        lost.server_lost = Some("the server died".into());
        let mut record = run(&["a"]);
        record.rounds = vec![Round {
            index: 1,
            valid: false,
            invalid_reasons: vec!["together: the server died".into()],
            arms: vec![lost],
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
            detail: "said so".into(),
            exit_code: Some(0),
            duration_s: flashrig_clock::Seconds(0.1),
            output_tail: String::new(),
        }
    }
}
