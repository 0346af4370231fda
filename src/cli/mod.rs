//! The command line: reads what was typed, calls the rooms, shows what they say.

mod agents;
mod args;
mod bodies;
mod console;
mod fit;
mod gateway;
mod installing;
mod pair;
mod printing;
mod progress;
mod root;
mod servers;
mod signals;
mod sim;
mod sweep;
mod tasks;
mod terminal;
mod ttft;

use std::process::ExitCode;

use anyhow::anyhow;
use clap::Parser;

use crate::exit;
use crate::run::{reach as loading, setting};
use console::Console;
use exit::Exit;
use root::{Cli, dispatch};

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
            exit::hand_over(&failure.error);
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
