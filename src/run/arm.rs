//! One arm: its sessions together or back to back, then verified.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::JoinSet;

use super::drive::{Gone, Started, drive, start};
use super::prepare::{Ready, prepare, remove_all};
use super::record::record;
use super::rounds::Context;
use super::verifying::{Verify, complete};
use crate::clock::Seconds;
use crate::config::in_words;
use crate::gateway::Gate;
use crate::judge::{arm_figures, server_events};
use crate::plan::SessionPlan;
use crate::records::{Arm, ArmKind, RigLag, Session, Status, What};
use crate::server::{Idle, Span, wait_idle};

/// For requests that clients left behind.
const IDLE_LIMIT: Duration = Duration::from_secs(600);

/// A session that is gone, and its record before verification.
type Ended = (Gone, Session);

/// Runs one arm of a round; round 0 is the unscored warm-up.
pub async fn run(context: &Context, round: u32, kind: ArmKind) -> anyhow::Result<Arm> {
    context.bus.fact(What::ArmStarted { round, arm: kind })?;
    let source_before = context.source_fingerprints()?;
    context.lag.take();
    let mut watch = context.watcher.span();
    let (gone, idle): (Vec<Ended>, _) = match kind {
        ArmKind::Together | ArmKind::Gated => together(context, round, kind, &mut watch).await?,
        ArmKind::BackToBack => back_to_back(context, round, &mut watch).await?,
    };
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
    let mut verified = Vec::with_capacity(gone.len());
    for (one, mut session) in gone {
        if let Some(words) = context.escaped(one.plan.index, &source_before)? {
            session.status = Status::Escaped;
            session.detail = words;
        }
        if !context.stop.is_set() {
            context.bus.note(format!("verifying {}", session.id));
        }
        let session = verified_or_why_not(context, &one, session).await;
        let what = What::SessionVerified {
            round,
            arm: kind,
            session: Box::new(session.clone()),
        };
        context.bus.fact(what)?;
        verified.push(session);
    }
    let mut arm = Arm {
        idle_wait_s: idle.map(|idle| Seconds::from(idle.waited)),
        idle_by: idle.map(|idle| idle.by),
        watched,
        rig_lag_ms: lag,
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
    Ok(arm)
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
    let whole = complete(context, gone, session.clone(), Verify::Yes);
    let done = match context.stop.unless(whole).await {
        Some(done) => done,
        None => complete(context, gone, session.clone(), Verify::No).await,
    };
    done.unwrap_or_else(|error| {
        let words = format!("flashrig could not verify it: {}", in_words(&error));
        Session {
            status: Status::RigError,
            failures: vec![words.clone()],
            detail: words,
            ..session
        }
    })
}

/// All sessions are prepared, then let go at once. In the arm `gated` they share one gate.
async fn together(
    context: &Context,
    round: u32,
    kind: ArmKind,
    watch: &mut Span<'_>,
) -> anyhow::Result<(Vec<Ended>, Option<Idle>)> {
    let gate = gate(context, kind);
    let mut ready: Vec<Ready> = Vec::with_capacity(context.plan.sessions.len());
    for plan in &context.plan.sessions {
        ready.push(prepare(context, plan, round, kind, gate.clone()).await?);
    }
    let idle = idle(context).await?;
    watch.open().await;
    for one in &ready {
        tell_start(context, round, kind, &one.plan)?;
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
    Ok((gone, idle))
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
    watch: &mut Span<'_>,
) -> anyhow::Result<(Vec<Ended>, Option<Idle>)> {
    let mut gone = Vec::new();
    let mut waited = None;
    for plan in &context.plan.sessions {
        if context.stop.is_set() {
            break;
        }
        let ready = prepare(context, plan, round, ArmKind::BackToBack, None).await?;
        waited = Idle::and(waited, idle(context).await?);
        watch.open().await;
        tell_start(context, round, ArmKind::BackToBack, plan)?;
        let started: Started = start(ready).await;
        let one = drive(started, context.bus.live(), context.stop.clone()).await;
        gone.push(ended(context, round, ArmKind::BackToBack, one)?);
    }
    Ok((gone, waited))
}

/// Waits until the server is idle, or the run is to stop; the sessions then end at once.
async fn idle(context: &Context) -> anyhow::Result<Option<Idle>> {
    let waited = context
        .stop
        .unless(wait_idle(&context.server, IDLE_LIMIT))
        .await;
    Ok(waited.transpose()?)
}

fn tell_start(
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
    let session = record(&gone, &gone.attempts, context.bus.origin());
    if session.tried_to_leave {
        let words = format!("{}: tried to leave the machine; refused", session.id);
        context.bus.note(words);
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
