//! `flashrig pair`: from what was typed to a prepared run, its execution and its report.

mod activity;
mod args;
mod sessions;
mod surroundings;
mod typed;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::anyhow;
use tokio::sync::mpsc;

use crate::cli::console::Console;
use crate::cli::exit::{Exit, Failure, OrFail};
use crate::cli::instrument::{host, rig, started_at, writable};
use crate::cli::loading::{can_reset, note_start, or_death, target};
use crate::cli::setting::{Setting, sandbox};
use crate::cli::{progress, signals};
use crate::plan::Plan;
use flashrig_clock::{Origin, Seconds};
use flashrig_gateway::EventLoop;
use flashrig_record::{RUN_SCHEMA, Run, RunState, Spec};
use flashrig_report::judge::answer;

use crate::run::{Bodies, Bus, Context, Live, Scratch, Stop, command_line, execute, warm_up};
use crate::store::Store;
use flashrig_server::{Target, Watcher};
use sessions::Sessions;
use surroundings::{bases, dialects, find_agents, needed_programs, reach, secret};
use typed::{Typed, plan};

pub use args::PairArgs;

/// Runs the command.
pub async fn pair(args: PairArgs, console: Console) -> Result<Exit, Failure> {
    let setting = Setting::new()?;
    let project = setting.places.project.clone();
    let wanted = Typed::read(&args, &project)?;
    let typed = &args.server;
    let target = target(typed.server.as_deref(), typed.speed, &typed.sets, &project)?;
    can_reset(&target, args.server.reset)?;
    needed_programs(&wanted.tasks, &setting)?;
    writable(&args.results)?;

    let (stopper, stop) = Stop::new();
    let (live, reported) = mpsc::unbounded_channel();
    let message = "stopping: ending the agents, keeping what was finished (again to stop at once)";
    let watching = tokio::spawn(signals::watch(console, message, stopper));
    let showing = tokio::spawn(progress::show(console, reported, Sessions::default()));
    let mut waiting = stop.clone();
    let prepared = tokio::select! {
        () = waiting.wait() => Err(Failure {
            exit: Exit::Interrupted,
            error: anyhow!("stopped before anything was measured"),
        }),
        prepared = prepare(&args, &wanted, &target, &setting, live, stop.clone()) => prepared,
    };
    let result = match prepared {
        Ok((context, record)) => {
            let done = execute(&context, record).await.or_rig();
            context.server.life.stop().await;
            let Context {
                results, bodies, ..
            } = context;
            if let Err(error) = bodies.close() {
                console.error(&error);
            }
            // Here the rest of the context goes: it ends what is told, and with it the live
            // lines, and removes the workspaces.
            done.map(|done| (done, results))
        }
        Err(failure) => Err(failure),
    };
    let _ = showing.await;
    watching.abort();
    let (done, results) = result?;
    console
        .run_result(&done.run, || flashrig_report::text(&done.run), &results)
        .or_rig()?;
    Ok(match (done.run.state, &done.run.verdict) {
        (RunState::Interrupted, _) => Exit::Interrupted,
        (RunState::Failed, _) | (_, None) => Exit::Rig,
        (_, Some(verdict)) => Exit::of(answer(verdict), args.strict),
    })
}

/// Whether what was typed makes sense, before anything is started.
///
/// # Errors
/// The first option or task that makes none.
pub fn check(args: &PairArgs, project: &Path) -> Result<(), Failure> {
    Typed::read(args, project).map(drop)
}

async fn prepare(
    args: &PairArgs,
    wanted: &Typed,
    target: &Target,
    setting: &Setting,
    live: mpsc::UnboundedSender<Live>,
    stop: Stop,
) -> Result<(Context, Run), Failure> {
    let note = |text: String| {
        let _ = live.send(Live::Note(text));
    };
    let sandbox = sandbox(args.sandbox).await?;
    note_start(target, &note);
    let mut server = reach(args, wanted, target).await?;
    server.record.settings.clone_from(&args.server.sets);
    let agents = find_agents(args, wanted, setting, &note).await?;
    let plan = plan(args, wanted, &agents, server.record.simulated);
    let scratch = Scratch::new(&Scratch::candidates(&setting.places.cache)).or_rig()?;
    let bases = bases(&wanted.tasks, scratch.path())?;
    let dialects = dialects(&agents);
    let limit = args.first_token_limit;
    let warming = async { warm_up(&server, &dialects, limit, note).await.or_rig() };
    or_death(&server, warming).await?;
    server.prove().await.or_rig()?;

    let origin = Origin::now();
    let id = run_id(&origin, &plan);
    let store = Store::create(&args.results, &id).or_rig()?;
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
            rounds: plan.rounds,
            cache: plan.cache,
            time_limit_s: args.time_limit.map(Seconds::from),
            thresholds: plan.thresholds,
            gate: plan.gate,
            max_prompt_tokens: plan.max_prompt_tokens,
            answer_probes: plan.answer_probes,
            stable_prefix: wanted.stable_prefix.clone(),
            first_token_limit_s: Some(args.first_token_limit.into()),
            reset: plan.reset,
        },
        rounds: Vec::new(),
        verdict: None,
    };
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
        bodies: Bodies::start(!args.no_bodies),
        keep: args.keep,
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
