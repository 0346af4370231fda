//! `flashrig agents list|install`.

use clap::Subcommand;
use serde::Serialize;

use super::console::Console;
use super::exit::{Exit, Failure, OrFail};
use super::setting::Setting;
use crate::agent::{self, Library, find, install, pinned_version};

/// `flashrig agents`.
#[derive(Clone, Debug, Subcommand)]
pub enum AgentsCommand {
    /// List the agents, where each is found, and its version
    List,
    /// Install pinned versions into flashrig's cache folder
    Install {
        /// Agents to install
        #[arg(required = true)]
        names: Vec<String>,
    },
}

#[derive(Default, Serialize)]
struct Row {
    name: String,
    /// File of the project that the profile is read from; `null` for a built-in one.
    file: Option<String>,
    title: String,
    program: Option<String>,
    version: Option<String>,
    pinned: Option<String>,
    note: Option<String>,
    /// Why the profile cannot be used; `null` when it can.
    error: Option<String>,
}

/// Runs the command.
pub async fn agents(command: AgentsCommand, console: Console) -> Result<Exit, Failure> {
    let setting = Setting::new()?;
    let library = Library::new(Some(&setting.places.project));
    match command {
        AgentsCommand::List => list(&library, &setting, console).await,
        AgentsCommand::Install { names } => {
            let profiles: Vec<_> = names
                .iter()
                .map(|n| library.load(n))
                .collect::<Result<_, _>>()
                .or_usage()?;
            for profile in &profiles {
                console.note(&format!("installing {} …", profile.title));
                let found = install(profile, &setting.places, &setting.shim)
                    .await
                    .or_rig()?;
                let version = agent::version(profile, &found, &setting.places).await;
                console.result(&format!(
                    "{} {} in {}",
                    profile.name,
                    version.as_deref().unwrap_or("(version unknown)"),
                    found.program.display()
                ));
            }
            Ok(Exit::Yes)
        }
    }
}

async fn list(library: &Library, setting: &Setting, console: Console) -> Result<Exit, Failure> {
    let mut rows = Vec::new();
    for name in library.names() {
        let file = library.project_file(&name);
        let profile = match library.load(&name) {
            Ok(profile) => profile,
            Err(error) => {
                // The others are listed all the same.
                rows.push(Row {
                    name,
                    file,
                    error: Some(error.to_string()),
                    ..Row::default()
                });
                continue;
            }
        };
        let found = find(&profile, None, &setting.places);
        let version = match &found {
            Ok(found) => agent::version(&profile, found, &setting.places).await,
            Err(_) => None,
        };
        rows.push(Row {
            name,
            file,
            error: None,
            title: profile.title.clone(),
            program: found.as_ref().ok().map(|f| f.program.display().to_string()),
            version,
            pinned: profile.npm.as_deref().and_then(pinned_version),
            note: found.err().map(|e| e.to_string()),
        });
    }
    if console.json() {
        console.json_result(&rows).or_rig()?;
        return Ok(Exit::Yes);
    }
    for row in rows {
        if let Some(error) = row.error {
            console.result(&format!("{:<10} cannot be used: {error}", row.name));
            continue;
        }
        let file = row.file.map(|file| format!(", from {file}"));
        let file = file.unwrap_or_default();
        let pinned = row
            .pinned
            .map_or_else(String::new, |p| format!(", pinned {p}"));
        let state = match (row.program, row.note) {
            (Some(program), _) => {
                format!(
                    "{} at {program}",
                    row.version.as_deref().unwrap_or("version unknown")
                )
            }
            (None, Some(note)) => note,
            (None, None) => String::new(),
        };
        console.result(&format!(
            "{:<10} {}{pinned}{file}\n           {state}",
            row.name, row.title
        ));
    }
    Ok(Exit::Yes)
}
