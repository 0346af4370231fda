//! A server that stops answering: noticed, looked at while it may still be told from a slow one,
//! and named.

use super::{TtftContext, turns};
use crate::run::Lost;
use crate::run::shared::server_life::found_lost;
use flashrig_record::{CellStop, Lane, Outcome, StopKind, Turn};
use flashrig_server::{Pulse, Served, pulse, stall_message};

/// Counts what came of requests.
pub fn note(served: &mut Served, lanes: &[Lane]) {
    let reached = turns(lanes).filter(|turn| turn.outcome != Outcome::Unreachable);
    served.sent += u32::try_from(reached.count()).unwrap_or(u32::MAX);
    let generated = turns(lanes).filter(|turn| turn.ttft_s.is_some());
    served.generated += u32::try_from(generated.count()).unwrap_or(u32::MAX);
}

/// Whether requests failed as they do when the server is lost, and it is.
pub async fn is_lost(context: &TtftContext, lanes: &[Lane]) -> Option<Lost> {
    let is_broken = |turn: &Turn| {
        matches!(
            turn.outcome,
            Outcome::Unreachable | Outcome::Truncated | Outcome::UpstreamError | Outcome::Stalled
        )
    };
    if !turns(lanes).any(is_broken) {
        return None;
    }
    found_lost(&context.server).await
}

/// Whether the server has stopped answering: somebody waited in vain, or nobody is there.
pub async fn stopped(
    context: &TtftContext,
    lanes: &[Lane],
    served: Served,
    seen: Option<Pulse>,
) -> Option<CellStop> {
    let all = |end| turns(lanes).all(|turn: &Turn| turn.outcome == end);
    if all(Outcome::Unreachable) {
        let message = turns(lanes).find_map(|turn| turn.error.as_ref().map(|e| e.message.clone()));
        return Some(CellStop {
            kind: StopKind::Failed,
            message: format!(
                "the server is gone: {}",
                message.unwrap_or_else(|| "nobody answers there".to_owned())
            ),
        });
    }
    let stalled = turns(lanes)
        .filter(|turn| turn.outcome == Outcome::Stalled)
        .count();
    if stalled == 0 {
        return None;
    }
    let pulse = match seen {
        Some(pulse) => pulse,
        None => pulse(&context.server).await,
    };
    let limit = format!("{} s", context.spec.first_token_limit_s.0);
    let lines = context.server.last_lines();
    Some(CellStop {
        kind: StopKind::Stalled,
        message: stall_message("the server", served, stalled, &limit, &pulse, &lines),
    })
}
