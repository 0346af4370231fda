//! A server that stops answering: noticed, looked at while it may still be told from a slow one,
//! and named.

use super::{TtftContext, turns};
use crate::run::Lost;
use crate::run::shared::server_life::found_lost;
use flashrig_record::{CellStop, CellStopReason, Lane, Outcome, Pulse, StopKind, Turn};
use flashrig_server::{Served, pulse, stall};

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
        let error = turns(lanes).find_map(|turn| turn.error.as_ref().map(|e| e.message.clone()));
        return Some(CellStop {
            kind: StopKind::Failed,
            reason: CellStopReason::Unreachable { error },
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
    let limit = context.spec.first_token_limit_s;
    let lines = context.server.last_lines();
    let stall = stall(served, stalled, limit, pulse, &lines);
    Some(CellStop {
        kind: StopKind::Stalled,
        reason: CellStopReason::ServerStalled { stall },
    })
}
