//! What a pair needs around it: programs, agents, bases, what a simulated server plays.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;

use super::request::Request;
use crate::agent::{self, FindError, Found, Profile, find, install};
use crate::exit::{Exit, Failure, OrFail, usage};
use crate::plan::Agent;
use crate::run::shared::setting::Setting;
use crate::task::{Source, Task};
use flashrig_record::Dialect;
use flashrig_server::Target;
use flashrig_sim::Script;
use flashrig_workspace::Base;

/// Every program that the tasks need is on PATH.
pub(super) fn needed_programs(tasks: &[Arc<Task>], setting: &Setting) -> Result<(), Failure> {
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

/// Agents get their prompt as one argument or one variable, and Linux allows 128 KiB for each, with
/// its final zero byte (`MAX_ARG_STRLEN` in its `binfmts.h`).
const LONGEST_PROMPT: usize = (128 << 10) - 1;

/// Every prompt can be handed to an agent.
///
/// # Errors
/// One is too long.
pub(super) fn prompts_fit(tasks: &[Arc<Task>]) -> Result<(), Failure> {
    match tasks.iter().find(|task| task.prompt.len() > LONGEST_PROMPT) {
        None => Ok(()),
        Some(task) => Err(usage(format!(
            "task {}: its prompt has {} bytes, and a command line can hold {LONGEST_PROMPT} of them; \
             shorten prompt.md, or put the details into a file of the repository that it names",
            task.name,
            task.prompt.len()
        ))),
    }
}

/// What the simulated server plays: a script for each task.
///
/// # Errors
/// A task has none, and the server is simulated.
pub(super) fn scripts(tasks: &[Arc<Task>], target: &Target) -> Result<Vec<Script>, Failure> {
    let mut scripts = BTreeMap::new();
    for task in tasks {
        match (&task.walkthrough, target) {
            (Some(walkthrough), _) => {
                let script = Script {
                    name: task.name.clone(),
                    prompt: task.prompt.clone(),
                    walkthrough: walkthrough.clone(),
                };
                scripts.insert(task.name.as_str(), script);
            }
            (None, Target::Simulated { .. }) => {
                return Err(usage(format!(
                    "task {} has no walkthrough.toml for the simulated server to play; give it \
                     one, or name a real server with --server",
                    task.name
                )));
            }
            (None, _) => {}
        }
    }
    Ok(scripts.into_values().collect())
}

/// Finds, installs where that is wanted, and identifies every agent.
pub(super) async fn find_agents(
    request: &Request,
    setting: &Setting,
    note: &impl Fn(String),
) -> Result<BTreeMap<String, Arc<Agent>>, Failure> {
    let mut agents = BTreeMap::new();
    for (name, profile) in &request.profiles {
        let command = request
            .command
            .clone()
            .filter(|_| profile.program.is_none());
        let found = match find(profile, command.as_ref(), &setting.places) {
            Ok(found) => found,
            Err(FindError::NotInstalled { .. }) if request.install => {
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
pub(super) fn bases(tasks: &[Arc<Task>], scratch: &Path) -> Result<Vec<Base>, Failure> {
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
pub(super) fn dialects(agents: &BTreeMap<String, Arc<Agent>>) -> BTreeSet<Dialect> {
    agents.values().filter_map(|a| a.profile.dialect).collect()
}

/// 32 random bytes from the system, hexadecimal.
pub(super) fn secret() -> std::io::Result<String> {
    use std::io::Read as _;
    let mut bytes = [0u8; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex::encode(bytes))
}
