//! One arm: its sessions together or back to back, then verified.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::{StreamExt as _, stream};
use tokio::task::JoinSet;

use super::context::Context;
use super::drive::{Gone, Started, drive, start};
use super::machine::{MachineSpan, agents_cpu, changed};
use super::ready::{Ready, prepare};
use super::record::record;
use super::sources::Sources;
use super::verifying::{Verify, complete};
use super::watchdog::Watchdog;
use crate::agent::Ending;
use crate::plan::SessionPlan;
use crate::run::shared::scratch::remove_all;
use crate::run::shared::server_life::{Lost, found_lost, report_lost};
use flashrig_clock::Seconds;
use flashrig_config::error_chain;
use flashrig_gateway::Gate;
use flashrig_record::{Arm, ArmKind, RigLag, Session, SessionDetail, SessionFailure, Status, What};
use flashrig_report::judge::{arm_figures, server_events};
use flashrig_server::{Idle, IdleError, Span, wait_idle};

/// For requests that clients left behind.
const IDLE_LIMIT: Duration = Duration::from_secs(600);

/// A session that ended so long before the loss was known, at most, may have ended for it.
const NEAR: Duration = Duration::from_secs(5);

/// A session that is gone, and its record before verification.
type Ended = (Gone, Session);

/// Runs one arm of a round; round 0 is the unscored warm-up. `reset` is how long it took to bring
/// the server back to a known state before it, where that was wanted.
pub async fn run(
    context: &Context,
    round: u32,
    kind: ArmKind,
    reset: Option<Duration>,
) -> anyhow::Result<(Arm, Option<Lost>)> {
    context.bus.fact(What::ArmStarted { round, arm: kind })?;
    let sources = Sources::look(context)?;
    context.lag.take();
    let machine = MachineSpan::begin(context.server_at);
    let mut watch = context.watcher.span();
    let watchdog = Watchdog::new(context.plan.first_token_limit);
    let sessions = async {
        match kind {
            ArmKind::Together | ArmKind::Gated => {
                together(context, round, kind, &watchdog, &mut watch).await
            }
            ArmKind::BackToBack | ArmKind::BackToBackAgain => {
                back_to_back(context, round, kind, &watchdog, &mut watch).await
            }
        }
    };
    let (ran, lost) = watchdog.beside(&context.server, sessions).await;
    let Ran {
        mut gone,
        idle,
        no_server,
    } = ran?;
    let cpu = gone.iter().map(|(_, session)| &session.cpu_s);
    let machine = machine.end(context.server_at, agents_cpu(cpu));
    let lost = match lost.or(no_server) {
        None if has_trouble(context, &gone) => found_lost(&context.server).await,
        known => known,
    };
    if let Some(lost) = &lost {
        report_lost(&context.bus, lost)?;
        gone.iter_mut().for_each(|one| attribute_loss(one, lost));
    }
    let lag = context.lag.take().map(|lag| RigLag {
        p50: lag.p50_ms,
        p99: lag.p99_ms,
        max: lag.max_ms,
    });
    let requests = gone.iter().map(|(one, _)| one);
    let sent = requests
        .clone()
        .flat_map(|one| one.attempts.iter().map(|a| (one.plan.id.as_str(), a)));
    let watched = watch.close(sent).await;
    let events = server_events(requests.map(|one| (one.plan.id.as_str(), &*one.attempts)));
    let escapes = sources.escapes(context)?;
    // Nothing is measured now: as many at once as there are processors, told in the plan's order.
    let mut verifying = stream::iter(gone.into_iter().map(|(one, mut session)| {
        if let Some(detail) = escapes.of(&one.plan) {
            session.status = Status::Escaped;
            session.detail = detail;
        }
        async move {
            let is_cut = matches!(one.ending, Ending::ServerLost(_));
            if !context.stop.is_set() && !is_cut {
                context.bus.note(format!("verifying {}", session.id));
            }
            verified_or_why_not(context, &one, session).await
        }
    }))
    .buffered(context.cores.map_or(1, |n| n as usize).max(1));
    let mut verified = Vec::with_capacity(context.plan.sessions.len());
    while let Some(session) = verifying.next().await {
        let what = What::SessionVerified {
            round,
            arm: kind,
            session: Box::new(session.clone()),
        };
        context.bus.fact(what)?;
        verified.push(session);
    }
    drop(verifying);
    let mut arm = Arm {
        idle_wait_s: idle.map(|idle| Seconds::from(idle.waited)),
        idle_by: idle.map(|idle| idle.by),
        watched,
        reset_s: reset.map(Seconds::from),
        machine: Some(machine),
        changed_programs: changed(&context.programs),
        rig_lag_ms: lag,
        server_lost: lost.as_ref().map(Lost::loss),
        server_events: events,
        sessions: verified,
        ..Arm::unmeasured(kind)
    };
    arm_figures(&mut arm, context.cores);
    context.bus.fact(What::ArmFinished {
        round,
        arm: Box::new(arm.clone()),
    })?;
    clear(context);
    Ok((arm, lost))
}

/// What came of an arm's sessions.
struct Ran {
    gone: Vec<Ended>,
    idle: Option<Idle>,
    /// The server was gone before they began.
    no_server: Option<Lost>,
}

impl Ran {
    fn no_server(lost: Lost) -> Self {
        Self {
            gone: Vec::new(),
            idle: None,
            no_server: Some(lost),
        }
    }
}

/// Whether a session ended as it does when the server is lost, too.
fn has_trouble(context: &Context, gone: &[Ended]) -> bool {
    !context.stop.is_set() && gone.iter().any(|(_, s)| s.status == Status::ServerError)
}

/// A session that ended by itself in the moment in which the server was lost ended for that.
fn attribute_loss((one, session): &mut Ended, lost: &Lost) {
    let is_near = |end| lost.at().since(end) < NEAR;
    if one.ended.is_some_and(is_near) && session.status == Status::ServerError {
        session.detail = SessionDetail::ServerLost { loss: lost.loss() };
    }
}

/// Removes workspaces, homes and verified trees once everything is recorded, so that neither a
/// verdict nor the next preparation waits for it. What cannot be removed now is tried again when
/// its place is needed.
fn clear(context: &Context) {
    for plan in &context.plan.sessions {
        for kind in ["s", "verify"] {
            let folder = context
                .scratch
                .path()
                .join(format!("{kind}{}", plan.index + 1));
            if folder.exists() {
                let _ = remove_all(&folder);
            }
        }
    }
}

/// Completes a record. A run that is being stopped does not sit through builds, and one session
/// that cannot be verified does not take the others with it: either is said in its record.
async fn verified_or_why_not(context: &Context, gone: &Gone, session: Session) -> Session {
    if matches!(gone.ending, Ending::ServerLost(_)) {
        // Cut off in its work: what the checks would say is known.
        return or_why_not(
            complete(context, gone, session.clone(), Verify::No).await,
            session,
        );
    }
    let whole = complete(context, gone, session.clone(), Verify::Yes);
    let done = match context.stop.unless(whole).await {
        Some(done) => done,
        None => complete(context, gone, session.clone(), Verify::No).await,
    };
    or_why_not(done, session)
}

fn or_why_not(done: anyhow::Result<Session>, session: Session) -> Session {
    done.unwrap_or_else(|error| {
        let error = error_chain(&error);
        let (status, detail) = (
            Status::RigError,
            SessionDetail::VerificationFailed { error },
        );
        Session {
            status,
            failures: vec![SessionFailure::NotCompleted {
                status,
                detail: detail.clone(),
            }],
            detail,
            ..session
        }
    })
}

/// All sessions are prepared, then let go at once. In the arm `gated` they share one gate.
async fn together(
    context: &Context,
    round: u32,
    kind: ArmKind,
    watchdog: &Watchdog,
    watch: &mut Span<'_>,
) -> anyhow::Result<Ran> {
    let gate = gate(context, kind);
    let mut ready: Vec<Ready> = Vec::with_capacity(context.plan.sessions.len());
    for plan in &context.plan.sessions {
        ready.push(prepare(context, plan, round, kind, gate.clone(), watchdog).await?);
    }
    let idle = match idle(context).await? {
        Ok(idle) => idle,
        Err(lost) => return Ok(Ran::no_server(lost)),
    };
    watch.open().await;
    for one in &ready {
        report_start(context, round, kind, &one.plan)?;
    }
    let mut starting = JoinSet::new();
    for one in ready {
        starting.spawn(start(one));
    }
    let mut following = JoinSet::new();
    while let Some(started) = starting.join_next().await {
        let started = started.context("a session could not be let go")?;
        following.spawn(drive(started, context.bus.live(), context.stop.clone()));
    }
    let mut gone = Vec::new();
    while let Some(one) = following.join_next().await {
        let one = one.context("a session was lost")?;
        gone.push(ended(context, round, kind, one)?);
    }
    gone.sort_by_key(|(one, _)| one.plan.index);
    Ok(Ran {
        gone,
        idle,
        no_server: None,
    })
}

/// The gate of an arm; a limit of 0 is never planned.
fn gate(context: &Context, kind: ArmKind) -> Option<Arc<Gate>> {
    let gate = context.plan.gate.filter(|_| kind == ArmKind::Gated)?;
    Some(Gate::new(NonZeroU32::new(gate.limit)?, gate.order))
}

/// Each session is prepared, let go, and gone before the next one is.
async fn back_to_back(
    context: &Context,
    round: u32,
    kind: ArmKind,
    watchdog: &Watchdog,
    watch: &mut Span<'_>,
) -> anyhow::Result<Ran> {
    let mut ran = Ran {
        gone: Vec::new(),
        idle: None,
        no_server: None,
    };
    for plan in &context.plan.sessions {
        if context.stop.is_set() || watchdog.is_over() {
            break;
        }
        let ready = prepare(context, plan, round, kind, None, watchdog).await?;
        match idle(context).await? {
            Ok(idle) => ran.idle = Idle::and(ran.idle, idle),
            Err(lost) => {
                ran.no_server = Some(lost);
                break;
            }
        }
        watch.open().await;
        report_start(context, round, kind, plan)?;
        let started: Started = start(ready).await;
        let one = drive(started, context.bus.live(), context.stop.clone()).await;
        ran.gone.push(ended(context, round, kind, one)?);
    }
    Ok(ran)
}

/// Waits until the server is idle, or the run is to stop; the sessions then end at once.
/// A server that is lost never is.
async fn idle(context: &Context) -> anyhow::Result<Result<Option<Idle>, Lost>> {
    let waited = context
        .stop
        .unless(wait_idle(&context.server, IDLE_LIMIT))
        .await;
    match waited {
        None => Ok(Ok(None)),
        Some(Ok(idle)) => Ok(Ok(Some(idle))),
        Some(Err(error @ IdleError::Gone(_))) => {
            let lost = found_lost(&context.server).await;
            lost.map_or(Err(error.into()), |lost| Ok(Err(lost)))
        }
        Some(Err(busy)) => Err(busy.into()),
    }
}

fn report_start(
    context: &Context,
    round: u32,
    arm: ArmKind,
    plan: &SessionPlan,
) -> anyhow::Result<()> {
    let what = What::SessionStarted {
        round,
        arm,
        session: plan.id.clone(),
    };
    Ok(context.bus.fact(what)?)
}

/// Records a session as soon as it is gone, so that a rig that is killed later has told of it.
fn ended(context: &Context, round: u32, arm: ArmKind, gone: Gone) -> anyhow::Result<Ended> {
    let context_tokens = context.server.record.context_tokens;
    let session = record(&gone, &gone.attempts, context_tokens, context.bus.origin());
    if session.tried_to_leave {
        let message = format!("{}: tried to leave the machine; refused", session.id);
        context.bus.note(message);
    }
    context
        .bus
        .requests(round, arm.slug(), &session.id, &gone.attempts)?;
    context.bus.fact(What::SessionEnded {
        round,
        arm,
        session: Box::new(session.clone()),
    })?;
    Ok((gone, session))
}
