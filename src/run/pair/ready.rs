//! Making a session ready: workspace, home, gateway, supervised program. Nothing runs yet.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use sha2::{Digest, Sha256};

use super::bodies::SessionBodies;
use super::context::Context;
use super::watchdog::{Cut, Informer, Watchdog};
use crate::agent::{HOME_FOLDERS, Values, launch};
use crate::plan::SessionPlan;
use crate::run::shared::bus::{Live, Step};
use crate::run::shared::scratch::remove_all;
use flashrig_gateway::egress::{AllowList, EgressGuard, GuardConfig};
use flashrig_gateway::{Gate, GatewayEvent, GatewaySession, Limits, ListenConfig, Session};
use flashrig_http::Secret;
use flashrig_process::{Output, Prepared, Spec};
use flashrig_record::{ArmKind, CachePolicy};

/// Where a session works and where its record goes.
#[derive(Clone, Debug)]
pub struct Places {
    /// Its copy of the repository. The same path in every arm, so that prompts are the same.
    pub work: PathBuf,
    /// Its private home.
    pub home: PathBuf,
    /// Its folder in the results.
    pub record: PathBuf,
    /// The name of that folder.
    pub folder: String,
}

/// A session that only waits for the signal to start.
pub struct Ready {
    pub plan: SessionPlan,
    pub places: Places,
    pub gateway: GatewaySession,
    pub egress: EgressGuard,
    pub bodies: SessionBodies,
    pub prepared: Prepared,
    pub cut: Cut,
}

/// Prepares one session of an arm.
pub async fn prepare(
    context: &Context,
    plan: &SessionPlan,
    round: u32,
    kind: ArmKind,
    gate: Option<Arc<Gate>>,
    watchdog: &Watchdog,
) -> anyhow::Result<Ready> {
    let places = places(context, plan, round, kind)?;
    let base = context.bases[plan.index].clone();
    let work = places.work.clone();
    tokio::task::spawn_blocking(move || base.copy_to(&work))
        .await
        .context("the copy was cut off")?
        .with_context(|| format!("session {}: cannot copy its repository", plan.id))?;

    let token = token(&context.secret, &plan.id, round, kind);
    let redactor = context.server.upstream.redactor().and([token.as_str()]);
    let bodies = context.bodies.session(&places.record, redactor);
    let (informer, cut) = watchdog.seat();
    let listeners = (bodies.clone(), informer);
    let gateway = open_gateway(context, plan, (round, kind), gate, &token, listeners).await?;
    let egress = open_guard(context, plan).await?;
    let record = &context.server.record;
    let values = Values {
        prompt: plan.task.prompt.clone(),
        base_url: gateway.base_url(),
        token,
        model: record.model.clone(),
        workspace: places.work.clone(),
        home: places.home.clone(),
        context: record
            .context_tokens
            .unwrap_or(plan.agent.profile.fallback_context),
        client_limit_ms: client_limit_ms(plan.time_limit),
        proxy_url: egress.proxy_url(),
    };
    let agent = &plan.agent;
    let launch = launch(
        &agent.profile,
        &agent.found.program,
        agent.command.as_ref(),
        &values,
        &context.places.operator,
    );
    for (path, content) in &launch.files {
        let file = places.home.join(path);
        fs::create_dir_all(file.parent().unwrap_or(&places.home))
            .and_then(|()| fs::write(&file, content))
            .with_context(|| format!("session {}: cannot write {}", plan.id, file.display()))?;
    }
    let mut spec = Spec::new(
        plan.id.clone(),
        launch.program,
        places.work.clone(),
        context.sandbox.clone(),
        context.shim.clone(),
    );
    spec.args = launch.args;
    spec.env = launch.env;
    spec.writable = vec![places.work.clone(), places.home.clone()];
    spec.visible = context.places.visible();
    spec.visible.push(agent.found.root.clone());
    // A script that is named by its path is part of the agent.
    spec.visible.extend(
        spec.args
            .iter()
            .map(PathBuf::from)
            .filter(|a| a.is_absolute() && a.exists()),
    );
    spec.output = Output::Separate {
        stdout: Some(places.record.join("transcript.txt")),
        stderr: Some(places.record.join("stderr.txt")),
    };
    let prepared = Prepared::new(spec).await?;
    Ok(Ready {
        plan: plan.clone(),
        places,
        gateway,
        egress,
        bodies,
        prepared,
        cut,
    })
}

/// Makes the folders anew.
fn places(
    context: &Context,
    plan: &SessionPlan,
    round: u32,
    kind: ArmKind,
) -> anyhow::Result<Places> {
    let slot = context.scratch.path().join(format!("s{}", plan.index + 1));
    let folder = format!("r{round}-{}-{}", kind.slug(), plan.id);
    let record = context.results.join("sessions").join(&folder);
    let places = Places {
        work: slot.join("work"),
        home: slot.join("home"),
        record,
        folder,
    };
    let make = || -> std::io::Result<()> {
        if slot.exists() {
            remove_all(&slot)?;
        }
        fs::create_dir_all(&slot)?;
        for folder in HOME_FOLDERS {
            fs::create_dir_all(places.home.join(folder))?;
        }
        fs::create_dir_all(&places.record)
    };
    make().with_context(|| format!("session {}: cannot make its folders", plan.id))?;
    Ok(places)
}

async fn open_gateway(
    context: &Context,
    plan: &SessionPlan,
    (round, kind): (u32, ArmKind),
    gate: Option<Arc<Gate>>,
    token: &str,
    (bodies, informer): (SessionBodies, Informer),
) -> anyhow::Result<GatewaySession> {
    let config = ListenConfig {
        label: plan.id.clone(),
        token: Secret::new(token),
        upstream: context.server.upstream.clone(),
        // No limit of the gateway's own: the session's covers a server that falls silent, and two
        // clocks on one limit would leave it to chance which of them tells the story.
        limits: Limits {
            prompt_tokens: context.plan.max_prompt_tokens,
            ..Limits::default()
        },
        nonce: nonce(context, &plan.id, round, kind),
        gate,
        answer_probes: (context.plan.answer_probes).then(|| context.server.record.model.clone()),
        origin: context.bus.origin().clone(),
    };
    let (live, id) = (context.bus.live(), plan.id.clone());
    let observer = move |event: GatewayEvent| {
        informer.note(&event);
        let step = Step::of(&event);
        match event {
            GatewayEvent::Started {
                number,
                dialect,
                body,
                ..
            } => bodies.request(number, dialect, body),
            GatewayEvent::Answer {
                number,
                bytes,
                encoded,
            } => bodies.answer(number, &bytes, encoded),
            GatewayEvent::Finished(attempt) => bodies.answered(attempt.number),
            GatewayEvent::Held { .. }
            | GatewayEvent::FirstToken { .. }
            | GatewayEvent::Content { .. } => {}
        }
        if let Some(step) = step {
            let _ = live.send(Live::Session {
                id: id.clone(),
                step,
            });
        }
    };
    let opening = Session::open(config, observer);
    Ok(context.event_loop.run(opening).await?)
}

/// The proxy that keeps a session on this machine.
async fn open_guard(context: &Context, plan: &SessionPlan) -> anyhow::Result<EgressGuard> {
    let allowed = plan.agent.profile.egress_allow.iter();
    Ok(EgressGuard::open(GuardConfig {
        label: plan.id.clone(),
        allow: AllowList::of(allowed.chain(&context.plan.allow_egress)),
        origin: context.bus.origin().clone(),
    })
    .await?)
}

/// The line that keeps one session's prompts out of every other's cache.
fn nonce(context: &Context, id: &str, round: u32, kind: ArmKind) -> Option<String> {
    (context.plan.cache == CachePolicy::Cold)
        .then(|| format!("session {}", &token(&context.secret, id, round, kind)[..16]))
}

/// A name that nobody can guess and no two sessions share.
fn token(secret: &str, id: &str, round: u32, kind: ArmKind) -> String {
    let digest = Sha256::digest(format!("{secret} {id} {round} {}", kind.slug()));
    hex::encode(digest)
}

/// Clients are given longer than the session itself, so that none of their limits cuts a request
/// short that the session's limit allows. Some read it into 32 bits.
fn client_limit_ms(session: Duration) -> u64 {
    let limit = session.saturating_add(Duration::from_secs(60)).as_millis();
    u64::try_from(limit)
        .unwrap_or(u64::MAX)
        .min(u64::from(u32::MAX / 2))
}
