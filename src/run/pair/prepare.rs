//! From a validated request to a pair that can begin.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::mpsc;

use super::bodies::Bodies;
use super::context::Context;
use super::machine::{Program, ServerAt};
use super::request::Request;
use super::surroundings::{
    bases, dialects, find_agents, needed_programs, prompts_fit, scripts, secret,
};
use crate::exit::{Failure, OrFail};
use crate::plan::rounds::{Rounds, RoundsAsked};
use crate::plan::{Agent, Plan, Refused};
use crate::run::shared::bus::{Bus, Live};
use crate::run::shared::command_line::command_line;
use crate::run::shared::instrument::{host, rig, started_at, writable};
use crate::run::shared::reach::{can_reset, or_death, reach, target};
use crate::run::shared::scratch::Scratch;
use crate::run::shared::setting::{Setting, sandbox};
use crate::run::shared::stop::Stop;
use crate::run::shared::warm_up::warm_up;
use crate::store::Store;
use flashrig_clock::{Origin, Seconds};
use flashrig_gateway::EventLoop;
use flashrig_process::Sandbox;
use flashrig_record::{RUN_SCHEMA, Run, RunState, Spec};
use flashrig_server::Watcher;

/// Rounds of a run against itself, when none were asked for.
const AGAINST_ITSELF_ROUNDS: u32 = 4;

/// Prepares a run: the server is reached and warmed up, agents are found, bases made.
///
/// # Errors
/// What was asked for makes no sense, or something of it is not there.
pub async fn prepare(
    request: &Request,
    setting: &Setting,
    live: mpsc::UnboundedSender<Live>,
    stop: Stop,
) -> Result<(Context, Run), Failure> {
    let note = |text: String| {
        let _ = live.send(Live::Note(text));
    };
    let project = &setting.places.project;
    let wanted = &request.server;
    let target = target(
        wanted.server.as_deref(),
        wanted.speed,
        &wanted.sets,
        project,
    )?;
    can_reset(&target, wanted.reset)?;
    prompts_fit(&request.tasks)?;
    needed_programs(&request.tasks, setting)?;
    writable(&request.results)?;
    let sandbox = sandbox(request.sandbox).await?;
    if matches!(sandbox, Sandbox::ProcessGroup) {
        note(
            "warning: the agents run without a sandbox and with all permissions, so they can change \
             any file of yours; bubblewrap (--sandbox bubblewrap, Linux) prevents that"
                .to_owned(),
        );
    }
    let scripts = scripts(&request.tasks, &target)?;
    let mut server = reach(wanted, &target, scripts, &note).await?;
    let agents = find_agents(request, setting, &note).await?;
    let plan = plan(request, &agents, server.record.simulated).or_usage()?;
    let scratch = Scratch::new(&Scratch::candidates(&setting.places.cache)).or_rig()?;
    let bases = bases(&request.tasks, scratch.path())?;
    let dialects = dialects(&agents);
    let limit = request.first_token_limit;
    let warming = async { warm_up(&server, &dialects, limit, note).await.or_rig() };
    or_death(&server, warming).await?;
    server.prove().await.or_rig()?;

    let origin = Origin::now();
    let id = run_id(&origin, &plan);
    let store = Store::create(&request.results, &id).or_rig()?;
    let results = store.folder().to_owned();
    let watcher = Watcher::start(&server, &origin, &results).or_rig()?;
    let host = host();
    let cores = host.cores;
    let record = Run {
        schema: RUN_SCHEMA.to_owned(),
        id: store.id(),
        command: "pair".to_owned(),
        command_line: command_line(Some(&server.upstream)),
        started_at: started_at(&origin),
        state: RunState::Unfinished,
        stopped_because: None,
        rig: rig(sandbox.name()),
        host,
        server: server.record.clone(),
        spec: Spec {
            sessions: plan.session_specs(),
            rounds: plan.rounds.most,
            auto_rounds: plan.rounds.auto,
            cache: plan.cache,
            time_limit_s: request.time_limit.map(Seconds::from),
            thresholds: plan.thresholds,
            gate: plan.gate,
            foreign_load_accepted: plan.foreign_load_accepted,
            against_itself: plan.against_itself,
            max_prompt_tokens: plan.max_prompt_tokens,
            answer_probes: plan.answer_probes,
            stable_prefix: request.stable_prefix.clone(),
            first_token_limit_s: Some(request.first_token_limit.into()),
            reset: plan.reset,
        },
        rounds: Vec::new(),
        verdict: None,
    };
    let server_at = ServerAt::find(&server).await;
    let event_loop = EventLoop::start().or_rig()?;
    let context = Context {
        plan,
        server,
        dialects,
        watcher,
        bases,
        scratch,
        results,
        sandbox,
        shim: setting.shim.clone(),
        places: setting.places.clone(),
        secret: secret().or_rig()?,
        bus: Bus::new(origin, store, live),
        stop,
        bodies: Bodies::start(request.bodies),
        keep: request.keep,
        server_at,
        programs: agents
            .iter()
            .map(|(name, agent)| Program::now(name, &agent.found.program))
            .collect(),
        cores,
        lag: event_loop.lag(|_| ()).or_rig()?,
        event_loop,
        noted: AtomicBool::new(false),
    };
    Ok((context, record))
}

/// `20261129T172557Z-pair-fix-bug-add-flag`, cut where it gets long.
fn run_id(origin: &Origin, plan: &Plan) -> String {
    let mut tasks: Vec<&str> = plan.sessions.iter().map(|s| s.task.name.as_str()).collect();
    tasks.dedup();
    let slug: String = tasks.join("-").chars().take(60).collect();
    format!("{}-pair-{slug}", origin.wall.strftime("%Y%m%dT%H%M%SZ"))
}

/// The experiment that was asked for.
fn plan(
    request: &Request,
    agents: &BTreeMap<String, Arc<Agent>>,
    simulated: bool,
) -> Result<Plan, Refused> {
    let default = if request.against_itself {
        RoundsAsked::Fixed(AGAINST_ITSELF_ROUNDS)
    } else if simulated {
        RoundsAsked::Fixed(1)
    } else {
        RoundsAsked::Auto
    };
    let sessions = request
        .tasks
        .iter()
        .zip(&request.agents)
        .map(|(task, agent)| (task.clone(), agents[agent].clone()))
        .collect();
    let plan = Plan::new(
        sessions,
        Rounds::new(request.rounds, request.max_time, default)?,
        request.cache,
        request.thresholds,
        request.time_limit,
    );
    Ok(Plan {
        gate: request.gate,
        foreign_load_accepted: request.foreign_load_accepted,
        against_itself: request.against_itself,
        max_prompt_tokens: request.max_prompt_tokens,
        answer_probes: request.answer_probes,
        first_token_limit: request.first_token_limit,
        reset: request.server.reset,
        allow_egress: request.allow_egress.clone(),
        ..plan
    })
}
