//! Figures of an arm, and whether a round's times may be compared.

use super::server_event::is_explained;
use flashrig_clock::Seconds;
use flashrig_record::{Arm, ArmKind, InvalidReason, Place, Placed, Session, group};

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
    arm.start_skew_s = (!arm.kind.is_serial() && complete).then(|| {
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
            let span = if arm.kind.is_serial() {
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

/// Why the times of a round are not compared; empty when they are. `planned` is the number of
/// sessions of each arm, and `kinds` are the arms that were planned.
pub fn round_validity(
    arms: &[Arm],
    planned: usize,
    kinds: &[ArmKind],
) -> Vec<Placed<InvalidReason>> {
    let mut reasons = Vec::new();
    // After the loss of the server no other arm of the round is run.
    let is_lost = arms.iter().any(|arm| arm.server_lost.is_some());
    for kind in kinds.iter().copied() {
        match arms.iter().find(|a| a.kind == kind) {
            Some(arm) => of_arm(arm, planned, &mut reasons),
            None if is_lost => {}
            None => reasons.push((Place::arm(kind), InvalidReason::ArmMissing)),
        }
    }
    unlike(arms, ArmKind::Together, &mut reasons);
    unlike(arms, ArmKind::Gated, &mut reasons);
    unlike(arms, ArmKind::BackToBackAgain, &mut reasons);
    group(reasons)
}

type Reasons = Vec<(Place, InvalidReason)>;

/// Other programs may use at most this share of all processors in an arm. Below it two busy cores of
/// eight, or a browser, leave a server and two agents alone; above it times are no longer the server's.
const FOREIGN_LIMIT: f64 = 0.25;
/// A hypervisor may take at most this share.
const STOLEN_LIMIT: f64 = 0.10;
/// Some task may wait for memory in at most this share of the time.
const MEMORY_LIMIT: f64 = 0.20;

/// Why the times of a round are not those of the server and the agents: what else the machine did.
pub fn foreign_load(arms: &[Arm]) -> Vec<Placed<InvalidReason>> {
    let mut reasons = Vec::new();
    for arm in arms {
        let Some(machine) = arm.machine else { continue };
        let above = |share: Option<f64>, limit: f64| share.filter(|share| *share > limit);
        let found = [
            above(machine.foreign_cpu_share, FOREIGN_LIMIT)
                .map(|cpu_share| InvalidReason::ForeignLoad { cpu_share }),
            above(machine.stolen_cpu_share, STOLEN_LIMIT)
                .map(|cpu_share| InvalidReason::StolenTime { cpu_share }),
            above(machine.memory_stall_share, MEMORY_LIMIT)
                .map(|share| InvalidReason::MemoryPressure { share }),
        ];
        let here = Place::arm(arm.kind);
        reasons.extend(found.into_iter().flatten().map(|r| (here.clone(), r)));
    }
    group(reasons)
}

fn of_arm(arm: &Arm, planned: usize, reasons: &mut Reasons) {
    let here = Place::arm(arm.kind);
    if let Some(loss) = &arm.server_lost {
        // What follows from it is not said for each session.
        let loss = loss.clone();
        reasons.push((here.clone(), InvalidReason::ServerLost { loss }));
    } else {
        if arm.sessions.len() < planned {
            let (ran, planned) = (arm.sessions.len() as u64, planned as u64);
            let missing = InvalidReason::SessionsMissing { ran, planned };
            reasons.push((here.clone(), missing));
        }
        let events = arm.server_events.iter().cloned();
        let events = events.map(|event| InvalidReason::ServerFailed { event });
        reasons.extend(events.map(|event| (here.clone(), event)));
    }
    for s in &arm.sessions {
        // What an event of the server explains is said once, with it.
        let own = !is_explained(arm, s);
        let redirected = s.redirected.as_ref();
        // Each is a refused request, and is told as what it is.
        let refused = s.refusals - redirected.map_or(0, |of| of.requests).min(s.refusals);
        let reason = if !s.status.is_completed() {
            let status = s.status;
            own.then_some(InvalidReason::SessionNotCompleted { status })
        } else if refused + s.lost_streams > 0 && own {
            Some(InvalidReason::RequestsLost {
                refused,
                broken_off: s.lost_streams,
            })
        } else {
            None
        };
        let prompts = s.long_prompts;
        let long = (s.status.is_completed() && prompts > 0)
            .then_some(InvalidReason::LongPrompts { prompts });
        let there = Place::session(&s.id).in_arm(arm.kind);
        let redirected = redirected.map(|of| InvalidReason::Redirected {
            requests: of.requests,
            message: of.message.clone(),
        });
        let all = reason.into_iter().chain(long).chain(redirected);
        reasons.extend(all.map(|r| (there.clone(), r)));
    }
    let agents = arm.changed_programs.iter().cloned();
    let changed = agents.map(|agent| InvalidReason::ProgramChanged { agent });
    reasons.extend(changed.map(|reason| (here.clone(), reason)));
    for s in &arm.sessions {
        let cut = s.cut_prompts.map(|cut| InvalidReason::PromptsCut {
            requests: cut.requests,
            tokens: cut.tokens,
        });
        let there = Place::session(&s.id).in_arm(arm.kind);
        reasons.extend(cut.map(|reason| (there, reason)));
    }
    if arm.kind.is_serial() && arm.max_overlap.is_some_and(|o| o > 1) {
        reasons.push((here, InvalidReason::Overlapped));
    }
}

/// Sessions whose arms cannot be compared although both completed: the work was done in one arm
/// only, or the wall ends at the exit in one and at the result in the other.
fn unlike(arms: &[Arm], kind: ArmKind, reasons: &mut Reasons) {
    let of = |kind| arms.iter().find(|a| a.kind == kind);
    let (Some(together), Some(alone)) = (of(kind), of(ArmKind::BackToBack)) else {
        return;
    };
    for t in together.sessions.iter().filter(|s| s.status.is_completed()) {
        let Some(a) = alone
            .sessions
            .iter()
            .find(|s| s.id == t.id && s.status.is_completed())
        else {
            continue;
        };
        let place = Place::session(&t.id);
        let explained = is_explained(together, t) || is_explained(alone, a);
        if t.failures.is_empty() != a.failures.is_empty() && !explained {
            let (done, not_done) = if t.failures.is_empty() {
                (together.kind, alone.kind)
            } else {
                (alone.kind, together.kind)
            };
            let reason = InvalidReason::DoneInOneArm { done, not_done };
            reasons.push((place.clone(), reason));
        }
        if t.status != a.status {
            reasons.push((place, InvalidReason::ExitedInOneArm));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_record::testing::{arm, session};
    use flashrig_record::{
        Fact as _, MachineLoad, Redirected, ServerEvent, ServerLoss, SessionFailure, Status,
    };

    fn texts(reasons: &[Placed<InvalidReason>]) -> Vec<String> {
        reasons.iter().map(ToString::to_string).collect()
    }

    const BOTH: [ArmKind; 2] = [ArmKind::Together, ArmKind::BackToBack];

    #[test]
    fn load_of_others_in_one_arm_is_named_with_the_arm_and_unknown_load_is_not() {
        let mut busy = arm(ArmKind::Together, Vec::new());
        busy.machine = Some(MachineLoad {
            foreign_cpu_share: Some(0.8),
            stolen_cpu_share: Some(0.02),
            ..MachineLoad::default()
        });
        let quiet = arm(ArmKind::BackToBack, Vec::new());
        let reasons = texts(&foreign_load(&[busy, quiet]));
        assert_eq!(
            reasons,
            [
                "together: other programs used 80% of the machine's processors; run this again when the \
              machine is idle"
            ]
        );
    }

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
        undone.failures = vec![SessionFailure::NothingChanged];
        let t = arm(ArmKind::Together, vec![undone]);
        let reasons = texts(&round_validity(&[b, t], 1, &BOTH));
        assert_eq!(reasons, ["a: done back to back and not together"]);
    }

    #[test]
    fn an_event_of_the_server_is_one_reason_and_not_one_for_each_session() {
        let hit = |id: &str, refusals| {
            let mut s = session(id, 10.0, 15.0);
            (s.status, s.refusals) = (Status::ServerError, refusals);
            s.failures = vec![SessionFailure::NotVerified];
            s
        };
        let alone = vec![session("a", 0.0, 5.0), session("b", 5.0, 9.0)];
        let b = arm(ArmKind::BackToBack, alone);
        let mut got_over_it = session("c", 10.0, 15.0);
        got_over_it.refusals = 1;
        got_over_it.failures = vec![SessionFailure::RequestsRefused { requests: 1 }];
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
        let reasons = texts(&round_validity(&[b, t], 2, &BOTH));
        assert_eq!(
            reasons,
            [
                "together: the server failed as a whole: all 3 requests in flight failed at once (500: \
              context does not fit), of a, b and c"
            ]
        );
    }

    #[test]
    fn the_loss_of_the_server_is_the_one_reason_though_no_session_ended_and_an_arm_did_not_run() {
        let mut cut = session("a", 0.0, 5.0);
        cut.status = Status::ServerError;
        cut.failures = vec![SessionFailure::NotVerified];
        let mut b = arm(ArmKind::BackToBack, vec![cut]);
        b.server_lost = Some(ServerLoss::other(
            "the server x died: killed by signal 9".into(),
        ));
        let reasons = texts(&round_validity(&[b], 2, &BOTH));
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
        let reasons = texts(&round_validity(
            &[b, arm(ArmKind::Together, vec![cut])],
            1,
            &BOTH,
        ));
        assert_eq!(
            reasons,
            ["a (together): 2 prompts above --max-prompt turned away"]
        );
    }

    #[test]
    fn a_redirect_makes_the_round_invalid_is_named_and_is_no_other_refusal() {
        let b = arm(ArmKind::BackToBack, vec![session("a", 0.0, 5.0)]);
        let mut sent_away = session("a", 10.0, 15.0);
        sent_away.refusals = 1;
        sent_away.redirected = Some(Redirected {
            requests: 1,
            message: "the server answers 307 and points to http://g".to_owned(),
        });
        let arms = [b, arm(ArmKind::Together, vec![sent_away])];
        assert_eq!(
            texts(&round_validity(&arms, 1, &BOTH)),
            ["a (together): 1 request redirected: the server answers 307 and points to http://g"]
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
        let reasons = texts(&round_validity(&[b, t], 2, &BOTH));
        assert_eq!(reasons, ["back to back: sessions overlapped"]);
    }
}
