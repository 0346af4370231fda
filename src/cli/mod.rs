//! The command line: reads what was typed, calls the rooms, shows what they say.

mod agents;
mod args;
mod bodies;
mod console;
mod exit;
mod fit;
mod gateway;
mod installing;
mod instrument;
mod loading;
mod pair;
mod printing;
mod progress;
mod servers;
mod setting;
mod signals;
mod sim;
mod sweep;
mod tasks;
mod terminal;
mod ttft;

use std::process::ExitCode;

use anyhow::anyhow;
use clap::Parser;

use args::{Cli, Command};
use console::Console;
use exit::{Exit, Failure, OrFail};

/// Runs the program; the code is one of those in `docs/DESIGN.md`.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way too, with 0; a closed pipe is the reader's right.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let console = Console::new(&cli.common);
    let exit = match dispatch(cli.command, console) {
        Ok(exit) => exit,
        Err(failure) => {
            console.error(&failure.error);
            failure.exit
        }
    };
    let exit = match console.lost() {
        Some(lost) => {
            console.error(&anyhow!(
                "standard output could not be written: {lost}; free some space or redirect it \
                 elsewhere (flashrig report shows what a run stored)"
            ));
            if exit == Exit::Interrupted {
                exit
            } else {
                Exit::Rig
            }
        }
        None => exit,
    };
    ExitCode::from(exit as u8)
}

fn dispatch(command: Command, console: Console) -> Result<Exit, Failure> {
    match command {
        Command::Schema { of } => printing::schema(of, console),
        Command::Completions { shell } => Ok(printing::completions(shell, console)),
        Command::Man => printing::man(console),
        Command::Report(args) => printing::report(&args, console),
        Command::Bodies(args) => bodies::bodies(&args, console),
        Command::Pair(args) => within_runtime(pair::pair(*args, console)),
        Command::Fit(args) => within_runtime(fit::fit(*args, console)),
        Command::Ttft(args) => within_runtime(ttft::ttft(*args, console)),
        Command::Sweep(args) => within_runtime(sweep::sweep(*args, console)),
        Command::Gateway(args) => within_runtime(gateway::gateway(args, console)),
        Command::Sim(args) => within_runtime(sim::sim(args, console)),
        Command::Tasks { command } => within_runtime(tasks::tasks(command, console)),
        Command::Agents { command } => within_runtime(agents::agents(command, console)),
        Command::Servers { command } => within_runtime(servers::servers(command, console)),
    }
}

fn within_runtime(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .or_rig()?;
    let exit = runtime.block_on(work);
    // A blocking call that hangs must not keep the program.
    runtime.shutdown_background();
    exit
}
