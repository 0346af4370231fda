//! The command that is measured, read as flashrig itself will read it when a unit starts.

use std::path::Path;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, Parser, Subcommand};

use crate::cli::args::{Common, ServerArgs};
use crate::cli::exit::{Failure, usage};
use crate::cli::fit::{self, FitArgs};
use crate::cli::pair::{self, PairArgs};
use crate::cli::ttft::{self, TtftArgs};
use flashrig_config::unknown;

/// What can be measured, as flashrig itself reads it.
#[derive(Debug, Parser)]
#[command(name = "flashrig", version)]
struct Line {
    #[command(flatten)]
    _common: Common,
    #[command(subcommand)]
    command: Measurable,
}

#[derive(Debug, Subcommand)]
enum Measurable {
    Pair(Box<PairArgs>),
    Fit(Box<FitArgs>),
    Ttft(Box<TtftArgs>),
}

/// The commands that can be measured.
const MEASURABLE: [&str; 3] = ["pair", "fit", "ttft"];

/// Options that the sweep gives, by their identifiers and as typed.
const OWN: [(&str, &str); 6] = [
    ("server", "--server"),
    ("sets", "--set"),
    ("server_log", "--server-log"),
    ("results", "--results"),
    ("resume", "--resume"),
    ("json", "--json"),
];

/// The command that is measured.
#[derive(Clone, Debug)]
pub struct Inner {
    /// Its name.
    pub name: String,
    /// What the sweep adds to it.
    pub added: Vec<String>,
}

/// Reads the command as typed.
///
/// # Errors
/// It is none that can be measured, cannot be read, or has options that the sweep gives.
pub fn read(message: &[String]) -> Result<Inner, Failure> {
    let Some(name) = message.first() else {
        return Err(usage(
            "there is no command to measure; give pair, fit or ttft with its options after `--`, \
             e.g. flashrig sweep --set max_concurrent=1,4 -- ttft --agents 4",
        ));
    };
    if !MEASURABLE.contains(&name.as_str()) {
        return Err(usage(unknown("command after `--`", name, MEASURABLE)));
    }
    let line = std::iter::once("flashrig").chain(message.iter().map(String::as_str));
    let matches = Line::command().try_get_matches_from(line).map_err(wrong)?;
    let typed = matches.subcommand_matches(name).ok_or_else(|| {
        usage(format!(
            "after `--` there is more than one command; give {name} alone"
        ))
    })?;
    if let Some((_, option)) = OWN.iter().find(|(id, _)| is_typed(typed, id)) {
        return Err(usage(format!(
            "{option} after `--` is given by the sweep itself for each measurement; {}",
            match *option {
                "--server" | "--set" | "--results" => format!("move {option} before `--`"),
                "--json" => "move --json before `--` for the sweep's own record".to_owned(),
                "--resume" => "flashrig sweep --resume goes on with a whole sweep".to_owned(),
                _ => format!("leave {option} out"),
            }
        )));
    }
    let added = if is_typed(typed, "rounds") {
        Vec::new()
    } else {
        ["--rounds", "1"].map(str::to_owned).to_vec()
    };
    Ok(Inner {
        name: name.clone(),
        added,
    })
}

fn is_typed(matches: &ArgMatches, id: &str) -> bool {
    matches.try_contains_id(id).is_ok()
        && matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// Reads a unit's whole command line, and has the command look at its options.
///
/// # Errors
/// It makes no sense.
pub fn check(line: &[String], project: &Path) -> Result<ServerArgs, Failure> {
    let message = std::iter::once("flashrig").chain(line.iter().map(String::as_str));
    match Line::try_parse_from(message).map_err(wrong)?.command {
        Measurable::Pair(args) => pair::check(&args, project).map(|()| args.server),
        Measurable::Fit(args) => fit::check(&args).map(|()| args.server),
        Measurable::Ttft(args) => ttft::check(&args).map(|()| args.server),
    }
}

fn wrong(error: clap::Error) -> Failure {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => usage(
            "help is not measured; flashrig pair --help, flashrig fit --help and flashrig ttft \
             --help tell the options",
        ),
        _ => {
            let message = error.to_string();
            let message = message.trim_start_matches("error: ").trim_end();
            usage(format!("the command after `--`: {message}"))
        }
    }
}
