//! `flashrig pair`: from what was typed to a prepared run, its execution and its report.

mod activity;
mod args;
mod sessions;
mod typed;

use std::path::Path;

use anyhow::anyhow;
use tokio::sync::mpsc;

use crate::cli::console::Console;
use crate::cli::{progress, signals};
use crate::exit::{Exit, Failure, OrFail};
use crate::run::Stop;
use crate::run::pair::{Context, execute, prepare};
use crate::run::setting::Setting;
use flashrig_record::RunState;
use flashrig_report::judge::answer;
use sessions::Sessions;
use typed::request;

pub use args::PairArgs;

/// Runs the command.
pub async fn pair(args: PairArgs, console: Console) -> Result<Exit, Failure> {
    let setting = Setting::new()?;
    let request = request(&args, &setting.places.project)?;

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
        prepared = prepare(&request, &setting, live, stop.clone()) => prepared,
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
        .run_result(
            &done.run,
            |view| flashrig_report::pair_text(&done.run, view),
            &results,
        )
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
    request(args, project).map(drop)
}
