//! The driver of `fit`: measures the combinations of a grid or of a search, one after the other.
//!
//! | file | its one job |
//! |---|---|
//! | `cell` | one combination: cold turns at once, then warm turns, and how it ends early |
//! | `lanes` | the sessions of a combination, and what became of those that were broken off |
//! | `prepare` | from a request to a run that can begin or go on |
//! | `sides` | short requests beside them |
//!
//! Nothing is judged here but whether a size need not be measured any more.

mod cell;
mod lanes;
mod prepare;
mod sides;

use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::plan::grid::{Step, size_steps, steps};
use crate::plan::rounds::Rounds;
use crate::plan::search::{Found, Search};
use crate::run::shared::instrument::own_cpu;
use crate::run::shared::server_life::{self, Lost, bring_back, is_lost, report_lost};
use crate::run::{Bus, RunError, Stop, warm_up_sessions};
use crate::store::StoreError;
use flashrig_clock::Seconds;
use flashrig_config::format_tokens;
use flashrig_load::{Client, SessionAttempt, WarmUp};
use flashrig_record::{
    Calibration, Cell, CellStop, CellVerdict, LeftOut, LoadRun, LoadSpec, LoadWhat, Measured,
    StopKind,
};
use flashrig_report::judge::fit::{
    blocked, cell as judge_cell, cells, is_finished, passes, verdict,
};
use flashrig_server::{Connected, Watcher};

pub use prepare::{Request, prepare};

/// Everything that a run needs, prepared.
#[derive(Debug)]
pub struct FitContext {
    /// The server.
    pub server: Connected,
    /// Watches it.
    pub watcher: Watcher,
    /// The client.
    pub client: Client,
    /// How prompts are brought to their size.
    pub calibration: Calibration,
    /// What was asked for.
    pub spec: LoadSpec,
    /// Seconds of the server's own time in a wall second.
    pub speed: f64,
    /// Whether the server runs in this process.
    pub embedded: bool,
    /// Where everything is told.
    pub bus: Bus<LoadRun>,
    /// The wish to stop.
    pub stop: Stop,
}

impl FitContext {
    /// A duration of the server's own time, on the wall clock.
    fn on_the_wall(&self, seconds: Seconds) -> Duration {
        Duration::try_from_secs_f64(seconds.0 / self.speed).unwrap_or_default()
    }

    /// Waits for what ends a combination before its time: the wish to stop, or the server's death.
    async fn broken_off(&self) -> CellStop {
        let mut stop = self.stop.clone();
        tokio::select! {
            biased;
            () = stop.wait() => Stop::of_a_cell(),
            death = self.server.life.died() => Lost::died(&self.server, death).of_a_cell(),
        }
    }

    /// The record so far.
    fn run(&self) -> Option<LoadRun> {
        self.bus.with(|store| store.run().cloned())
    }
}

/// What a run begins with.
#[derive(Debug)]
pub enum Begin {
    /// A new record.
    New(Box<LoadRun>),
    /// A record that is in the store already.
    Again {
        /// The command line.
        command_line: Vec<String>,
    },
}

/// Runs what is still to be measured and seals the record, however it ends.
///
/// # Errors
/// The results folder cannot be written, or nothing was started.
pub async fn execute(context: &FitContext, begin: Begin) -> Result<LoadRun, RunError> {
    context.bus.fact(match begin {
        Begin::New(run) => LoadWhat::RunStarted { run },
        Begin::Again { command_line } => LoadWhat::RunResumed { command_line },
    })?;
    let failure = measure_all(context).await.err();
    let (state, stopped_because) = context.stop.ending(failure.as_ref());
    let run = context.run().ok_or(RunError::Nothing)?;
    let cells = cells(&run);
    let verdict = verdict(&run, &cells);
    context.bus.fact(LoadWhat::RunFinished {
        state,
        stopped_because,
        rig_cpu_s: own_cpu(),
        cells,
        ttft: Vec::new(),
        verdict: Some(Box::new(verdict)),
    })?;
    context.run().ok_or(RunError::Nothing)
}

async fn measure_all(context: &FitContext) -> anyhow::Result<()> {
    let spec = &context.spec;
    if spec.search {
        for &context_tokens in &spec.contexts {
            search(context, context_tokens).await?;
        }
        return Ok(());
    }
    let rounds = Rounds::stored(spec.rounds, spec.auto_rounds);
    let began = Instant::now();
    // One session alone is what the others are compared with: it goes on with the last of them.
    let mut settled: Vec<(u64, u32)> = Vec::new();
    let all = steps(&spec.contexts, &spec.sessions, spec.rounds, spec.seed);
    for round in 1..=rounds.most {
        if round > 1 && rounds.is_over(began.elapsed()) {
            return Ok(());
        }
        let is_open = |context_tokens: u64| {
            let compared = spec.sessions.iter().filter(|n| **n > 1);
            let mut open = compared.filter(|n| !settled.contains(&(context_tokens, **n)));
            open.next().is_some()
        };
        let is_wanted = rounds.auto.is_none_or(|auto| round <= auto.at_least);
        let steps = all.iter().filter(|step| step.round == round);
        let open = steps.filter(|step| match step.sessions {
            1 => is_wanted || is_open(step.context_tokens),
            n => !settled.contains(&(step.context_tokens, n)),
        });
        let open: Vec<Step> = open.copied().collect();
        if open.is_empty() {
            return Ok(());
        }
        for step in open {
            take(context, step).await?;
        }
        if rounds.looks_after(round) {
            settled = settled_cells(context)?;
        }
    }
    Ok(())
}

/// The combinations about which more rounds have nothing to add.
fn settled_cells(context: &FitContext) -> anyhow::Result<Vec<(u64, u32)>> {
    let run = context.run().context("the record is gone")?;
    let cells = cells(&run).into_iter();
    let settled = cells.filter(Cell::is_settled);
    Ok(settled.map(|c| (c.context_tokens, c.sessions)).collect())
}

/// Looks for the largest size that passes at one context length.
async fn search(context: &FitContext, context_tokens: u64) -> anyhow::Result<()> {
    let spec = &context.spec;
    let rounds = Rounds::stored(spec.rounds, spec.auto_rounds);
    let began = Instant::now();
    let mut search = Search::new(spec.sessions.clone());
    while let Some(size) = search.next() {
        for step in size_steps(context_tokens, size, spec.rounds) {
            if step.round > 1 && rounds.is_over(began.elapsed()) {
                break;
            }
            // What it is compared with, unless that was measured for another size.
            take(
                context,
                Step {
                    sessions: 1,
                    ..step
                },
            )
            .await?;
            take(context, step).await?;
            let run = context.run().context("the record is gone")?;
            let cell = judge_cell(&run, context_tokens, size);
            let is_settled = size == 1 || cell.is_settled();
            if rounds.auto.is_some() && (size == 1 || rounds.looks_after(step.round)) && is_settled
            {
                break;
            }
        }
        if context.stop.is_set() {
            return Ok(());
        }
        let run = context.run().context("the record is gone")?;
        let cell = judge_cell(&run, context_tokens, size);
        let found = found(&run, &cell);
        context.bus.note(format!(
            "{size} at {}: {}",
            format_tokens(context_tokens),
            match found {
                Found::Passes => "fits",
                Found::Fails => "does not fit",
                Found::Blocked => "does not fit, and nothing larger is tried",
            }
        ));
        search.report(size, found);
    }
    Ok(())
}

/// What a size came to, for the search. One that is inconclusive counts as it stands.
fn found(run: &LoadRun, cell: &Cell) -> Found {
    let limits = run.spec.thresholds;
    match passes(cell) {
        _ if blocked(run, cell.context_tokens, cell.sessions).is_some() => Found::Blocked,
        Some(true) => Found::Passes,
        Some(false) => Found::Fails,
        None if cell.verdict == CellVerdict::Unknown => Found::Blocked,
        None => match cell.slowdown.worst {
            Some(worst) if worst <= limits.fail => Found::Passes,
            _ => Found::Fails,
        },
    }
}

/// Measures a step, unless that was done before or need not be.
async fn take(context: &FitContext, step: Step) -> anyhow::Result<()> {
    if context.stop.is_set() {
        return Ok(());
    }
    let run = context.run().context("the record is gone")?;
    let is_it = |round, context, sessions| {
        (round, context, sessions) == (step.round, step.context_tokens, step.sessions)
    };
    let done = |m: &Measured| is_it(m.round, m.context_tokens, m.sessions) && is_finished(m);
    if run.measured.iter().any(done) {
        return Ok(());
    }
    if let Some(reason) = blocked(&run, step.context_tokens, step.sessions) {
        let known = |l: &LeftOut| {
            l.round == Some(step.round) && is_it(step.round, l.context_tokens, l.sessions)
        };
        if !run.left_out.iter().any(known) {
            context.bus.fact(LoadWhat::CellLeftOut {
                left_out: LeftOut {
                    round: Some(step.round),
                    context_tokens: step.context_tokens,
                    sessions: step.sessions,
                    reason,
                },
            })?;
        }
        return Ok(());
    }
    let reset = if context.spec.reset {
        let Some(took) = reset(context).await? else {
            return Ok(());
        };
        Some(took.into())
    } else {
        None
    };
    context.bus.fact(LoadWhat::CellStarted {
        round: step.round,
        context_tokens: step.context_tokens,
        sessions: step.sessions,
    })?;
    // Prompts unlike those of an earlier try, too.
    let tries = run
        .measured
        .iter()
        .filter(|m| is_it(m.round, m.context_tokens, m.sessions));
    let attempt = u64::from(run.resumed) + tries.count() as u64;
    let mut taken = cell::measure(context, step, attempt).await?;
    taken.measured.reset_s = reset;
    keep(context, step, taken.measured, &taken.rows)?;
    if context.stop.is_set() {
        return Ok(());
    }
    let lost = match taken.lost {
        None => is_lost(&context.server).await,
        known => known,
    };
    let Some(lost) = lost else { return Ok(()) };
    report_lost(&context.bus, &lost)?;
    if bring_back(&context.server, &context.bus, &context.stop, &lost).await? {
        warm_up(context).await?;
    }
    Ok(())
}

/// Brings the server back to a known state; `None` when the wish to stop came first.
async fn reset(context: &FitContext) -> anyhow::Result<Option<Duration>> {
    let (server, bus, stop) = (&context.server, &context.bus, &context.stop);
    let took = server_life::reset(server, bus, stop).await?;
    if took.is_some() {
        warm_up(context).await?;
    }
    Ok(took.filter(|_| !stop.is_set()))
}

/// Prompts of the measured shapes, unscored, after the server was started anew or reset.
async fn warm_up(context: &FitContext) -> anyhow::Result<()> {
    let number = context.run().map_or(0, |run| run.server.life.len() as u64);
    let what = shape(&context.spec, number);
    let warming = warm_up_sessions(&context.server, &context.client, &context.calibration, what);
    context.stop.unless(warming).await.transpose()?;
    Ok(())
}

/// The shape of what is measured. `number` tells it from those before.
pub fn shape(spec: &LoadSpec, number: u64) -> WarmUp {
    WarmUp {
        tokens: spec.contexts.iter().copied().min().unwrap_or_default(),
        answer_tokens: spec.answer_tokens,
        warm_turn: true,
        seed: spec.seed,
        number,
    }
}

/// Stores the requests first: a combination whose event is there has all its rows.
fn keep(
    context: &FitContext,
    step: Step,
    measured: Measured,
    rows: &[SessionAttempt],
) -> Result<(), StoreError> {
    let arm = format!("{}x{}", step.context_tokens, step.sessions);
    context.bus.cell_requests(step.round, &arm, rows)?;
    context.bus.fact(LoadWhat::CellMeasured {
        measured: Box::new(measured),
    })
}

/// How a request's end reads as the end of a combination; `None` for a whole answer.
fn stop_kind(end: flashrig_record::Outcome) -> Option<StopKind> {
    use flashrig_record::Outcome;
    match end {
        Outcome::Complete => None,
        Outcome::Refused | Outcome::Overloaded => Some(StopKind::Refused),
        Outcome::Stalled => Some(StopKind::Stalled),
        Outcome::Truncated
        | Outcome::ErrorInStream
        | Outcome::ClientAborted
        | Outcome::UpstreamError
        | Outcome::Unreachable
        | Outcome::RejectedByGateway => Some(StopKind::Failed),
    }
}
