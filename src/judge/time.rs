//! The time verdict: slowdowns over valid rounds, their intervals, and what to distrust.

use super::same_work;
use crate::records::{
    Arm, ArmKind, Ratio, Round, Run, Session, SessionSlowdown, Thresholds, TimeVerdict,
};
use crate::stats;

/// Cached shares of two arms further apart than this are flagged (case I2).
const CACHED_SHARE_TOLERANCE: f64 = 0.05;
/// Agents that use more than this share of the processors may be what made each other slow.
const BUSY_CPU_SHARE: f64 = 0.7;

/// The time side of the verdict.
pub struct Time {
    pub verdict: TimeVerdict,
    pub worst: Ratio,
    pub worst_session: Option<String>,
    pub together_over_back_to_back: Ratio,
    pub sessions: Vec<SessionSlowdown>,
    pub rounds_needed: Option<u32>,
    pub reasons: Vec<String>,
    pub warnings: Vec<String>,
}

/// Judges the valid rounds of a run.
pub fn judge(run: &Run) -> Time {
    let valid: Vec<(&Arm, &Arm)> = run
        .rounds
        .iter()
        .filter(|r| r.valid)
        .filter_map(both)
        .collect();
    let ids: Vec<&str> = run.spec.sessions.iter().map(|s| s.id.as_str()).collect();
    let per_session: Vec<Vec<f64>> = ids.iter().map(|id| slowdowns(id, &valid)).collect();
    let sessions: Vec<SessionSlowdown> = ids
        .iter()
        .zip(&per_session)
        .map(|(id, values)| summarise(id, values, &valid))
        .collect();

    let worst = sessions
        .iter()
        .zip(&per_session)
        .filter_map(|(s, values)| s.slowdown.value.map(|v| (v, s, values)))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let overall: Vec<f64> = valid
        .iter()
        .filter_map(|(t, b)| makespan_ratio(t, b))
        .collect();

    let mut reasons = Vec::new();
    for round in run.rounds.iter().filter(|r| !r.valid) {
        reasons.push(format!(
            "round {} is not compared: {}",
            round.index,
            round.invalid_reasons.join("; ")
        ));
    }
    let limits = run.spec.thresholds;
    let (verdict, rounds_needed) = match &worst {
        None => (TimeVerdict::Unknown, None),
        Some((value, session, values)) => {
            let verdict = classify(*value, session.slowdown.ci95, limits);
            let needed = (verdict == TimeVerdict::Inconclusive)
                .then(|| stats::rounds_needed(values, &[limits.pass, limits.fail]))
                .flatten();
            reasons.extend(time_reason(verdict, *value, session, limits, needed));
            (verdict, needed)
        }
    };
    Time {
        verdict,
        worst: worst
            .as_ref()
            .map_or_else(Ratio::default, |(_, s, _)| s.slowdown),
        worst_session: worst.as_ref().map(|(_, s, _)| s.id.clone()),
        together_over_back_to_back: stats::ratio(&overall),
        warnings: warnings(run, &valid, &sessions),
        sessions,
        rounds_needed,
        reasons,
    }
}

fn both(round: &Round) -> Option<(&Arm, &Arm)> {
    let of = |kind| round.arms.iter().find(|a| a.kind == kind);
    Some((of(ArmKind::Together)?, of(ArmKind::BackToBack)?))
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

fn makespan_ratio(together: &Arm, alone: &Arm) -> Option<f64> {
    let (t, a) = (together.makespan_s?.0, alone.sum_of_walls_s?.0);
    (a > 0.0).then(|| t / a)
}

fn classify(value: f64, ci95: Option<[f64; 2]>, limits: Thresholds) -> TimeVerdict {
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
    value: f64,
    worst: &SessionSlowdown,
    limits: Thresholds,
    needed: Option<u32>,
) -> Option<String> {
    let id = &worst.id;
    match verdict {
        TimeVerdict::Pass | TimeVerdict::Unknown => None,
        TimeVerdict::Warn => Some(format!(
            "{id} took {value:.2} times its time alone, above {:.2}",
            limits.pass
        )),
        TimeVerdict::Fail => Some(format!(
            "{id} took {value:.2} times its time alone, above {:.2}",
            limits.fail
        )),
        TimeVerdict::Inconclusive => {
            let [low, high] = worst.slowdown.ci95?;
            let more = needed.map_or_else(
                || "more rounds would not settle it at this spread".to_owned(),
                |n| {
                    let more = n.saturating_sub(worst.slowdown.n).max(1);
                    format!(
                        "about {more} more round{} would settle it",
                        if more == 1 { "" } else { "s" }
                    )
                },
            );
            Some(format!(
                "the 95% interval of {id}'s slowdown, {low:.2} to {high:.2}, straddles a threshold; {more}"
            ))
        }
    }
}

fn warnings(run: &Run, rounds: &[(&Arm, &Arm)], sessions: &[SessionSlowdown]) -> Vec<String> {
    let mut out = Vec::new();
    let shares: Vec<(f64, f64)> = rounds
        .iter()
        .filter_map(|(t, b)| Some((t.cached_share?, b.cached_share?)))
        .collect();
    if let Some((t, b)) = shares
        .iter()
        .find(|(t, b)| (t - b).abs() > CACHED_SHARE_TOLERANCE)
    {
        out.push(format!(
            "the arms differ in cached prompt tokens: {:.0}% together, {:.0}% back to back; part of \
             the ratio is the cache, not the company",
            t * 100.0,
            b * 100.0
        ));
    }
    if let Some(share) = rounds
        .iter()
        .filter_map(|(t, _)| t.cpu_share)
        .find(|s| *s > BUSY_CPU_SHARE)
    {
        let cores = run
            .host
            .cores
            .map_or_else(|| "the".to_owned(), |c| c.to_string());
        out.push(format!(
            "together the agents themselves used {:.0}% of {cores} cores: the processor, not the \
             server, may have made them slow",
            share * 100.0
        ));
    }
    for s in sessions.iter().filter(|s| s.same_work_done == Some(false)) {
        let same = s.same_work.value.map_or_else(String::new, |v| {
            format!("; for the same work its slowdown is {v:.2}")
        });
        out.push(format!(
            "{} did other work together than alone (turns or tokens differ){same}",
            s.id
        ));
    }
    if rounds.len() == 1 {
        out.push("one valid round: no interval, so chance is not excluded".to_owned());
    }
    if let Some(skew) = rounds
        .iter()
        .filter_map(|(t, _)| t.start_skew_s)
        .map(|s| s.0)
        .find(|s| *s > 0.25)
    {
        out.push(format!("the sessions started {skew:.2} s apart"));
    }
    out
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::clock::Seconds;
    use crate::records::{AgentId, Exit, Status};

    /// A completed session with the given span and no traffic.
    pub(crate) fn session(id: &str, start: f64, end: f64) -> Session {
        Session {
            id: id.into(),
            folder: id.into(),
            task: id.into(),
            agent: AgentId {
                name: "command".into(),
                version: None,
            },
            status: Status::Completed,
            detail: "completed".into(),
            started_s: Some(Seconds(start)),
            ended_s: Some(Seconds(end)),
            wall_s: Some(Seconds(end - start)),
            split: None,
            exit: Exit::Code(0),
            requests: 1,
            side_requests: 0,
            probe_requests: 0,
            refusals: 0,
            lost_streams: 0,
            repeats: 0,
            turns: None,
            tool_calls: None,
            input_tokens: None,
            cached_tokens: None,
            output_tokens: None,
            cpu_s: None,
            peak_rss_bytes: None,
            leftovers: Vec::new(),
            checks: Vec::new(),
            diff: None,
            failures: Vec::new(),
        }
    }

    pub(crate) fn arm(kind: ArmKind, sessions: Vec<Session>) -> Arm {
        Arm {
            kind,
            idle_wait_s: None,
            makespan_s: None,
            sum_of_walls_s: None,
            max_overlap: None,
            start_skew_s: None,
            cached_share: None,
            cpu_share: None,
            sessions,
        }
    }

    const LIMITS: Thresholds = Thresholds {
        pass: 1.5,
        fail: 2.0,
    };

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
