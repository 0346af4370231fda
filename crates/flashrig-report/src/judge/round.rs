//! Figures of an arm, and whether a round's times may be compared.

use super::server_event::{event_message, is_explained, names};
use flashrig_clock::Seconds;
use flashrig_record::{Arm, ArmKind, Session};

/// Fills in the figures of an arm that follow from its sessions. `cores` is the number of
/// processors, for the share that the agents used.
pub fn arm_figures(arm: &mut Arm, cores: Option<u32>) {
    let spans: Vec<(f64, f64)> = arm.sessions.iter().filter_map(span).collect();
    let complete = spans.len() == arm.sessions.len() && !spans.is_empty();
    arm.max_overlap = (!spans.is_empty()).then(|| max_overlap(&spans));
    arm.makespan_s = complete.then(|| {
        let first = spans.iter().map(|s| s.0).fold(f64::INFINITY, f64::min);
        let last = spans.iter().map(|s| s.1).fold(f64::NEG_INFINITY, f64::max);
        Seconds(last - first)
    });
    arm.sum_of_walls_s = complete.then(|| Seconds(spans.iter().map(|s| s.1 - s.0).sum()));
    arm.start_skew_s = (arm.kind != ArmKind::BackToBack && complete).then(|| {
        let first = spans.iter().map(|s| s.0).fold(f64::INFINITY, f64::min);
        let last = spans.iter().map(|s| s.0).fold(f64::NEG_INFINITY, f64::max);
        Seconds(last - first)
    });
    arm.cached_share = share(arm);
    let busy = arm
        .sessions
        .iter()
        .map(|s| s.cpu_s.map(|c| c.0))
        .sum::<Option<f64>>();
    arm.cpu_share = match (busy, arm.sum_of_walls_s, arm.makespan_s, cores) {
        (Some(busy), Some(walls), Some(makespan), Some(cores)) if cores > 0 => {
            // Back to back the agents only run during their walls.
            let span = if arm.kind == ArmKind::BackToBack {
                walls.0
            } else {
                makespan.0
            };
            (span > 0.0).then(|| busy / (span * f64::from(cores)))
        }
        _ => None,
    };
}

fn span(session: &Session) -> Option<(f64, f64)> {
    Some((session.started_s?.0, session.ended_s?.0))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "token counts are far below 2^53"
)]
fn share(arm: &Arm) -> Option<f64> {
    let cached = arm
        .sessions
        .iter()
        .map(|s| s.cached_tokens)
        .sum::<Option<u64>>()?;
    let input = arm
        .sessions
        .iter()
        .map(|s| s.input_tokens)
        .sum::<Option<u64>>()?;
    (input > 0).then(|| cached as f64 / input as f64)
}

/// The largest number of half-open spans that hold one instant.
fn max_overlap(spans: &[(f64, f64)]) -> u32 {
    let overlap = spans
        .iter()
        .map(|(start, _)| {
            spans
                .iter()
                .filter(|(s, e)| s <= start && start < e)
                .count()
        })
        .max()
        .unwrap_or(0);
    u32::try_from(overlap.max(1)).unwrap_or(u32::MAX)
}

/// Whether the times of a round may be compared, with the reasons when they may not.
/// `planned` is the number of sessions of each arm, and `kinds` are the arms that were planned.
pub fn round_validity(arms: &[Arm], planned: usize, kinds: &[ArmKind]) -> (bool, Vec<String>) {
    let mut reasons = Vec::new();
    // After the loss of the server no other arm of the round is run.
    let is_lost = arms.iter().any(|arm| arm.server_lost.is_some());
    for kind in kinds.iter().copied() {
        let Some(arm) = arms.iter().find(|a| a.kind == kind) else {
            if is_lost {
                continue;
            }
            reasons.push(format!("the arm {} did not run", kind.label()));
            continue;
        };
        if let Some(message) = &arm.server_lost {
            // What follows from it is not said for each session.
            reasons.push(format!("{}: {message}", kind.label()));
        } else if arm.sessions.len() < planned {
            reasons.push(format!(
                "{} of {planned} sessions ran {}",
                arm.sessions.len(),
                kind.label()
            ));
        }
        let events = arm.server_events.iter();
        for event in events.filter(|_| arm.server_lost.is_none()) {
            reasons.push(format!(
                "{} the server failed as a whole: {}, of {}",
                kind.label(),
                event_message(event),
                names(event)
            ));
        }
        // What an event of the server explains is said once, with it.
        let own = |s: &&Session| !is_explained(arm, s);
        for s in arm
            .sessions
            .iter()
            .filter(|s| !s.status.is_completed())
            .filter(own)
        {
            reasons.push(format!("{} {}: {}", s.id, kind.label(), s.status.label()));
        }
        for s in arm
            .sessions
            .iter()
            .filter(|s| s.status.is_completed() && s.refusals + s.lost_streams > 0)
            .filter(own)
        {
            reasons.push(format!(
                "{} {}: {} requests refused, {} answers broken off",
                s.id,
                kind.label(),
                s.refusals,
                s.lost_streams
            ));
        }
        for s in arm
            .sessions
            .iter()
            .filter(|s| s.status.is_completed() && s.long_prompts > 0)
        {
            reasons.push(format!(
                "{} {}: {} prompts above --max-prompt turned away",
                s.id,
                kind.label(),
                s.long_prompts
            ));
        }
        if kind == ArmKind::BackToBack && arm.max_overlap.is_some_and(|o| o > 1) {
            reasons.push("sessions of the back-to-back arm overlapped".to_owned());
        }
    }
    reasons.extend(unlike(arms, ArmKind::Together));
    reasons.extend(unlike(arms, ArmKind::Gated));
    (reasons.is_empty(), reasons)
}

/// Sessions whose arms cannot be compared although both completed: the work was done in one arm
/// only, or the wall ends at the exit in one and at the result in the other.
fn unlike(arms: &[Arm], kind: ArmKind) -> Vec<String> {
    let of = |kind| arms.iter().find(|a| a.kind == kind);
    let (Some(together), Some(alone)) = (of(kind), of(ArmKind::BackToBack)) else {
        return Vec::new();
    };
    let mut reasons = Vec::new();
    for t in together.sessions.iter().filter(|s| s.status.is_completed()) {
        let Some(a) = alone
            .sessions
            .iter()
            .find(|s| s.id == t.id && s.status.is_completed())
        else {
            continue;
        };
        let explained = is_explained(together, t) || is_explained(alone, a);
        if t.failures.is_empty() != a.failures.is_empty() && !explained {
            let (done, not) = if t.failures.is_empty() {
                (together.kind, alone.kind)
            } else {
                (alone.kind, together.kind)
            };
            reasons.push(format!(
                "{} was done {} and not {}",
                t.id,
                done.label(),
                not.label()
            ));
        }
        if t.status != a.status {
            reasons.push(format!("{} exited by itself in one arm only", t.id));
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_record::testing::{arm, session};
    use flashrig_record::{ServerEvent, Status};

    const BOTH: [ArmKind; 2] = [ArmKind::Together, ArmKind::BackToBack];

    #[test]
    fn touching_spans_do_not_overlap_and_crossing_ones_do() {
        assert_eq!(max_overlap(&[(0.0, 1.0), (1.0, 2.0)]), 1);
        assert_eq!(max_overlap(&[(0.0, 2.0), (1.0, 3.0), (1.5, 1.7)]), 3);
    }

    #[test]
    fn makespan_runs_from_first_start_to_last_finish_and_skew_between_starts() {
        let mut a = arm(
            ArmKind::Together,
            vec![session("a", 1.0, 5.0), session("b", 1.25, 7.0)],
        );
        arm_figures(&mut a, Some(2));
        assert_eq!(a.makespan_s, Some(Seconds(6.0)));
        assert_eq!(a.start_skew_s, Some(Seconds(0.25)));
        assert_eq!(a.sum_of_walls_s, Some(Seconds(9.75)));
        assert_eq!(a.max_overlap, Some(2));
    }

    #[test]
    fn an_arm_with_a_session_that_never_ended_has_no_makespan() {
        let mut lost = session("b", 1.0, 2.0);
        lost.ended_s = None;
        let mut a = arm(ArmKind::Together, vec![session("a", 1.0, 5.0), lost]);
        arm_figures(&mut a, Some(2));
        assert_eq!(a.makespan_s, None);
        assert_eq!(a.sum_of_walls_s, None);
    }

    #[test]
    fn work_that_was_done_in_one_arm_only_is_not_compared() {
        let b = arm(ArmKind::BackToBack, vec![session("a", 0.0, 5.0)]);
        let mut undone = session("a", 10.0, 11.0);
        undone.failures = vec!["the agent changed nothing".into()];
        let t = arm(ArmKind::Together, vec![undone]);
        let (valid, reasons) = round_validity(&[b, t], 1, &BOTH);
        assert!(!valid);
        assert_eq!(reasons, ["a was done back to back and not together"]);
    }

    #[test]
    fn an_event_of_the_server_is_one_reason_and_not_one_for_each_session() {
        let hit = |id: &str, refusals| {
            let mut s = session(id, 10.0, 15.0);
            (s.status, s.refusals) = (Status::ServerError, refusals);
            s.failures = vec!["the server failed request 1".into(), "not done".into()];
            s
        };
        let alone = vec![session("a", 0.0, 5.0), session("b", 5.0, 9.0)];
        let b = arm(ArmKind::BackToBack, alone);
        let mut got_over_it = session("c", 10.0, 15.0);
        got_over_it.refusals = 1;
        got_over_it.failures = vec!["1 of its requests refused".into()];
        let mut t = arm(
            ArmKind::Together,
            vec![hit("a", 1), hit("b", 3), got_over_it],
        );
        t.server_events = vec![ServerEvent {
            at_s: Seconds(12.0),
            sessions: ["a", "b", "c"].map(str::to_owned).to_vec(),
            requests: 3,
            status: Some(500),
            refusal: None,
            message: Some("context does not fit".into()),
        }];
        let (valid, reasons) = round_validity(&[b, t], 2, &BOTH);
        assert!(!valid);
        assert_eq!(
            reasons,
            [
                "together the server failed as a whole: all 3 requests in flight failed at once (500: \
              context does not fit), of a, b and c"
            ]
        );
    }

    #[test]
    fn the_loss_of_the_server_is_the_one_reason_though_no_session_ended_and_an_arm_did_not_run() {
        let mut cut = session("a", 0.0, 5.0);
        cut.status = Status::ServerError;
        cut.failures = vec!["the server died".into(), "not verified".into()];
        let mut b = arm(ArmKind::BackToBack, vec![cut]);
        b.server_lost = Some("the server x died: killed by signal 9".into());
        let (valid, reasons) = round_validity(&[b], 2, &BOTH);
        assert!(!valid);
        assert_eq!(
            reasons,
            ["back to back: the server x died: killed by signal 9"]
        );
    }

    #[test]
    fn a_prompt_that_was_turned_away_makes_the_round_invalid() {
        let b = arm(ArmKind::BackToBack, vec![session("a", 0.0, 5.0)]);
        let mut cut = session("a", 10.0, 15.0);
        cut.long_prompts = 2;
        let (valid, reasons) = round_validity(&[b, arm(ArmKind::Together, vec![cut])], 1, &BOTH);
        assert!(!valid);
        assert_eq!(
            reasons,
            ["a together: 2 prompts above --max-prompt turned away"]
        );
    }

    #[test]
    fn overlap_back_to_back_makes_the_round_invalid() {
        let mut b = arm(
            ArmKind::BackToBack,
            vec![session("a", 0.0, 5.0), session("b", 4.0, 7.0)],
        );
        arm_figures(&mut b, None);
        let t = arm(
            ArmKind::Together,
            vec![session("a", 10.0, 15.0), session("b", 10.0, 17.0)],
        );
        let (valid, reasons) = round_validity(&[b, t], 2, &BOTH);
        assert!(!valid);
        assert_eq!(reasons, ["sessions of the back-to-back arm overlapped"]);
    }
}
