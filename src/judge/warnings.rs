//! What a reader should know before trusting the figures.

use crate::records::{Arm, CachePolicy, Run, SessionSlowdown, TreeProof};

/// Cached shares of two arms further apart than this are flagged (case I2).
const CACHED_SHARE_TOLERANCE: f64 = 0.05;
/// Agents that use more than this share of the processors may be what made each other slow.
const BUSY_CPU_SHARE: f64 = 0.7;

/// Everything worth knowing, in words. `rounds` are the valid ones: together, back to back.
pub fn warnings(run: &Run, rounds: &[(&Arm, &Arm)], sessions: &[SessionSlowdown]) -> Vec<String> {
    let mut out = Vec::new();
    out.extend(cold_cache(run));
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
