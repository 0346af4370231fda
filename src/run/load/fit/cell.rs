//! One combination: so many sessions at one context length.

use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::oneshot;

use super::FitContext;
use super::lanes::{Broken, Lanes, name};
use super::sides::{Over, Sides};
use crate::plan::grid::Step;
use crate::run::Stop;
use crate::run::shared::server_life::{Lost, found_lost};
use flashrig_clock::Seconds;
use flashrig_load::{Meter, Prepared, SessionAttempt, SessionPlan, salt};
use flashrig_record::{CellStopReason, Lane, Life, Measured, SideTurn, StopKind, Turn};
use flashrig_server::{IdleError, log_tail, pulse, wait_idle};

/// The longest wait for the server to be idle, on the wall clock.
const IDLE_LIMIT: Duration = Duration::from_secs(600);

/// A combination that was measured.
pub struct Taken {
    pub measured: Measured,
    /// Its requests.
    pub rows: Vec<SessionAttempt>,
    /// The server was lost in it.
    pub lost: Option<Lost>,
}

/// Measures a combination; its requests' rows come with it. A server that refuses, stalls or
/// fails is part of what was measured.
///
/// # Errors
/// The rig failed, the server does not become idle, or the context is too small for the turns.
pub async fn measure(context: &FitContext, step: Step, attempt: u64) -> anyhow::Result<Taken> {
    let mut measured = Measured::nothing(step.round, step.context_tokens, step.sessions);
    let idle = context.stop.unless(wait_idle(&context.server, IDLE_LIMIT));
    match idle.await {
        None => {
            measured.stopped = Some(Stop::of_a_cell());
            return Ok(Taken::nothing(measured, None));
        }
        Some(Err(error @ IdleError::Gone(_))) => {
            let lost = found_lost(&context.server).await.ok_or(error)?;
            measured.stopped = Some(lost.of_a_cell());
            return Ok(Taken::nothing(measured, Some(lost)));
        }
        Some(idle) => {
            let idle = idle?;
            measured.was_idle(idle.waited, idle.by, context.speed);
        }
    }
    let sessions = prepare(context, step, attempt).await?;
    // One for each session and one for a side request: none waits for a connection.
    context.client.connect(sessions.len() + 1).await;
    let mut watch = context.watcher.span();
    watch.open().await;
    let meter = Meter::start(&context.client, context.embedded).context("the client's meter")?;

    let lanes = Lanes::new(step.sessions);
    let phases = phases(context, step, attempt, &lanes, sessions, &mut measured.side);
    let ended = phases.await;
    measured.client = meter.finish();
    let rows = context.client.take_rows();
    measured.was_watched(watch.close(rows.iter().map(SessionAttempt::named)).await);
    if ended.is_err() {
        lanes.broken_off(&rows, context.speed);
    }
    measured.stopped = ended.err();
    measured.lanes = lanes.take();
    measured.start_skew_s = start_skew(context, &measured.lanes);
    measured.warm_span_s = warm_span(&measured.lanes, context.speed);
    let lost = lost_in(context, &measured).await;
    if let Some(lost) = &lost {
        measured.stopped = Some(lost.of_a_cell());
    } else if let Some(stop) = &mut measured.stopped
        && stop.kind == StopKind::Stalled
        && let CellStopReason::TurnFailed { life, .. } = &mut stop.reason
    {
        *life = Some(Life {
            pulse: pulse(&context.server).await,
            log: log_tail(&context.server.last_lines()),
        });
    }
    Ok(Taken {
        measured,
        rows,
        lost,
    })
}

impl Taken {
    fn nothing(measured: Measured, lost: Option<Lost>) -> Self {
        Self {
            measured,
            rows: Vec::new(),
            lost,
        }
    }
}

/// Whether a combination failed as it does when the server is lost, and it is.
async fn lost_in(context: &FitContext, measured: &Measured) -> Option<Lost> {
    let stop = measured.stopped.as_ref()?;
    let may_be = matches!(stop.kind, StopKind::Failed | StopKind::Stalled);
    if !may_be || context.stop.is_set() {
        return None;
    }
    found_lost(&context.server).await
}

async fn phases(
    context: &FitContext,
    step: Step,
    attempt: u64,
    lanes: &Lanes,
    sessions: Vec<Prepared>,
    side: &mut Vec<SideTurn>,
) -> Result<(), Broken> {
    let Some(sides) = Sides::new(context, step, attempt) else {
        let sessions = lanes.cold(context, sessions).await?;
        return lanes.warm(context, sessions).await;
    };
    let beside = sides.during_cold(|| lanes.unsent(), side);
    let sessions = unless_broken(lanes.cold(context, sessions), beside).await?;
    let (over, is_over) = oneshot::channel();
    let warm = async {
        let done = lanes.warm(context, sessions).await;
        let _ = over.send(if done.is_ok() {
            Over::Done
        } else {
            Over::Broken
        });
        done
    };
    let (done, ()) = tokio::join!(warm, sides.during_warm(is_over, side));
    done
}

/// Both to their end; but when the sessions are broken off, so is what is beside them.
async fn unless_broken<T>(
    sessions: impl Future<Output = Result<T, Broken>>,
    beside: impl Future<Output = ()>,
) -> Result<T, Broken> {
    tokio::pin!(sessions, beside);
    tokio::select! {
        biased;
        done = &mut sessions => {
            let done = done?;
            beside.await;
            Ok(done)
        }
        () = &mut beside => sessions.await,
    }
}

/// Builds all first prompts before any clock starts.
async fn prepare(context: &FitContext, step: Step, attempt: u64) -> anyhow::Result<Vec<Prepared>> {
    let spec = &context.spec;
    let plans: Vec<SessionPlan> = (1..=step.sessions)
        .map(|number| SessionPlan {
            id: name(number),
            context_tokens: step.context_tokens,
            checks: spec.checks,
            answer_tokens: spec.answer_tokens,
            seed: spec.seed,
            salt: salt(&[
                spec.seed,
                step.round.into(),
                step.context_tokens,
                step.sessions.into(),
                attempt,
                number.into(),
            ]),
            shared_prefix: false,
        })
        .collect();
    let (client, calibration) = (context.client.clone(), context.calibration);
    // Megabytes of text: not on a thread that reads sockets.
    let prepared = tokio::task::spawn_blocking(move || {
        plans
            .into_iter()
            .map(|plan| Prepared::new(&client, &calibration, plan))
            .collect::<Result<Vec<_>, _>>()
    });
    Ok(prepared.await??)
}

/// Last first turn sent minus first one, less what was staggered on purpose.
fn start_skew(context: &FitContext, lanes: &[Lane]) -> Option<Seconds> {
    let stagger = context.spec.stagger_s.0;
    let sent: Option<Vec<f64>> = lanes
        .iter()
        .zip(0u32..)
        .map(|(lane, n)| {
            let first = lane.turns.first()?;
            Some(first.sent_at_s.0 * context.speed - stagger * f64::from(n))
        })
        .collect();
    span(&sent?).map(Seconds)
}

fn span(values: &[f64]) -> Option<f64> {
    let first = values.iter().copied().reduce(f64::min)?;
    let last = values.iter().copied().reduce(f64::max)?;
    Some(last - first)
}

/// From the first warm turn's start to the last one's end, when all of them ended.
fn warm_span(lanes: &[Lane], speed: f64) -> Option<Seconds> {
    let warm = || lanes.iter().flat_map(|l| &l.turns).filter(|t| t.index > 0);
    let start = |turn: &Turn| turn.sent_at_s.0 * speed;
    let ends: Option<Vec<f64>> = warm()
        .map(|turn| Some(start(turn) + turn.wall_s?.0))
        .collect();
    let first = warm().map(start).reduce(f64::min)?;
    let last = ends?.into_iter().reduce(f64::max)?;
    Some(Seconds(last - first))
}
