//! What a reader should know before trusting the figures.

use super::egress::egress_lines;
use super::life::life_lines;
use super::models;
use flashrig_record::{Arm, CachePolicy, Run, SessionSlowdown, TreeProof};

/// Cached shares of two arms further apart than this are flagged (case I2).
pub(super) const CACHED_SHARE_TOLERANCE: f64 = 0.05;
/// Agents that use more than this share of the processors may be what made each other slow.
const BUSY_CPU_SHARE: f64 = 0.7;

/// A rig whose event loop is later than this, in milliseconds, disturbs what it measures.
const LATE_RIG_MS: f64 = 5.0;

/// Everything worth knowing, in words. `rounds` are the valid ones: together, back to back.
pub fn warnings(run: &Run, rounds: &[(&Arm, &Arm)], sessions: &[SessionSlowdown]) -> Vec<String> {
    let mut out = Vec::new();
    out.extend(life_lines(&run.server));
    out.extend(egress_lines(run));
    out.extend(models::of_agents(run));
    out.extend(cold_cache(run));
    out.extend(sent_again_while_open(run));
    out.extend(lacking_streams(run));
    if rounds
        .iter()
        .flat_map(|(t, _)| &t.sessions)
        .any(|s| !s.failures.is_empty())
    {
        out.push("the times are of sessions whose work was not done".to_owned());
    }
    let every = || {
        run.rounds
            .iter()
            .flat_map(|r| &r.arms)
            .flat_map(|a| &a.sessions)
    };
    if every().any(|s| s.tree_end == Some(TreeProof::GoneAsFarAsSeen)) {
        out.push(
            "this system cannot prove that a session's processes are all gone; what was seen of \
             them is"
                .to_owned(),
        );
    }
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
    let arms: Vec<&Arm> = run.rounds.iter().flat_map(|r| &r.arms).collect();
    out.extend(rig_lag(&arms));
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

/// Whether the rig itself was late, and where most.
fn rig_lag(arms: &[&Arm]) -> Option<String> {
    let (arm, lag) = arms
        .iter()
        .filter_map(|a| Some((a.kind, a.rig_lag_ms?)))
        .filter(|(_, lag)| lag.p99 > LATE_RIG_MS)
        .max_by(|(_, a), (_, b)| a.p99.total_cmp(&b.p99))?;
    Some(format!(
        "disturbed: the machine was too busy for flashrig itself, which was {:.0} ms late or more in 1% \
         of the time and {:.0} ms at worst ({}); instants may be off by as much",
        lag.p99,
        lag.max,
        arm.label()
    ))
}

/// What a chat template puts before the nonce is the same for every prompt and may be cached.
const TEMPLATE_TOKENS: u64 = 64;

/// Whether the cache was as cold as the policy has it.
fn cold_cache(run: &Run) -> Vec<String> {
    if run.spec.cache != CachePolicy::Cold {
        return Vec::new();
    }
    let sessions = || {
        run.rounds
            .iter()
            .flat_map(|r| &r.arms)
            .flat_map(|a| &a.sessions)
    };
    let mut out = Vec::new();
    let warm = sessions()
        .filter(|s| s.first_cached_tokens.is_some_and(|n| n > TEMPLATE_TOKENS))
        .count();
    if warm > 0 {
        out.push(format!(
            "the cache was to be cold, but {warm} of {} sessions had cached tokens in their first \
             request",
            sessions().count()
        ));
    }
    let unmarked: u64 = sessions().map(|s| s.unmarked_requests).sum();
    if unmarked > 0 {
        out.push(format!(
            "{unmarked} requests could not be marked for a cold cache; they may have met another \
             session's prompts"
        ));
    }
    out
}

/// Whether agents sent requests again that the server was still working on (case K1).
fn sent_again_while_open(run: &Run) -> Vec<String> {
    let mut out = Vec::new();
    for spec in &run.spec.sessions {
        let of_name = run
            .rounds
            .iter()
            .flat_map(|r| &r.arms)
            .flat_map(|a| &a.sessions)
            .filter(|s| s.id == spec.id && s.repeats_open > 0);
        let (mut again, mut worst) = (0, None::<f64>);
        for session in of_name {
            again += session.repeats_open;
            worst = match (worst, session.amplification) {
                (Some(a), Some(b)) => Some(a.max(b)),
                (a, b) => a.or(b),
            };
        }
        if again > 0 {
            let times = worst.map_or_else(String::new, |w| {
                format!(" (up to {w:.1} requests for each that was meant)")
            });
            out.push(format!(
                "{} sent {again} requests again while the first still ran{times}: its own time limit \
                 is shorter than the server's prefill, and the server did the work again",
                spec.id
            ));
        }
    }
    out
}

/// Fields that are named of a session's streams.
const FIELDS_NAMED: usize = 3;

/// Whether streams lacked what their protocol requires, which some clients refuse (case D1).
fn lacking_streams(run: &Run) -> Vec<String> {
    let mut out = Vec::new();
    for spec in &run.spec.sessions {
        let of_name = run
            .rounds
            .iter()
            .flat_map(|r| &r.arms)
            .flat_map(|a| &a.sessions)
            .filter(|s| s.id == spec.id);
        let Some(first) = of_name.clone().find(|s| !s.missing_fields.is_empty()) else {
            continue;
        };
        let named: Vec<&str> = first
            .missing_fields
            .iter()
            .take(FIELDS_NAMED)
            .map(String::as_str)
            .collect();
        let again: u64 = of_name.map(|s| s.repeats).sum();
        let again = match again {
            0 => "clients may refuse such answers, and ask again".to_owned(),
            n => format!("its client may refuse such answers: {n} requests were sent again"),
        };
        out.push(format!(
            "streams to {} lack required fields, by the number of streams: {}; {again}",
            spec.id,
            named.join(", ")
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_record::testing::arm;
    use flashrig_record::{ArmKind, RigLag};

    #[test]
    fn a_rig_that_was_late_in_more_than_one_percent_of_the_time_marks_the_run_as_disturbed() {
        let with = |p99| {
            let mut arm = arm(ArmKind::Together, Vec::new());
            arm.rig_lag_ms = Some(RigLag {
                p50: 0.1,
                p99,
                max: 40.0,
            });
            rig_lag(&[&arm])
        };
        assert_eq!(with(5.0), None);
        assert!(with(5.1).unwrap().starts_with("disturbed"));
        assert_eq!(rig_lag(&[&arm(ArmKind::Together, Vec::new())]), None);
    }
}
