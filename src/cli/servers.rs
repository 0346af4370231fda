//! `flashrig servers list|install|probe`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde::Serialize;

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
        /// Which
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
    /// Ask a server who it is and try what it can do, with a few small requests
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
    /// Environment variable that holds the server's key
    #[arg(long, value_name = "NAME")]
    pub key_env: Option<String>,
    /// Change a value of the server's profile, such as parallel=4 (may be given more than once)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Longest wait for a token; beyond it the server accepts but does not generate
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    pub first_token_limit: Duration,
    /// The file that a server which runs already writes its log to; it is followed from its end
    #[arg(long, value_name = "FILE")]
    pub server_log: Option<PathBuf>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    title: String,
    kind: &'static str,
    url: Option<String>,
    /// Where the program of a managed one is; `null` when it is not found.
    program: Option<PathBuf>,
    dialects: Option<Vec<Dialect>>,
    /// What can be set of a managed one.
    variables: Vec<Settable>,
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
    let mut invalid = None;
    let places = Places::look(Some(&project)).or_rig()?;
    for name in library.names() {
        let profile = match library.load(&name).or_usage() {
            Ok(profile) => profile,
            Err(failure) => {
                // Those that can be read are listed all the same.
                invalid.get_or_insert(failure);
                continue;
            }
        };
        let mut row = Row {
            name,
            title: profile.title,
            kind: "simulated",
            url: None,
            program: None,
            dialects: profile.interface.dialects,
            variables: Vec::new(),
            missing: None,
        };
        match profile.kind {
            Kind::Simulated(_) => {}
            Kind::Attached { url, .. } => {
                row.kind = "attached";
                row.url = Some(url);
            }
            Kind::Managed(recipe) => {
                row.kind = "managed";
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
        return invalid.map_or(Ok(Exit::Yes), Err);
    }
    let wide = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    for row in rows {
        let program = row.program.map(|program| program.display().to_string());
        let at = row.url.or(program).map(|at| format!(", {at}"));
        let missing = row.missing.map(|message| format!("; {message}"));
        let more = at.or(missing).unwrap_or_default();
        let Row {
            name, title, kind, ..
        } = row;
        console.result(&format!("{name:<wide$}  {title} ({kind}{more})"));
    }
    invalid.map_or(Ok(Exit::Yes), Err)
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
        key_env: args.key_env.clone(),
    };
    let (stopper, mut stop) = Stop::new();
    let watching = tokio::spawn(signals::watch(console, "stopping the probe", stopper));
    let looking = async {
        loading::no_log_of_ours(args.server_log.as_deref(), &target)?;
        loading::note_start(&target, &|text| console.note(&text));
        let server = match open(&target, &wanted, Vec::new(), None).await {
            Err(error @ (ConnectError::Upstream(_) | ConnectError::Start(_)))
                if error.is_mistyped() =>
            {
                Err(error).or_usage()?
            }
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
        console.result(&flashrig_report::probe_text(&found));
    }
    Ok(match found.generates {
        Generates::Yes => Exit::Yes,
        Generates::No | Generates::AcceptsOnly => Exit::No,
        Generates::Unknown => Exit::Rig,
    })
}
