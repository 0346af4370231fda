//! From what is known of a session to its record.

use super::drive::Gone;
use crate::agent::{Evidence, judge};
use flashrig_clock::{Origin, Seconds};
use flashrig_process::TreeEnd;
use flashrig_record::{Attempt, EgressOutcome, Session, SessionFailure, TreeProof};
use flashrig_report::judge::{
    amplification, cut_prompts, missing_fields, models_asked, odd_answers, other_models, split,
    traffic, unknown_routes,
};

/// The record of a session whose process is gone and which is not verified yet. `context_tokens` is
/// the server's context length, when it is known.
pub fn record(
    gone: &Gone,
    attempts: &[Attempt],
    context_tokens: Option<u64>,
    origin: &Origin,
) -> Session {
    let outcome = judge(&Evidence {
        ending: gone.ending.clone(),
        exit: gone.exit,
        transcript: &gone.transcript,
        end_required: gone.plan.agent.profile.transcript.end_required,
        attempts,
        context_tokens: context_tokens.or(Some(gone.plan.agent.profile.fallback_context)),
        stderr_tail: &gone.stderr_tail,
    });
    let started_s = gone.started.map(|s| origin.at(s));
    let ended_s = gone.ended.map(|s| origin.at(s));
    let wall_s = match (gone.started, gone.ended) {
        (Some(start), Some(end)) => Some(Seconds::from(end.since(start))),
        _ => None,
    };
    let sum = traffic(attempts);
    let usage = gone.process.as_ref().map(|p| &p.usage);
    Session {
        id: gone.plan.id.clone(),
        folder: gone.places.folder.clone(),
        task: gone.plan.task.name.clone(),
        agent: gone.plan.agent.id(),
        status: outcome.status,
        detail: outcome.detail,
        started_s,
        ended_s,
        wall_s,
        split: started_s
            .zip(ended_s)
            .and_then(|(start, end)| split(start, end, attempts)),
        exit: gone.exit,
        requests: sum.requests,
        sub_agent_requests: sum.sub_agent_requests,
        side_requests: sum.side_requests,
        probe_requests: sum.probe_requests,
        answered_by_gateway: sum.answered_by_gateway,
        refusals: sum.refusals,
        lost_streams: sum.lost_streams,
        repeats: sum.repeats,
        repeats_open: sum.repeats_open,
        amplification: amplification(attempts),
        unknown_routes: unknown_routes(attempts),
        missing_fields: missing_fields(attempts),
        models_asked: models_asked(attempts),
        other_models: other_models(attempts),
        rejected_requests: sum.rejected,
        long_prompts: sum.long_prompts,
        redirected: sum.redirected,
        unmarked_requests: sum.unmarked,
        odd_answers: odd_answers(attempts),
        cut_prompts: cut_prompts(attempts),
        first_cached_tokens: sum.first_cached_tokens,
        turns: gone.transcript.turns,
        tool_calls: gone.transcript.tool_calls,
        input_tokens: sum.input_tokens,
        cached_tokens: sum.cached_tokens,
        output_tokens: sum.output_tokens,
        prefix: gone.prefix.clone(),
        bodies: gone.bodies,
        cpu_s: usage.and_then(|u| u.cpu).map(Seconds::from),
        peak_rss_bytes: usage.and_then(|u| u.peak_rss_bytes),
        leftovers: gone
            .process
            .iter()
            .flat_map(|p| &p.leftovers)
            .map(|l| l.command.clone())
            .collect(),
        tried_to_leave: gone
            .egress
            .iter()
            .any(|fact| fact.outcome == EgressOutcome::Refused),
        egress: gone.egress.clone(),
        tree_end: gone.process.as_ref().map(|p| match p.tree {
            TreeEnd::Gone => TreeProof::Gone,
            TreeEnd::GoneAsFarAsSeen => TreeProof::GoneAsFarAsSeen,
            TreeEnd::Survivors(_) => TreeProof::Survivors,
        }),
        verified: false,
        checks: Vec::new(),
        diff: None,
        failures: vec![SessionFailure::NotVerified],
    }
}
