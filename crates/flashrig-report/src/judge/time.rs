//! The time verdict: slowdowns over valid rounds, their intervals, and what to distrust.

use super::same_work;
use super::warnings::warnings;
use crate::stats;
use flashrig_record::{
    Arm, ArmKind, Placed, Ratio, Round, Run, Session, SessionSlowdown, Thresholds, TimeVerdict,
    VerdictReason, Warning,
};

/// The time side of the verdict.
pub struct Time {
    pub verdict: TimeVerdict,
    pub worst: Ratio,
    pub worst_session: Option<String>,
    pub together_over_back_to_back: Ratio,
    pub sessions: Vec<SessionSlowdown>,
    pub rounds_needed: Option<u32>,
    pub reasons: Vec<Placed<VerdictReason>>,
    pub warnings: Vec<Placed<Warning>>,
}

/// Judges the valid rounds of a run.
pub fn judge(run: &Run) -> Time {
    let valid: Vec<(&Arm, &Arm)> = run
        .rounds
        .iter()
        .filter(|r| r.valid)
        .filter_map(|r| two_arms(r, ArmKind::Together, ArmKind::BackToBack))
        .collect();
    let ids: Vec<&str> = run.spec.sessions.iter().map(|s| s.id.as_str()).collect();
    let per_session: Vec<Vec<f64>> = ids.iter().map(|id| slowdowns(id, &valid)).collect();
    let sessions: Vec<SessionSlowdown> = ids
        .iter()
        .zip(&per_session)
        .map(|(id, values)| summarise(id, values, &valid))
        .collect();

    // The worst session may be another one in every round: worst first, then the median.
    let worst_by_round: Vec<f64> = valid
        .iter()
        .filter_map(|(t, b)| worst_of(&ids, t, b))
        .collect();
    if ids.len() == 1 && !worst_by_round.is_empty() {
        return nothing_compared(run, &valid);
    }
    let worst = stats::ratio(&worst_by_round);
    let worst_session = sessions
        .iter()
        .filter_map(|s| s.slowdown.value.map(|v| (v, &s.id)))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, id)| id.clone());
    let overall: Vec<f64> = valid
        .iter()
        .filter_map(|(t, b)| makespan_ratio(t, b))
        .collect();

    let mut reasons = not_compared(run);
    let limits = run.spec.thresholds;
    let (verdict, rounds_needed) = match worst.value {
        None => (TimeVerdict::Unknown, None),
        Some(value) => {
            let verdict = classify(value, worst.ci95, limits);
            let needed = (verdict == TimeVerdict::Inconclusive)
                .then(|| stats::rounds_needed(&worst_by_round, &[limits.pass, limits.fail]))
                .flatten();
            reasons.extend(time_reason(verdict, &worst, limits, needed).map(Placed::from));
            (verdict, needed)
        }
    };
    Time {
        verdict,
        worst,
        worst_session,
        together_over_back_to_back: stats::ratio(&overall),
        warnings: warnings(run, &valid, &sessions),
        sessions,
        rounds_needed,
        reasons,
    }
}

/// A run of one session: its arms are the same thing done twice.
fn nothing_compared(run: &Run, valid: &[(&Arm, &Arm)]) -> Time {
    let alone = run.spec.sessions.iter();
    let sessions: Vec<SessionSlowdown> = alone.map(|s| summarise(&s.id, &[], &[])).collect();
    Time {
        verdict: TimeVerdict::NotCompared,
        worst: Ratio::default(),
        worst_session: None,
        together_over_back_to_back: Ratio::default(),
        warnings: warnings(run, valid, &sessions),
        sessions,
        rounds_needed: None,
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

/// The largest slowdown of a round; `None` when any session lacks one.
pub(super) fn worst_of(ids: &[&str], together: &Arm, alone: &Arm) -> Option<f64> {
    let values: Option<Vec<f64>> = ids
        .iter()
        .map(|id| slowdowns(id, &[(together, alone)]).first().copied())
        .collect();
    values?.into_iter().reduce(f64::max)
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

pub(super) fn classify(value: f64, ci95: Option<[f64; 2]>, limits: Thresholds) -> TimeVerdict {
    if let Some([low, high]) = ci95 {
        let straddles = |t: f64| low <= t && t < high;
        if straddles(limits.pass) || straddles(limits.fail) {
            return TimeVerdict::Inconclusive;
        }
    }
    if value <= limits.pass {
        TimeVerdict::Pass
    } else if value <= limits.fail {
        TimeVerdict::Warn
    } else {
        TimeVerdict::Fail
    }
}

fn time_reason(
    verdict: TimeVerdict,
    worst: &Ratio,
    limits: Thresholds,
    needed: Option<u32>,
) -> Option<VerdictReason> {
    let slowdown = worst.value?;
    let above = |limit: f64| Some(VerdictReason::TooSlow { slowdown, limit });
    match verdict {
        TimeVerdict::Pass | TimeVerdict::Unknown | TimeVerdict::NotCompared => None,
        TimeVerdict::Warn => above(limits.pass),
        TimeVerdict::Fail => above(limits.fail),
        TimeVerdict::Inconclusive => {
            let [low, high] = worst.ci95?;
            Some(VerdictReason::Inconclusive {
                low,
                high,
                more_rounds: more_rounds(worst.n, needed),
            })
        }
    }
}

/// Rounds beside the `n` measured that would settle a ratio, of the total needed.
pub(super) fn more_rounds(n: u32, needed: Option<u32>) -> Option<u32> {
    needed.map(|needed| needed.saturating_sub(n).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_record::testing::THRESHOLDS as LIMITS;

    #[test]
    fn the_thresholds_themselves_pass_and_warn() {
        assert_eq!(classify(1.5, None, LIMITS), TimeVerdict::Pass);
        assert_eq!(classify(1.51, None, LIMITS), TimeVerdict::Warn);
        assert_eq!(classify(2.0, None, LIMITS), TimeVerdict::Warn);
        assert_eq!(classify(2.01, None, LIMITS), TimeVerdict::Fail);
    }

    #[test]
    fn an_interval_across_either_threshold_is_inconclusive() {
        assert_eq!(
            classify(1.4, Some([1.3, 1.6]), LIMITS),
            TimeVerdict::Inconclusive
        );
        assert_eq!(
            classify(2.1, Some([1.9, 2.3]), LIMITS),
            TimeVerdict::Inconclusive
        );
        assert_eq!(classify(1.7, Some([1.55, 1.95]), LIMITS), TimeVerdict::Warn);
        assert_eq!(classify(1.4, Some([1.3, 1.5]), LIMITS), TimeVerdict::Pass);
    }
}
