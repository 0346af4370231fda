//! `flashrig fit`: from what was typed to a prepared run, its execution and its report.

mod args;
mod progress;
mod typed;

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use tokio::sync::mpsc;

use super::console::Console;
use super::exit::{Exit, Failure, OrFail};
use super::pair::surroundings::{host, writable};
use super::signals;
use crate::clock::{Origin, Stamp};
use crate::judge::fit::{answer, cells};
use crate::load::{Aim, Client, LoadLimits, Prepared, SessionPlan, calibrate, choose_dialect};
use crate::records::{Calibration, LoadRun, LoadSpec, LoadWhat, RUN_SCHEMA, Rig, RunState};
use crate::report;
use crate::run::fit::{Begin, FitContext, execute};
use crate::run::{Bus, Live, Stop};
use crate::server::{Change, ConnectError, Connected, Target, Wanted, connect};
use crate::store::{Store, write_atomically};

pub use args::FitArgs;

type Told = mpsc::UnboundedSender<Live<LoadWhat>>;

/// Runs the command.
pub async fn fit(args: FitArgs, console: Console) -> Result<Exit, Failure> {
    let (stopper, stop) = Stop::new();
    let (live, told) = mpsc::unbounded_channel();
    let remarks = live.downgrade();
    let tell = move |_: &str| {
        if let Some(live) = remarks.upgrade() {
            let words = "stopping: keeping what was measured (again to stop at once)";
            let _ = live.send(Live::Note(words.to_owned()));
        }
    };
    let watching = tokio::spawn(signals::watch(tell, stopper));
    let showing = tokio::spawn(progress::show(console, told));
    let mut waiting = stop.clone();
    let prepared = tokio::select! {
        () = waiting.wait() => Err(Failure {
            exit: Exit::Interrupted,
            error: anyhow!("stopped before anything was measured"),
        }),
        prepared = prepare(&args, live, stop.clone()) => prepared,
    };
    let result = match prepared {
        Ok((context, begin, folder)) => {
            let done = execute(&context, begin).await.or_rig();
            // Here the context goes, and with it what is told.
            done.map(|run| (run, folder))
        }
        Err(failure) => Err(failure),
    };
    let _ = showing.await;
    watching.abort();
    let (run, folder) = result?;
    show(&run, &folder, console)?;
    Ok(match run.state {
        RunState::Interrupted => Exit::Interrupted,
        RunState::Failed | RunState::Unfinished => Exit::Rig,
        RunState::Finished => Exit::of(answer(&run, &cells(&run)), args.strict),
    })
}

fn show(run: &LoadRun, folder: &Path, console: Console) -> Result<(), Failure> {
    for (name, picture) in report::pictures(run) {
        write_atomically(&folder.join(name), picture.as_bytes()).or_rig()?;
    }
    if console.json() {
        console.json_result(run).or_rig()?;
    } else {
        console.result(&format!(
            "\n{}Results: {}",
            report::load_text(run),
            folder.display()
        ));
    }
    Ok(())
}

async fn prepare(
    args: &FitArgs,
    live: Told,
    stop: Stop,
) -> Result<(FitContext, Begin, PathBuf), Failure> {
    match &args.resume {
        None => new(args, live, stop).await,
        Some(folder) => again(args, folder, live, stop).await,
    }
}

/// A new run.
async fn new(
    args: &FitArgs,
    live: Told,
    stop: Stop,
) -> Result<(FitContext, Begin, PathBuf), Failure> {
    let spec = typed::spec(args)?;
    let project = std::env::current_dir().or_rig()?;
    let target = target(
        args.server.server.as_deref(),
        args.server.speed,
        &args.sets,
        &project,
    )?;
    writable(&args.results)?;
    let mut server = reach(args, args.server.model.clone(), &target).await?;
    server.record.settings.clone_from(&args.sets);
    typed::within(&spec, &server.record)?;
    let origin = Origin::now();
    let aimed = aim(&server, &spec, origin.clone(), &live).await?;
    let calibration = calibrate(&aimed, spec.seed).await.or_rig()?;
    aimed.take_rows();
    has_room(&aimed, &calibration, &spec)?;

    let id = format!("{}-fit", origin.wall.strftime("%Y%m%dT%H%M%SZ"));
    let store = Store::<LoadRun>::create(&args.results, &id).or_rig()?;
    let folder = store.folder().to_owned();
    let record = LoadRun {
        schema: RUN_SCHEMA.to_owned(),
        id: store.id(),
        command: "fit".to_owned(),
        command_line: std::env::args().collect(),
        started_at: origin.wall.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        state: RunState::Unfinished,
        stopped_because: None,
        rig: Rig {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sandbox: "none".to_owned(),
            cpu_s: None,
        },
        host: host(cores()),
        server: server.record.clone(),
        spec: spec.clone(),
        calibration: Some(calibration),
        measured: Vec::new(),
        left_out: Vec::new(),
        resumed: 0,
        cells: Vec::new(),
        ttft: Vec::new(),
        verdict: None,
    };
    let context = FitContext {
        speed: speed(&server),
        embedded: matches!(target, Target::Simulated { .. }),
        server,
        client: aimed,
        calibration,
        spec,
        bus: Bus::new(origin, store, live),
        stop,
    };
    Ok((context, Begin::New(Box::new(record)), folder))
}

/// A run that was stopped or killed.
async fn again(
    args: &FitArgs,
    folder: &Path,
    live: Told,
    stop: Stop,
) -> Result<(FitContext, Begin, PathBuf), Failure> {
    let (store, last) = Store::<LoadRun>::reopen(folder).or_usage()?;
    let Some(run) = store.run().cloned() else {
        return Err(Failure {
            exit: Exit::Usage,
            error: anyhow!("--resume: {} holds no run", folder.display()),
        });
    };
    typed::is_open(&run)?;
    typed::agrees(args, &run)?;
    let spec = run.spec.clone();
    let project = std::env::current_dir().or_rig()?;
    // The address of an embedded server is a new one each time; its profile's name is not.
    let name = args.server.server.as_deref().unwrap_or(&run.server.name);
    let was = &run.server;
    let target = match target(Some(name), None, &was.settings, &project)? {
        Target::Simulated { .. } => target(Some(name), was.speed, &was.settings, &project)?,
        attached @ Target::Attached { .. } => attached,
    };
    let server = reach(args, Some(run.server.model.clone()), &target).await?;
    typed::same_server(&server.record, &run)?;
    // Instants go on from the last one: the time between is nobody's.
    let mut origin = Origin::now();
    let gone = typed::duration(last);
    origin.stamp = Stamp(
        origin
            .stamp
            .0
            .saturating_sub(u64::try_from(gone.as_nanos()).unwrap_or(u64::MAX)),
    );
    let aimed = aim(&server, &spec, origin.clone(), &live).await?;
    let calibration = match run.calibration {
        Some(calibration) => calibration,
        None => calibrate(&aimed, spec.seed).await.or_rig()?,
    };
    aimed.take_rows();
    let _ = live.send(Live::Fact(Box::new(LoadWhat::RunStarted {
        run: Box::new(run.clone()),
    })));
    let context = FitContext {
        speed: speed(&server),
        embedded: matches!(target, Target::Simulated { .. }),
        server,
        client: aimed,
        calibration,
        spec,
        bus: Bus::new(origin, store, live),
        stop,
    };
    let begin = Begin::Again {
        command_line: std::env::args().collect(),
    };
    Ok((context, begin, folder.to_owned()))
}

/// Every context leaves room for the turns.
fn has_room(client: &Client, calibration: &Calibration, spec: &LoadSpec) -> Result<(), Failure> {
    let Some(&context_tokens) = spec.contexts.iter().min() else {
        return Ok(());
    };
    let plan = SessionPlan {
        id: String::new(),
        context_tokens,
        checks: spec.checks,
        answer_tokens: spec.answer_tokens,
        seed: spec.seed,
        salt: 0,
        shared_prefix: false,
    };
    Prepared::new(client, calibration, plan)
        .map(drop)
        .or_usage()
}

/// The server that was asked for.
fn target(
    server: Option<&str>,
    speed: Option<f64>,
    sets: &[String],
    project: &Path,
) -> Result<Target, Failure> {
    let changes = sets.iter().map(|text| text.parse());
    let changes: Vec<Change> = changes.collect::<Result<_, _>>().or_usage()?;
    Target::parse_with(server, speed, &changes, Some(project)).or_usage()
}

async fn reach(
    args: &FitArgs,
    model: Option<String>,
    target: &Target,
) -> Result<Connected, Failure> {
    let wanted = Wanted {
        model,
        context: args.server.context,
        key_env: args.server.key_env.clone(),
    };
    match connect(target, &wanted, Vec::new(), None).await {
        // An address that cannot be one was mistyped; nothing was tried yet.
        Err(error @ ConnectError::Upstream(_)) => Err(error).or_usage(),
        other => other.or_rig(),
    }
}

/// A client for the server, in a dialect in which it streams.
async fn aim(
    server: &Connected,
    spec: &LoadSpec,
    origin: Origin,
    live: &Told,
) -> Result<Client, Failure> {
    let _ = live.send(Live::Note(format!(
        "finding out how {} counts tokens",
        server.record.name
    )));
    let limit = typed::duration(spec.first_token_limit_s);
    let dialect = choose_dialect(&server.upstream, &server.record.model, limit)
        .await
        .or_rig()?;
    let aim = Aim {
        upstream: server.upstream.clone(),
        model: server.record.model.clone(),
        dialect,
        limits: LoadLimits {
            first_token: limit,
            silence: limit,
        },
        speed: speed(server),
    };
    Ok(Client::new(aim, origin))
}

fn speed(server: &Connected) -> f64 {
    server.record.speed.unwrap_or(1.0)
}

fn cores() -> Option<u32> {
    std::thread::available_parallelism()
        .ok()
        .and_then(|n| u32::try_from(n.get()).ok())
}
