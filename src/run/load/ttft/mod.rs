//! The driver of `ttft`: so many requests at once, one number after the other, round by round.
//!
//! A server that stops answering ends the run; what was measured stays. Nothing is judged here.

mod prepare;
mod stall;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use stall::{is_lost, note, stopped};

use crate::run::shared::instrument::own_cpu;
use crate::run::shared::server_life::{self, Lost, bring_back, found_lost, report_lost};
use crate::run::shared::stop::stopped_because;
use crate::run::{Bus, RunError, Stop, warm_up_sessions};
use flashrig_clock::Seconds;
use flashrig_load::{Client, Meter, Prepared, SessionAttempt, SessionPlan, WarmUp, salt};
use flashrig_record::{
    Calibration, CellStop, CellStopReason, Lane, LeftOut, LeftOutReason, LoadRun, LoadSpec,
    LoadWhat, Measured, NotRestarted, RunState, StopKind, StoppedBecause, Turn,
};
use flashrig_report::judge::ttft::{rows, verdict};
use flashrig_server::{Connected, IdleError, Served, Watcher, wait_idle, watch_pulse};

/// The longest wait for the server to be idle, on the wall clock.
const IDLE_LIMIT: Duration = Duration::from_secs(600);
/// Name of the one long prompt among the short ones.
pub use flashrig_report::judge::ttft::LONG;

pub use prepare::{Request, prepare};

/// Everything that a run needs, prepared.
#[derive(Debug)]
pub struct TtftContext {
    /// The server.
    pub server: Connected,
    /// Watches it.
    pub watcher: Watcher,
    /// The client.
    pub client: Client,
    /// How prompts are brought to their size.
    pub calibration: Calibration,
    /// What was asked for: `contexts` has one entry, the tokens of a prompt.
    pub spec: LoadSpec,
    /// Whether the server runs in this process.
    pub embedded: bool,
    /// Where everything is told.
    pub bus: Bus<LoadRun>,
    /// The wish to stop.
    pub stop: Stop,
}

/// Measures and seals the record, however it ends.
///
/// # Errors
/// The results folder cannot be written.
pub async fn execute(context: &TtftContext, record: LoadRun) -> Result<LoadRun, RunError> {
    context.bus.fact(LoadWhat::RunStarted {
        run: Box::new(record),
    })?;
    let (stalled, failure) = match measure_all(context).await {
        Ok(stalled) => (stalled, None),
        Err(error) => (None, Some(error)),
    };
    let (state, stopped_because) = match (context.stop.ending(failure.as_ref()), stalled) {
        ((RunState::Finished, _), Some(ended)) => (RunState::Failed, Some(ended)),
        (ending, _) => ending,
    };
    let run = context.bus.with(|store| store.run().cloned());
    let run = run.ok_or(RunError::Nothing)?;
    let ttft = rows(&run);
    let verdict = verdict(&run, &ttft, stopped_because.as_ref());
    context.bus.fact(LoadWhat::RunFinished {
        state,
        stopped_because,
        rig_cpu_s: own_cpu(),
        cells: Vec::new(),
        ttft,
        verdict: Some(Box::new(verdict)),
    })?;
    let run = context.bus.with(|store| store.run().cloned());
    run.ok_or(RunError::Nothing)
}

/// Measures round by round; tells why the server has stopped answering, when it has.
async fn measure_all(context: &TtftContext) -> anyhow::Result<Option<StoppedBecause>> {
    let spec = &context.spec;
    let mut served = Served::default();
    let steps = (1..=spec.rounds).flat_map(|round| spec.sessions.iter().map(move |n| (round, *n)));
    let mut ended: Option<(StopKind, StoppedBecause)> = None;
    for (round, agents) in steps {
        if context.stop.is_set() {
            return Ok(None);
        }
        if let Some((kind, _)) = &ended {
            context.bus.fact(LoadWhat::CellLeftOut {
                left_out: LeftOut {
                    round: Some(round),
                    context_tokens: prompt_tokens(spec),
                    sessions: agents,
                    reason: match kind {
                        StopKind::Stalled => LeftOutReason::ServerSilent,
                        _ => LeftOutReason::ServerGone,
                    },
                },
            })?;
            continue;
        }
        let Some(reset) = reset(context).await? else {
            return Ok(None);
        };
        let (mut measured, rows, lost) = measure(context, round, agents, &mut served).await?;
        measured.reset_s = reset;
        ended = measured.stopped.as_ref().and_then(end_of_run);
        keep(context, measured, &rows)?;
        let Some(lost) = lost else { continue };
        report_lost(&context.bus, &lost)?;
        let is_last = (round, Some(&agents)) == (spec.rounds, spec.sessions.last());
        match bring_back_unless(is_last, context, &lost).await {
            Ok(true) => ended = None,
            Ok(false) => {}
            // What to do next stands beside what happened.
            Err(error) => ended = Some((StopKind::Failed, stopped_because(&error))),
        }
    }
    Ok(ended.map(|(_, because)| because))
}

/// The end of the run by that of a step; `None` when it goes on, or the user stopped it.
fn end_of_run(stop: &CellStop) -> Option<(StopKind, StoppedBecause)> {
    let because = match &stop.reason {
        CellStopReason::ServerLost { loss } => StoppedBecause::ServerLost {
            loss: loss.clone(),
            not_restarted: NotRestarted::NotNeeded,
        },
        CellStopReason::ServerStalled { stall } => StoppedBecause::ServerStalled {
            stall: stall.clone(),
        },
        CellStopReason::ByUser => return None,
        other => StoppedBecause::Failed {
            error: other.to_string(),
        },
    };
    Some((stop.kind, because))
}

/// Brings the server back to a known state, where that is wanted, and tells how long it took; `None`
/// when the wish to stop came first.
async fn reset(context: &TtftContext) -> anyhow::Result<Option<Option<Seconds>>> {
    if !context.spec.reset {
        return Ok(Some(None));
    }
    let (server, bus, stop) = (&context.server, &context.bus, &context.stop);
    let Some(took) = server_life::reset(server, bus, stop).await? else {
        return Ok(None);
    };
    let warming = warm_up(context, server_starts(context));
    let warmed = stop.unless(warming).await.transpose()?;
    Ok(warmed.map(|()| Some(took.into())))
}

/// Starts the lost server again, for what is still to be measured. `false` when it was not.
async fn bring_back_unless(
    is_last: bool,
    context: &TtftContext,
    lost: &Lost,
) -> anyhow::Result<bool> {
    let server = &context.server;
    if is_last && server.life.may_restart() {
        return Ok(true);
    }
    if !bring_back(server, &context.bus, &context.stop, lost).await? {
        return Ok(false);
    }
    let warming = warm_up(context, server_starts(context));
    Ok(context.stop.unless(warming).await.transpose()?.is_some())
}

/// How often the server was lost, started again or reset.
fn server_starts(context: &TtftContext) -> u64 {
    let run = context.bus.with(|store| store.run().cloned());
    run.map_or(0, |run| run.server.life.len() as u64)
}

/// A prompt of the measured shape, unscored. `number` tells it from those before.
///
/// # Errors
/// The server refuses, fails or stalls.
async fn warm_up(context: &TtftContext, number: u64) -> anyhow::Result<()> {
    let what = shape(&context.spec, number);
    warm_up_sessions(&context.server, &context.client, &context.calibration, what).await
}

/// The shape of what is measured.
pub fn shape(spec: &LoadSpec, number: u64) -> WarmUp {
    WarmUp {
        tokens: prompt_tokens(spec) + u64::from(spec.answer_tokens),
        answer_tokens: spec.answer_tokens,
        warm_turn: false,
        seed: spec.seed,
        number,
    }
}

fn prompt_tokens(spec: &LoadSpec) -> u64 {
    spec.contexts.first().copied().unwrap_or(0)
}

/// The requests first: a step whose event is there has all its rows.
fn keep(context: &TtftContext, measured: Measured, rows: &[SessionAttempt]) -> anyhow::Result<()> {
    let arm = format!("{}x{}", measured.context_tokens, measured.sessions);
    context.bus.cell_requests(measured.round, &arm, rows)?;
    context.bus.fact(LoadWhat::CellMeasured {
        measured: Box::new(measured),
    })?;
    Ok(())
}

/// So many requests at once.
async fn measure(
    context: &TtftContext,
    round: u32,
    agents: u32,
    served: &mut Served,
) -> anyhow::Result<(Measured, Vec<SessionAttempt>, Option<Lost>)> {
    let speed = context.client.aim().speed;
    context.bus.fact(LoadWhat::CellStarted {
        round,
        context_tokens: prompt_tokens(&context.spec),
        sessions: agents,
    })?;
    let mut measured = Measured::nothing(round, prompt_tokens(&context.spec), agents);
    let idle = wait_idle(&context.server, IDLE_LIMIT);
    let Some(idle) = context.stop.unless(idle).await else {
        measured.stopped = Some(Stop::of_a_cell());
        return Ok((measured, Vec::new(), None));
    };
    let idle = match idle {
        Err(error @ IdleError::Gone(_)) => {
            let lost = found_lost(&context.server).await.ok_or(error)?;
            measured.stopped = Some(lost.of_a_cell());
            return Ok((measured, Vec::new(), Some(lost)));
        }
        idle => idle?,
    };
    measured.was_idle(idle.waited, idle.by, speed);
    let requests = prompts(context, round, agents).await?;
    context.client.connect(requests.len()).await;
    let mut watch = context.watcher.span();
    watch.open().await;
    let meter = Meter::start(&context.client, context.embedded).context("the client's meter")?;
    let mut seen = None;
    let limit = context.client.aim().limits_on_the_wall().first_token;
    let anybody_waits = || context.client.in_flight() > 0;
    let volley = async {
        tokio::select! {
            lanes = volley(&context.client, requests) => lanes,
            never = watch_pulse(&context.server, limit, anybody_waits, &mut seen) => match never {},
        }
    };
    let volley = context.stop.unless(volley).await;
    measured.client = meter.finish();
    let rows = context.client.take_rows();
    measured.was_watched(watch.close(rows.iter().map(SessionAttempt::named)).await);
    let Some(lanes) = volley else {
        measured.stopped = Some(Stop::of_a_cell());
        return Ok((measured, rows, None));
    };
    measured.lanes = lanes?;
    measured.start_skew_s = skew(&measured.lanes, speed);
    note(served, &measured.lanes);
    let lost = is_lost(context, &measured.lanes).await;
    measured.stopped = match &lost {
        Some(lost) => Some(lost.of_a_cell()),
        None => stopped(context, &measured.lanes, *served, seen).await,
    };
    Ok((measured, rows, lost))
}

/// Builds all prompts before any clock starts. Prompts of one step begin alike when they are to;
/// those of two steps never do.
async fn prompts(
    context: &TtftContext,
    round: u32,
    agents: u32,
) -> anyhow::Result<Vec<(String, Prepared)>> {
    let spec = context.spec.clone();
    let (client, calibration) = (context.client.clone(), context.calibration);
    // Megabytes of text: not on a thread that reads sockets.
    let preparing = tokio::task::spawn_blocking(move || {
        let step = salt(&[spec.seed, round.into(), agents.into()]);
        let long = spec.long_tokens.filter(|_| agents > 1);
        (1..=agents)
            .map(|number| {
                let long = long.filter(|_| number == 1);
                let id = long.map_or_else(|| format!("a{number}"), |_| LONG.to_owned());
                let tokens = long.unwrap_or_else(|| prompt_tokens(&spec));
                let plan = SessionPlan {
                    id: id.clone(),
                    context_tokens: tokens + u64::from(spec.answer_tokens),
                    checks: 0,
                    answer_tokens: spec.answer_tokens,
                    seed: step,
                    salt: salt(&[step, number.into()]),
                    shared_prefix: spec.shared_prefix,
                };
                Ok((id, Prepared::new(&client, &calibration, plan)?))
            })
            .collect::<anyhow::Result<Vec<_>>>()
    });
    preparing.await?
}

/// Sends all requests at once and waits for all of them.
async fn volley(client: &Client, requests: Vec<(String, Prepared)>) -> anyhow::Result<Vec<Lane>> {
    let start = Arc::new(Barrier::new(requests.len()));
    let mut tasks = JoinSet::new();
    for (index, (id, mut request)) in requests.into_iter().enumerate() {
        let (client, start) = (client.clone(), start.clone());
        tasks.spawn(async move {
            start.wait().await;
            let turns = vec![request.cold(&client).await];
            (index, Lane { id, turns })
        });
    }
    let mut lanes = Vec::new();
    while let Some(done) = tasks.join_next().await {
        lanes.push(done.context("a request of flashrig itself failed")?);
    }
    lanes.sort_by_key(|(index, _)| *index);
    Ok(lanes.into_iter().map(|(_, lane)| lane).collect())
}

fn turns(lanes: &[Lane]) -> impl Iterator<Item = &Turn> {
    lanes.iter().flat_map(|lane| &lane.turns)
}

fn skew(lanes: &[Lane], speed: f64) -> Option<Seconds> {
    let sent = || turns(lanes).map(|turn| turn.sent_at_s.0);
    let (first, last) = (sent().reduce(f64::min)?, sent().reduce(f64::max)?);
    Some(Seconds((last - first) * speed))
}
