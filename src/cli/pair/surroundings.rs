//! What a pair needs around it: programs, results folder, server, agents, bases.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;

use super::PairArgs;
use super::typed::Typed;
use crate::agent::{self, FindError, Found, Profile, find, install};
use crate::cli::exit::{Exit, Failure, OrFail, usage};
use crate::cli::loading::follow_log;
use crate::cli::setting::Setting;
use crate::plan::Agent;
use crate::task::{Source, Task};
use flashrig_record::Dialect;
use flashrig_server::{Connected, Target, Wanted, connect};
use flashrig_sim::Script;
use flashrig_workspace::Base;

/// Every program that the tasks need is on PATH.
pub fn needed_programs(tasks: &[Arc<Task>], setting: &Setting) -> Result<(), Failure> {
    for task in tasks {
        for program in &task.needs {
            if setting.places.on_path(program).is_none() {
                return Err(Failure {
                    exit: Exit::Rig,
                    error: anyhow!(
                        "task {}: needs the program {program:?}, which is not on PATH; install it",
                        task.name
                    ),
                });
            }
        }
    }
    Ok(())
}

/// Reaches the server, starting it when it is the embedded one.
pub async fn reach(args: &PairArgs, wanted: &Typed, target: &Target) -> Result<Connected, Failure> {
    let scripts: BTreeMap<&str, Script> = wanted
        .tasks
        .iter()
        .filter_map(|t| {
            let walkthrough = t.walkthrough.clone()?;
            let script = Script {
                name: t.name.clone(),
                prompt: t.prompt.clone(),
                walkthrough,
            };
            Some((t.name.as_str(), script))
        })
        .collect();
    if let (Target::Simulated { .. }, Some(task)) = (
        target,
        wanted.tasks.iter().find(|t| t.walkthrough.is_none()),
    ) {
        return Err(usage(format!(
            "task {} has no walkthrough.toml for the simulated server to play; give it one, or \
             name a real server with --server",
            task.name
        )));
    }
    let asked = Wanted {
        model: args.server.model.clone(),
        context: args.server.context,
        key_env: args.server.key_env.clone(),
    };
    let connected = connect(target, &asked, scripts.into_values().collect(), None).await;
    let server = match connected {
        Err(error) if error.is_mistyped() => Err(error).or_usage()?,
        other => other.or_rig()?,
    };
    follow_log(args.server.server_log.as_deref(), target, &server.log_index)?;
    Ok(server)
}

/// Finds, installs where that is wanted, and identifies every agent.
pub async fn find_agents(
    args: &PairArgs,
    wanted: &Typed,
    setting: &Setting,
    note: &impl Fn(String),
) -> Result<BTreeMap<String, Arc<Agent>>, Failure> {
    let mut agents = BTreeMap::new();
    for (name, profile) in &wanted.profiles {
        let command = wanted.command.clone().filter(|_| profile.program.is_none());
        let found = match find(profile, command.as_ref(), &setting.places) {
            Ok(found) => found,
            Err(FindError::NotInstalled { .. }) if !args.no_install => {
                installed(profile, setting, note).await?
            }
            Err(error @ FindError::CommandNeeded(_)) => return Err(error).or_usage(),
            Err(error) => return Err(error).or_rig(),
        };
        let version = agent::version(profile, &found, &setting.places).await;
        agents.insert(
            name.clone(),
            Arc::new(Agent {
                profile: profile.clone(),
                found,
                version,
                command,
            }),
        );
    }
    Ok(agents)
}

async fn installed(
    profile: &Profile,
    setting: &Setting,
    note: &impl Fn(String),
) -> Result<Found, Failure> {
    let version = profile
        .npm
        .as_deref()
        .and_then(agent::pinned_version)
        .unwrap_or_default();
    note(format!(
        "{} is not on PATH; installing {version} with npm into {} (once, some hundred MB)",
        profile.title,
        setting.places.cache.display()
    ));
    let found = install(profile, &setting.places, &setting.shim)
        .await
        .or_rig()?;
    note(format!("{} {version} installed", profile.title));
    Ok(found)
}

/// One base for each distinct source, in the order of the tasks.
pub fn bases(tasks: &[Arc<Task>], scratch: &Path) -> Result<Vec<Base>, Failure> {
    let mut made: BTreeMap<String, Base> = BTreeMap::new();
    let mut bases = Vec::with_capacity(tasks.len());
    for task in tasks {
        let key = match &task.source {
            Source::Fixture(fixture) => format!("fixture {}", fixture.name),
            Source::Repository { path, revision } => format!("{} {revision}", path.display()),
        };
        if !made.contains_key(&key) {
            let folder = scratch.join(format!("base{}", made.len() + 1));
            made.insert(key.clone(), Base::make(&task.source, &folder).or_usage()?);
        }
        bases.push(made[&key].clone());
    }
    Ok(bases)
}

/// The protocols that agents are known to speak.
pub fn dialects(agents: &BTreeMap<String, Arc<Agent>>) -> BTreeSet<Dialect> {
    agents.values().filter_map(|a| a.profile.dialect).collect()
}

/// 32 random bytes from the system, hexadecimal.
pub fn secret() -> std::io::Result<String> {
    use std::io::Read as _;
    let mut bytes = [0u8; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}
