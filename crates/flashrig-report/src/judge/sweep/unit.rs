//! What a sweep takes from the record of one unit's run.

use crate::stats::median;
use flashrig_record::{
    ArmKind, Cell, CellVerdict, Figure, FigureKind, FigureOf, Functional, LifeFact, LifeKind,
    LoadRun, MemoryBy, Run, RunState, Server, ServerLoss, StoppedBecause, UnitFailure, UnitFault,
    UnitServer, VerdictReason, Watched,
};

/// What the record of a run tells a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Why nothing could be measured; `None` when something was.
    pub failed: Option<UnitFailure>,
    /// What speaks against its figures.
    pub faults: Vec<UnitFault>,
    /// Whether flashrig's own client was the bottleneck.
    pub client_bottleneck: Option<bool>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// The server that answered.
    pub server: UnitServer,
}

/// Reads a run of `pair`.
pub fn of_pair(run: &Run) -> Reading {
    let sessions = || {
        let arms = run.rounds.iter().flat_map(|round| &round.arms);
        arms.flat_map(|arm| &arm.sessions)
    };
    let all = sessions().count();
    let done = sessions().filter(|s| s.failures.is_empty()).count();
    let verdict = run.verdict.as_ref();
    let sound = verdict.is_some_and(|v| v.functional == Functional::Pass);
    let over_rounds = |kind: ArmKind, of: fn(&flashrig_record::Arm) -> Option<f64>| {
        let valid = run.rounds.iter().filter(|round| round.valid);
        let arms = valid.filter_map(|round| round.arms.iter().find(|arm| arm.kind == kind));
        let values: Option<Vec<f64>> = arms.map(of).collect();
        median(&values?)
    };
    let together = over_rounds(ArmKind::Together, |arm| arm.makespan_s.map(|s| s.0));
    let figure = |kind, value| Figure {
        of: FigureOf {
            context_tokens: None,
            sessions: None,
            kind,
        },
        value,
        sound,
    };
    let figures = vec![
        figure(FigureKind::TogetherS, together),
        figure(
            FigureKind::BackToBackS,
            over_rounds(ArmKind::BackToBack, |arm| arm.sum_of_walls_s.map(|s| s.0)),
        ),
        figure(
            FigureKind::TogetherOverBackToBack,
            verdict.and_then(|v| v.together_over_back_to_back.value),
        ),
        figure(
            FigureKind::WorstSlowdown,
            verdict.and_then(|v| v.worst_slowdown.value),
        ),
        figure(FigureKind::DoneShare, share(done, all)),
    ];
    let reasons = || verdict.map(|v| v.reasons.clone()).unwrap_or_default();
    let failed = unfinished(run.state, run.stopped_because.as_ref()).or_else(|| {
        let nothing = together.is_none();
        nothing.then(|| UnitFailure::NoRoundCompared { reasons: reasons() })
    });
    let mut faults = Vec::new();
    if failed.is_none() && !sound {
        let (done, of) = (done as u64, all as u64);
        faults.push(UnitFault::SessionsNotDone { done, of });
        let of_verdict = reasons().into_iter();
        faults.extend(of_verdict.map(|reason| UnitFault::Verdict { reason }));
    }
    add_losses(&run.server, failed.as_ref(), &mut faults);
    let watched = run.rounds.iter().flat_map(|round| &round.arms);
    let watched: Vec<&Watched> = watched.filter_map(|arm| arm.watched.as_deref()).collect();
    Reading {
        failed,
        faults,
        client_bottleneck: None,
        figures,
        server: server(&run.server, &watched, None),
    }
}

/// Reads a run of `fit` or `ttft`.
pub fn of_load(run: &LoadRun) -> Reading {
    let (figures, mut faults) = if run.command == "ttft" {
        of_ttft(run)
    } else {
        of_fit(run)
    };
    let nothing = figures.iter().all(|figure| figure.value.is_none());
    let failed = unfinished(run.state, run.stopped_because.as_ref()).or_else(|| {
        nothing.then(|| UnitFailure::NothingMeasured {
            answer: run.verdict.as_ref().map(|v| v.answer.clone()),
            faults: faults.clone(),
        })
    });
    add_losses(&run.server, failed.as_ref(), &mut faults);
    let watched = run.measured.iter().filter_map(|m| m.watched.as_deref());
    let watched: Vec<&Watched> = watched.collect();
    let reported = run
        .measured
        .iter()
        .filter_map(|m| m.reported.peak_memory_bytes);
    Reading {
        failed,
        faults,
        client_bottleneck: (!run.measured.is_empty())
            .then(|| run.measured.iter().any(|m| m.client.bottleneck)),
        figures,
        server: server(&run.server, &watched, reported.max()),
    }
}

/// How the server was lost, where nothing else tells of it in full, and whether it was started
/// again.
fn add_losses(server: &Server, failed: Option<&UnitFailure>, faults: &mut Vec<UnitFault>) {
    for (index, life) in server.life.iter().enumerate() {
        let LifeFact::Lost { loss } = &life.fact else {
            continue;
        };
        if failed.and_then(UnitFailure::loss) == Some(loss) {
            continue;
        }
        let mut later = server.life.iter().skip(index + 1);
        let restarted = later.any(|life| life.what == LifeKind::Restarted);
        // Before what it made of the figures.
        faults.retain(|fault| !is_loss(fault, loss));
        let loss = loss.clone();
        faults.insert(0, UnitFault::ServerLost { loss, restarted });
    }
}

/// Whether a fault says nothing but that the server was lost.
fn is_loss(fault: &UnitFault, loss: &ServerLoss) -> bool {
    match fault {
        UnitFault::Verdict { reason } => {
            reason.fact == VerdictReason::ServerLost { loss: loss.clone() }
        }
        _ => false,
    }
}

fn of_fit(run: &LoadRun) -> (Vec<Figure>, Vec<UnitFault>) {
    let fits = run.verdict.iter().flat_map(|verdict| &verdict.fits);
    let mut figures: Vec<Figure> = fits
        .map(|fits| Figure {
            of: FigureOf {
                context_tokens: Some(fits.context_tokens),
                sessions: None,
                kind: FigureKind::Fits,
            },
            value: fits.sessions.map(f64::from),
            sound: true,
        })
        .collect();
    let mut faults = Vec::new();
    for cell in &run.cells {
        let sound = is_sound(cell);
        let figure = |kind, value| Figure {
            of: FigureOf {
                context_tokens: Some(cell.context_tokens),
                sessions: Some(cell.sessions),
                kind,
            },
            value,
            sound,
        };
        figures.extend([
            figure(FigureKind::WarmTurnS, cell.turn_s.map(|s| s.0)),
            figure(FigureKind::WorstSlowdown, cell.slowdown.worst),
            figure(FigureKind::ColdTtftS, cell.ttft_cold_s.map(|s| s.0)),
            figure(
                FigureKind::SideP95S,
                cell.side.and_then(|side| side.p95_s).map(|s| s.0),
            ),
            figure(
                FigureKind::SideTtftP95S,
                cell.side.and_then(|side| side.ttft_p95_s).map(|s| s.0),
            ),
            figure(FigureKind::TokensPerS, cell.total_tokens_per_s),
        ]);
        if !sound {
            faults.push(UnitFault::Cell {
                sessions: cell.sessions,
                context_tokens: cell.context_tokens,
                verdict: cell.verdict,
                reason: cell.reasons.first().cloned(),
            });
        }
    }
    (figures, faults)
}

/// Slow is no fault: that is what the figures are for.
fn is_sound(cell: &Cell) -> bool {
    match cell.verdict {
        CellVerdict::Pass
        | CellVerdict::PassOrWarn
        | CellVerdict::Warn
        | CellVerdict::WarnOrFail
        | CellVerdict::Fail
        | CellVerdict::Inconclusive => true,
        CellVerdict::Refused | CellVerdict::Recall | CellVerdict::Error | CellVerdict::Unknown => {
            false
        }
    }
}

fn of_ttft(run: &LoadRun) -> (Vec<Figure>, Vec<UnitFault>) {
    let (mut figures, mut faults) = (Vec::new(), Vec::new());
    for row in &run.ttft {
        let sound = row.asked > 0 && row.answered == row.asked;
        let figure = |kind, value| Figure {
            of: FigureOf {
                context_tokens: None,
                sessions: Some(row.agents),
                kind,
            },
            value,
            sound,
        };
        figures.extend([
            figure(FigureKind::TtftMedianS, row.ttft_s.map(|s| s.median.0)),
            figure(FigureKind::TtftWorstS, row.ttft_s.map(|s| s.worst.0)),
            figure(FigureKind::TokensPerS, row.tokens_per_s),
        ]);
        if !sound {
            faults.push(UnitFault::NotAnswered {
                requests: row.agents,
                answered: row.answered,
                asked: row.asked,
                reason: row.reasons.first().cloned(),
            });
        }
    }
    (figures, faults)
}

fn unfinished(state: RunState, because: Option<&StoppedBecause>) -> Option<UnitFailure> {
    (state != RunState::Finished).then(|| match because {
        Some(reason) => UnitFailure::RunStopped {
            reason: reason.clone(),
        },
        None => UnitFailure::RunUnfinished { state },
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts of sessions are small")]
fn share(part: usize, all: usize) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

/// The system's word on memory goes before the server's: it counts the whole process.
fn server(server: &Server, watched: &[&Watched], reported: Option<u64>) -> UnitServer {
    let most = |of: fn(&Watched) -> Option<u64>| watched.iter().filter_map(|w| of(w)).max();
    let memory = most(|w| w.peak_rss_bytes)
        .map(|bytes| (bytes, MemoryBy::System))
        .or_else(|| {
            let reported = most(|w| w.peak_memory_bytes).max(reported);
            reported.map(|bytes| (bytes, MemoryBy::Server))
        });
    let managed = server.managed.as_deref();
    UnitServer {
        name: server.name.clone(),
        simulated: server.simulated,
        speed: server.speed,
        version: server
            .version
            .clone()
            .or_else(|| managed.and_then(|m| m.program_version.clone())),
        model: server.model.clone(),
        context_tokens: server.context_tokens,
        program_sha256: managed.and_then(|m| m.program_sha256.clone()),
        model_sha256: managed.and_then(|m| m.model_sha256.clone()),
        ready_after_s: managed.map(|m| m.ready_after_s),
        peak_memory_bytes: memory.map(|(bytes, _)| bytes),
        peak_memory_by: memory.map(|(_, by)| by),
        proofs: managed.map(|m| m.variables.clone()).unwrap_or_default(),
    }
}
