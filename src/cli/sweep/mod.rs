//! `flashrig sweep`: from what was typed to a prepared sweep, its execution and its report.

mod args;
mod course;
mod inner;
mod typed;

use flashrig_config::plural;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use tokio::sync::mpsc;

use super::console::Console;
use super::exit::{Exit, Failure, OrFail, usage};
use super::{progress, signals};
use crate::run::instrument::{host, rig, started_at, writable};
use flashrig_clock::{Origin, Seconds, Stamp};
use flashrig_record::{RunState, SWEEP_SCHEMA, Sweep, SweepSpec, SweepWhat};
use flashrig_report::judge::sweep::measured;

use crate::run::sweep::{Begin, SweepContext, execute};
use crate::run::{Bus, Live, Stop, command_line};
use crate::store::Store;

pub use args::SweepArgs;
use course::Course;

/// Where a sweep's progress is told.
type Reported = mpsc::UnboundedSender<Live<SweepWhat>>;

/// Runs the command.
pub async fn sweep(args: SweepArgs, console: Console) -> Result<Exit, Failure> {
    let (stopper, stop) = Stop::new();
    let (live, reported) = mpsc::unbounded_channel();
    let message = "stopping: letting the measured command end in order, keeping what was finished \
                   (again to stop at once)";
    let watching = tokio::spawn(signals::watch(console, message, stopper));
    let showing = tokio::spawn(progress::show(console, reported, Course::default()));
    let prepared = match stop.unless(prepare(&args, live, stop.clone())).await {
        Some(prepared) => prepared,
        None => Err(Failure {
            exit: Exit::Interrupted,
            error: anyhow!("stopped before anything was measured"),
        }),
    };
    let result = match prepared {
        Ok((context, begin)) => {
            let done = execute(&context, begin).await.or_rig();
            // Here the context goes, and with it what is told.
            done.map(|sweep| (sweep, context.folder.clone()))
        }
        Err(failure) => Err(failure),
    };
    let _ = showing.await;
    watching.abort();
    let (sweep, folder) = result?;
    console
        .run_result(
            &sweep,
            |view| flashrig_report::sweep_text(&sweep, view),
            &shown(&folder),
        )
        .or_rig()?;
    Ok(exit(&sweep))
}

/// 0 when one combination is the best, whether or not it can be told apart from others; 1 when all
/// failed or left something undone; 3 when nothing could be measured.
fn exit(sweep: &Sweep) -> Exit {
    match (sweep.state, &sweep.verdict) {
        (RunState::Interrupted, _) => Exit::Interrupted,
        (RunState::Failed | RunState::Unfinished, _) => Exit::Rig,
        (RunState::Finished, _) if measured(sweep) == 0 => Exit::Rig,
        (RunState::Finished, Some(verdict)) if verdict.best.is_some() => Exit::Yes,
        (RunState::Finished, _) => Exit::No,
    }
}

/// The folder as people would type it here.
fn shown(folder: &Path) -> PathBuf {
    let here = std::env::current_dir().ok();
    here.and_then(|here| folder.strip_prefix(here).ok())
        .map_or_else(|| folder.to_owned(), Path::to_owned)
}

async fn prepare(
    args: &SweepArgs,
    live: Reported,
    stop: Stop,
) -> Result<(SweepContext, Begin), Failure> {
    let project = std::env::current_dir().or_rig()?;
    let program = std::env::current_exe().or_rig()?;
    let note = |text: String| {
        let _ = live.send(Live::Note(text));
    };
    let (store, origin, begin) = match &args.resume {
        None => {
            let spec = typed::spec(args, &project, &program, &note).await?;
            writable(&args.results)?;
            note(extent(&spec));
            let origin = Origin::now();
            let time = origin.wall.strftime("%Y%m%dT%H%M%SZ");
            let id = format!("{time}-sweep-{}", spec.measures);
            let store = Store::<Sweep>::create(&args.results, &id).or_rig()?;
            let record = begun(store.id(), &origin, spec);
            (store, origin, Begin::New(Box::new(record)))
        }
        Some(folder) => again(args, folder, &project, &program, &live).await?,
    };
    let folder = std::path::absolute(store.folder()).or_rig()?;
    let begun = match &begin {
        Begin::New(sweep) => Some(sweep.as_ref()),
        Begin::Again { .. } => store.run(),
    };
    let spec = begun.map(|sweep| &sweep.spec).ok_or_else(|| Failure {
        exit: Exit::Rig,
        error: anyhow!("the sweep that was just begun is not in its folder"),
    })?;
    let context = SweepContext {
        log: typed::log_patterns(&spec.server, &project)?,
        command: typed::command(args, spec)?,
        program,
        env: std::env::vars_os().collect(),
        dir: project,
        folder,
        bus: Bus::new(origin, store, live),
        stop,
    };
    Ok((context, begin))
}

/// A sweep that was stopped or killed.
async fn again(
    args: &SweepArgs,
    folder: &Path,
    project: &Path,
    program: &Path,
    live: &Reported,
) -> Result<(Store<Sweep>, Origin, Begin), Failure> {
    let other = crate::store::read_run(folder).or_usage()?;
    if !matches!(other, crate::store::Stored::Sweep(_)) {
        return Err(usage(format!(
            "--resume: {} is not a sweep; only sweeps and runs of fit can be taken up again, each by \
             its own command",
            folder.display()
        )));
    }
    let (store, last) = Store::<Sweep>::reopen(folder).or_usage()?;
    let sweep = store.run().cloned().ok_or_else(|| Failure {
        exit: Exit::Usage,
        error: anyhow!("--resume: {} holds no sweep", folder.display()),
    })?;
    typed::agrees(args, &sweep, project, program).await?;
    // Instants go on from the last one: the time between is nobody's.
    let mut origin = Origin::now();
    let gone = u64::try_from(duration(last).as_nanos()).unwrap_or(u64::MAX);
    origin.stamp = Stamp(origin.stamp.0.saturating_sub(gone));
    let _ = live.send(Live::Fact(Box::new(SweepWhat::SweepStarted {
        run: Box::new(sweep),
    })));
    let begin = Begin::Again {
        command_line: command_line(None),
    };
    Ok((store, origin, begin))
}

fn duration(seconds: Seconds) -> std::time::Duration {
    std::time::Duration::try_from_secs_f64(seconds.0).unwrap_or(std::time::Duration::MAX)
}

/// How much there is to do.
fn extent(spec: &SweepSpec) -> String {
    let (combinations, rounds) = (spec.combinations.len() as u64, u64::from(spec.rounds));
    format!(
        "{} × {}: {} of {}, each with {} started anew",
        plural(combinations, "combination"),
        plural(rounds, "round"),
        plural(combinations * rounds, "run"),
        spec.measures,
        spec.server,
    )
}

/// A record of which nothing is measured yet.
fn begun(id: String, origin: &Origin, spec: SweepSpec) -> Sweep {
    Sweep {
        schema: SWEEP_SCHEMA.to_owned(),
        id,
        command: "sweep".to_owned(),
        command_line: command_line(None),
        started_at: started_at(origin),
        state: RunState::Unfinished,
        stopped_because: None,
        rig: rig("none"),
        host: host(),
        spec,
        units: Vec::new(),
        open: None,
        cut_short: Vec::new(),
        resumed: 0,
        rows: Vec::new(),
        verdict: None,
    }
}
