//! The time verdict: slowdowns over valid rounds, their intervals, and what to distrust.

use super::claim::{Claim, Slowdowns, looks, more_rounds, worst};
use super::same_work;
use super::warnings::warnings;
use crate::stats;
use flashrig_record::{
    Arm, ArmKind, InvalidReason, Placed, Ratio, Round, Run, RunState, Session, SessionSlowdown,
    Status, Thresholds, TimeVerdict, VerdictReason, Warning,
};

/// The time side of the verdict.
pub struct Time {
    pub claim: Claim,
    pub worst: Ratio,
    pub worst_session: Option<String>,
    pub together_over_back_to_back: Ratio,
    pub sessions: Vec<SessionSlowdown>,
    pub reasons: Vec<Placed<VerdictReason>>,
    pub warnings: Vec<Placed<Warning>>,
}

/// Judges the valid rounds of a run.
pub fn judge(run: &Run) -> Time {
    let valid = compared(run, ArmKind::Together, ArmKind::BackToBack);
    let ids: Vec<&str> = run.spec.sessions.iter().map(|s| s.id.as_str()).collect();
    let per_session = slowdowns_of(run, &valid);
    let sessions: Vec<SessionSlowdown> = ids
        .iter()
        .zip(&per_session)
        .map(|(id, values)| summarise(id, values, &valid))
        .collect();
    if run.spec.against_itself || (ids.len() == 1 && !valid.is_empty()) {
        return nothing_compared(run, &valid);
    }
    let worst = worst(&per_session);
    let overall: Vec<f64> = valid
        .iter()
        .filter_map(|(t, b)| makespan_ratio(t, b))
        .collect();
    let censored = censored(run);
    let claim = slowdowns_judged(run, &per_session, &censored).claim();
    let mut reasons = not_compared(run);
    if let Some((_, worst)) = &worst {
        let rounds = censored;
        let withheld = (!rounds.is_empty()).then_some(VerdictReason::UpperBoundWithheld { rounds });
        let why = time_reason(&claim, worst, run.spec.thresholds);
        reasons.extend(withheld.into_iter().chain(why).map(Placed::from));
    }
    Time {
        worst: worst.map(|(_, ratio)| ratio).unwrap_or_default(),
        worst_session: worst.map(|(index, _)| ids[index].to_owned()),
        together_over_back_to_back: stats::ratio(&overall),
        warnings: warnings(run, &valid, &sessions)
            .into_iter()
            .chain(rounds_of(run, valid.len(), &claim).map(Placed::from))
            .collect(),
        claim,
        sessions,
        reasons,
    }
}

/// What is to be said of the number of rounds: that their budget was used up, or that the order of
/// the arms is not balanced.
fn rounds_of(run: &Run, compared: usize, claim: &Claim) -> Option<Warning> {
    let ran = u32::try_from(run.rounds.len()).unwrap_or(u32::MAX);
    if run.spec.auto_rounds.is_some() {
        let is_settled = claim.evidence.is_some() && claim.verdict.is_settled();
        let is_over = run.state != RunState::Interrupted && !is_settled;
        let by_time = ran < run.spec.rounds;
        return is_over.then_some(Warning::BudgetUsed {
            rounds: ran,
            by_time,
        });
    }
    let rounds = u32::try_from(compared).unwrap_or(u32::MAX);
    (rounds > 1 && rounds % 2 == 1).then_some(Warning::UnbalancedOrder { rounds })
}

/// Whether more rounds have nothing to add to the time verdict.
pub fn is_settled(run: &Run) -> bool {
    let valid = compared(run, ArmKind::Together, ArmKind::BackToBack);
    let per_session = slowdowns_of(run, &valid);
    slowdowns_judged(run, &per_session, &censored(run)).is_settled()
}

fn slowdowns_judged<'a>(run: &Run, per_session: &'a [Vec<f64>], censored: &[u32]) -> Slowdowns<'a> {
    Slowdowns {
        per_session,
        looks: looks(run.spec.auto_rounds),
        censored: !censored.is_empty(),
        limits: run.spec.thresholds,
    }
}

/// The valid rounds that have both arms.
pub(super) fn compared(run: &Run, one: ArmKind, other: ArmKind) -> Vec<(&Arm, &Arm)> {
    let valid = run.rounds.iter().filter(|r| r.valid);
    valid.filter_map(|r| two_arms(r, one, other)).collect()
}

/// For each session its ratio of walls in each of these rounds.
pub(super) fn slowdowns_of(run: &Run, rounds: &[(&Arm, &Arm)]) -> Vec<Vec<f64>> {
    let ids = run.spec.sessions.iter();
    ids.map(|s| slowdowns(&s.id, rounds)).collect()
}

/// The invalid rounds in which a session failed together and not back to back: it may have failed
/// for being slowed down, so that the other rounds alone would flatter.
fn censored(run: &Run) -> Vec<u32> {
    let is_cut = |round: &Round| {
        let unfinished = |r: &Placed<InvalidReason>| r.fact == InvalidReason::RoundUnfinished;
        round.invalid_reasons.iter().any(unfinished)
    };
    let invalid = run.rounds.iter().filter(|r| !r.valid && !is_cut(r));
    let failed_together = invalid.filter(|round| {
        let of = |kind| round.arms.iter().find(|a| a.kind == kind);
        let Some(together) = of(ArmKind::Together) else {
            return false;
        };
        let alone = of(ArmKind::BackToBack);
        together.sessions.iter().any(|t| {
            let alone = alone.and_then(|arm| arm.sessions.iter().find(|s| s.id == t.id));
            is_lost(t) && !alone.is_some_and(is_lost)
        })
    });
    failed_together.map(|round| round.index).collect()
}

/// Whether a session has no wall to compare because of what the server or the agent did.
fn is_lost(session: &Session) -> bool {
    let stopped = matches!(session.status, Status::Interrupted | Status::RigError);
    let cut = !session.status.is_completed() && !stopped;
    cut || session.refusals + session.lost_streams > 0 || !session.failures.is_empty()
}

/// A run of one session: its arms are the same thing done twice.
fn nothing_compared(run: &Run, valid: &[(&Arm, &Arm)]) -> Time {
    let alone = run.spec.sessions.iter();
    let sessions: Vec<SessionSlowdown> = alone.map(|s| summarise(&s.id, &[], &[])).collect();
    Time {
        claim: Claim {
            verdict: TimeVerdict::NotCompared,
            evidence: None,
            rounds_needed: None,
        },
        worst: Ratio::default(),
        worst_session: None,
        together_over_back_to_back: Ratio::default(),
        warnings: warnings(run, valid, &sessions),
        sessions,
        reasons: not_compared(run),
    }
}

/// The rounds that are not compared, and why.
fn not_compared(run: &Run) -> Vec<Placed<VerdictReason>> {
    let invalid = run.rounds.iter().filter(|r| !r.valid);
    let reasons = invalid.map(|round| VerdictReason::RoundNotCompared {
        index: round.index,
        reasons: round.invalid_reasons.clone(),
    });
    reasons.map(Placed::from).collect()
}

/// Two arms of a round.
pub(super) fn two_arms(round: &Round, one: ArmKind, other: ArmKind) -> Option<(&Arm, &Arm)> {
    let of = |kind| round.arms.iter().find(|a| a.kind == kind);
    Some((of(one)?, of(other)?))
}

fn pair<'a>(id: &str, together: &'a Arm, alone: &'a Arm) -> Option<(&'a Session, &'a Session)> {
    let of = |arm: &'a Arm| arm.sessions.iter().find(|s| s.id == id);
    Some((of(together)?, of(alone)?))
}

fn slowdowns(id: &str, rounds: &[(&Arm, &Arm)]) -> Vec<f64> {
    rounds
        .iter()
        .filter_map(|(t, b)| {
            let (t, b) = pair(id, t, b)?;
            let (together, alone) = (t.wall_s?.0, b.wall_s?.0);
            (alone > 0.0).then(|| together / alone)
        })
        .collect()
}

fn summarise(id: &str, values: &[f64], rounds: &[(&Arm, &Arm)]) -> SessionSlowdown {
    let pairs: Vec<(&Session, &Session)> =
        rounds.iter().filter_map(|(t, b)| pair(id, t, b)).collect();
    let same: Vec<f64> = pairs
        .iter()
        .filter_map(|(t, a)| same_work::same_work(t, a))
        .collect();
    let done: Option<Vec<bool>> = pairs
        .iter()
        .map(|(t, a)| same_work::is_same(t, a))
        .collect();
    SessionSlowdown {
        id: id.to_owned(),
        slowdown: stats::ratio(values),
        same_work: stats::ratio(&same),
        same_work_done: done
            .filter(|d| !d.is_empty())
            .map(|d| d.iter().all(|same| *same)),
    }
}

/// Makespan over the sum of walls back to back.
pub(super) fn makespan_ratio(together: &Arm, alone: &Arm) -> Option<f64> {
    let (t, a) = (together.makespan_s?.0, alone.sum_of_walls_s?.0);
    (a > 0.0).then(|| t / a)
}

/// Why the verdict is not a plain pass.
fn time_reason(claim: &Claim, worst: &Ratio, limits: Thresholds) -> Option<VerdictReason> {
    let slowdown = worst.value?;
    let (n, needed) = (worst.n, claim.rounds_needed);
    let more_rounds = more_rounds(n, needed);
    let above = |limit: f64| VerdictReason::TooSlow {
        slowdown,
        limit,
        at_least: claim.evidence.map(|e| e.at_least),
    };
    Some(match (claim.verdict, claim.evidence) {
        (TimeVerdict::Warn, _) => above(limits.pass),
        (TimeVerdict::Fail, _) => above(limits.fail),
        (TimeVerdict::PassOrWarn, Some(e)) => VerdictReason::PassNotProven {
            at_most: e.at_most?,
            limit: limits.pass,
            more_rounds,
            rounds_in_all: needed,
        },
        (TimeVerdict::WarnOrFail, Some(e)) => VerdictReason::FailNotExcluded {
            at_least: e.at_least,
            limit: limits.fail,
            more_rounds,
            rounds_in_all: needed,
        },
        (TimeVerdict::Inconclusive, Some(e)) => VerdictReason::Inconclusive {
            low: e.at_least,
            high: e.at_most,
            more_rounds,
            rounds_in_all: needed,
        },
        _ => return None,
    })
}
