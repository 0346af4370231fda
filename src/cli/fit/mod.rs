//! `flashrig fit`: from what was typed to a prepared run, its execution and its report.

mod args;
mod course;
mod typed;

use std::path::Path;

use anyhow::anyhow;
use tokio::sync::mpsc;

use super::console::Console;
use super::{progress, signals};
use crate::exit::{Exit, Failure, OrFail};
use crate::run::Stop;
use crate::run::load::fit::{Request, execute, prepare};
use crate::store::write_atomically;
use flashrig_record::{LoadRun, RunState};
use flashrig_report::judge::fit::{answer, cells};
use typed::request;

pub use args::FitArgs;
use course::Course;

/// Runs the command.
pub async fn fit(args: FitArgs, console: Console) -> Result<Exit, Failure> {
    let strict = args.strict;
    let request = request(args);
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
        prepared = prepare(&request, live, stop.clone()) => prepared,
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
        RunState::Finished => Exit::of(answer(&run, &cells(&run)), strict),
    })
}

/// Whether what was typed makes sense, before anything is started.
///
/// # Errors
/// The first option that makes none.
pub fn check(args: &FitArgs) -> Result<(), Failure> {
    Request::check(&request(args.clone()))
}

fn show(run: &LoadRun, folder: &Path, console: Console) -> Result<(), Failure> {
    for (name, picture) in flashrig_report::pictures(run) {
        write_atomically(&folder.join(name), picture.as_bytes()).or_rig()?;
    }
    console
        .run_result(run, |view| flashrig_report::load_text(run, view), folder)
        .or_rig()
}
