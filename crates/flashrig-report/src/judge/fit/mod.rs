//! How many sessions fit: from what was measured to judged combinations and the answer. Pure.

mod answer;
mod cell;
mod recall;
mod slowdown;
#[cfg(test)]
mod tests;

use flashrig_record::{Cell, LeftOutReason, LoadRun, LoadVerdict, Measured, StopKind};

pub use answer::answer;
pub use cell::passes;

/// All combinations of the grid, in its order, judged by what was measured so far. In a search,
/// only those that were looked at.
pub fn cells(run: &LoadRun) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &context_tokens in &run.spec.contexts {
        for &sessions in &run.spec.sessions {
            let is_it = |context, n| context == context_tokens && n == sessions;
            let looked_at = run
                .measured
                .iter()
                .any(|m| is_it(m.context_tokens, m.sessions))
                || run
                    .left_out
                    .iter()
                    .any(|l| is_it(l.context_tokens, l.sessions));
            if looked_at || !run.spec.search {
                cells.push(cell::judge(run, context_tokens, sessions));
            }
        }
    }
    cells
}

/// One combination of a run, judged by what was measured so far.
pub fn cell(run: &LoadRun, context_tokens: u64, sessions: u32) -> Cell {
    cell::judge(run, context_tokens, sessions)
}

/// The judgement over all cells.
pub fn verdict(run: &LoadRun, cells: &[Cell]) -> LoadVerdict {
    LoadVerdict {
        answer: answer::sentence(run, cells),
        fits: answer::fits(run, cells),
        warnings: answer::warnings(run, cells),
    }
}

/// Why a size need not be measured (again): the server refused or stalled at this size, or at a
/// smaller one of the same context length.
pub fn blocked(run: &LoadRun, context_tokens: u64, sessions: u32) -> Option<LeftOutReason> {
    let (at_sessions, kind) = finished(run)
        .filter(|m| m.context_tokens == context_tokens && m.sessions <= sessions)
        .filter_map(|m| Some((m.sessions, m.stopped.as_ref()?.kind)))
        .filter(|(_, kind)| blocks(*kind))
        .min_by_key(|(n, _)| *n)?;
    Some(match kind {
        StopKind::Refused => LeftOutReason::ServerRefused { at_sessions },
        StopKind::Stalled => LeftOutReason::ServerStalled { at_sessions },
        StopKind::Failed | StopKind::Interrupted | StopKind::Unmeasurable => {
            LeftOutReason::ServerFailed { at_sessions }
        }
    })
}

fn blocks(kind: StopKind) -> bool {
    match kind {
        StopKind::Refused | StopKind::Stalled | StopKind::Unmeasurable => true,
        StopKind::Failed | StopKind::Interrupted => false,
    }
}

/// What was measured to its end, or to an end that says something of the server.
fn finished(run: &LoadRun) -> impl Iterator<Item = &Measured> {
    run.measured.iter().filter(|m| is_finished(m))
}

/// Whether a combination needs no repetition when the run is taken up again.
pub fn is_finished(measured: &Measured) -> bool {
    measured
        .stopped
        .as_ref()
        .is_none_or(|stop| stop.kind != StopKind::Interrupted)
}
