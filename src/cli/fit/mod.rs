//! `flashrig fit`: from what was typed to a prepared run, its execution and its report.

mod args;
mod course;
mod typed;

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use tokio::sync::mpsc;

use super::console::Console;
use super::exit::{Exit, Failure, OrFail, usage};
use super::instrument::writable;
use super::loading::{
    Reported, aim, begun, calibrated, can_reset, or_death, reach, speed, target, warmed_up,
};
use super::{progress, signals};
use flashrig_clock::{Origin, Stamp};
use flashrig_load::{Client, Prepared, SessionPlan};
use flashrig_record::{Calibration, LoadRun, LoadSpec, LoadWhat, RunState};
use flashrig_report::judge::fit::{answer, cells};

use crate::run::fit::{Begin, FitContext, execute, shape};
use crate::run::{Bus, Live, Stop, command_line};
use crate::store::{Store, Stored, read_run, write_atomically};
use flashrig_server::{Target, Watcher};

pub use args::FitArgs;
use course::Course;

/// Runs the command.
pub async fn fit(args: FitArgs, console: Console) -> Result<Exit, Failure> {
    let (stopper, stop) = Stop::new();
    let (live, reported) = mpsc::unbounded_channel();
    let message = "stopping: keeping what was measured (again to stop at once)";
    let watching = tokio::spawn(signals::watch(console, message, stopper));
    let showing = tokio::spawn(progress::show(console, reported, Course::default()));
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
            context.server.life.stop().await;
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

/// Whether what was typed makes sense, before anything is started.
///
/// # Errors
/// The first option that makes none.
pub fn check(args: &FitArgs) -> Result<(), Failure> {
    typed::spec(args).map(drop)
}

fn show(run: &LoadRun, folder: &Path, console: Console) -> Result<(), Failure> {
    for (name, picture) in flashrig_report::pictures(run) {
        write_atomically(&folder.join(name), picture.as_bytes()).or_rig()?;
    }
    console
        .run_result(run, || flashrig_report::load_text(run), folder)
        .or_rig()
}

async fn prepare(
    args: &FitArgs,
    live: Reported,
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
    live: Reported,
    stop: Stop,
) -> Result<(FitContext, Begin, PathBuf), Failure> {
    let spec = typed::spec(args)?;
    let project = std::env::current_dir().or_rig()?;
    let target = target(
        args.server.server.as_deref(),
        args.server.speed,
        &args.server.sets,
        &project,
    )?;
    can_reset(&target, spec.reset)?;
    writable(&args.results)?;
    let mut server = reach(&args.server, args.server.model.clone(), &target, &live).await?;
    server.record.settings.clone_from(&args.server.sets);
    typed::within(&spec, &server.record)?;
    let origin = Origin::now();
    let limit = typed::duration(spec.first_token_limit_s);
    let readying = async {
        let aimed = aim(&server, limit, origin.clone(), &live).await?;
        let calibration = calibrated(&server, &aimed, spec.seed).await?;
        has_room(&aimed, &calibration, &spec)?;
        warmed_up(&server, &aimed, &calibration, shape(&spec, 0), &live).await?;
        Ok((aimed, calibration))
    };
    let (aimed, calibration) = or_death(&server, readying).await?;
    server.prove().await.or_rig()?;

    let id = format!("{}-fit", origin.wall.strftime("%Y%m%dT%H%M%SZ"));
    let store = Store::<LoadRun>::create(&args.results, &id).or_rig()?;
    let folder = store.folder().to_owned();
    let watcher = Watcher::start(&server, &origin, &folder).or_rig()?;
    let record = begun("fit", store.id(), &origin, &server, &spec, calibration);
    let context = FitContext {
        speed: speed(&server),
        embedded: matches!(target, Target::Simulated { .. }),
        server,
        watcher,
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
    live: Reported,
    stop: Stop,
) -> Result<(FitContext, Begin, PathBuf), Failure> {
    let other = match read_run(folder) {
        Ok(Stored::Pair(run)) => Some((run.id, run.command)),
        Ok(Stored::Sweep(run)) => Some((run.id, run.command)),
        Ok(Stored::Load(_)) | Err(_) => None,
    };
    if let Some((id, command)) = other {
        return Err(usage(format!(
            "--resume: {id} is a run of {command}, not of fit"
        )));
    }
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
    let name = typed::base_name(&run.server);
    let was = &run.server;
    let target = match target(Some(name), None, &was.settings, &project)? {
        Target::Simulated { .. } => target(Some(name), was.speed, &was.settings, &project)?,
        real @ (Target::Attached { .. } | Target::Managed { .. }) => real,
    };
    can_reset(&target, spec.reset)?;
    let server = reach(&args.server, Some(run.server.model.clone()), &target, &live).await?;
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
    let limit = typed::duration(spec.first_token_limit_s);
    let aimed = aim(&server, limit, origin.clone(), &live).await?;
    let calibration = match run.calibration {
        Some(calibration) => calibration,
        None => calibrated(&server, &aimed, spec.seed).await?,
    };
    // No prompt of an earlier beginning is sent again.
    let number = 1_000_000 + u64::from(run.resumed);
    let warm = shape(&spec, number);
    warmed_up(&server, &aimed, &calibration, warm, &live).await?;
    let _ = live.send(Live::Fact(Box::new(LoadWhat::RunStarted {
        run: Box::new(run.clone()),
    })));
    let watcher = Watcher::start(&server, &origin, folder).or_rig()?;
    let context = FitContext {
        speed: speed(&server),
        embedded: matches!(target, Target::Simulated { .. }),
        server,
        watcher,
        client: aimed,
        calibration,
        spec,
        bus: Bus::new(origin, store, live),
        stop,
    };
    let begin = Begin::Again {
        command_line: command_line(Some(&context.server.upstream)),
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
