//! What was typed for a sweep, validated before anything is started; and whether it agrees with
//! the sweep that is taken up again.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use anyhow::{Context as _, anyhow};
use sha2::{Digest as _, Sha256};

use super::args::SweepArgs;
use super::inner::{self, Inner};
use crate::cli::exit::{Exit, Failure, OrFail, usage};
use crate::cli::loading::{new_seed, target};
use crate::plan::sweep::{combinations, parse_setting};
use crate::run::sweep::command_line;
use crate::run::{lack_secrets, masked_arguments};
use flashrig_config::{Profiles, nearest};
use flashrig_record::{NamedFile, RunState, Sweep, SweepSetting, SweepSpec};
use flashrig_server::{FlagCheck, LogPattern, Target, check_flags, files_of};

/// How often each combination is measured unless it is said.
const ROUNDS: u32 = 3;

/// The sweep that was asked for, valid in every combination; `note` is told what takes a while.
///
/// # Errors
/// The first thing that makes no sense.
pub async fn spec(
    args: &SweepArgs,
    project: &Path,
    program: &Path,
    note: &impl Fn(String),
) -> Result<SweepSpec, Failure> {
    let Inner { name, added } = inner::read(&args.command)?;
    if args.sets.is_empty() {
        return Err(usage(
            "there is nothing to sweep over; give a setting of the server and its values, e.g. \
             --set max_concurrent=1,4",
        ));
    }
    let server = args.server.clone().unwrap_or_else(|| "sim".to_owned());
    // The address before what would be set of it.
    let target = startable(&server, project)?;
    let settings = settings(&args.sets, &target)?;
    let mut spec = SweepSpec {
        profile_sha256: profile_hash(&server, project)?,
        rig_sha256: file_hash(program).or_rig()?,
        server,
        server_files: Vec::new(),
        measures: name,
        command: masked_arguments(&args.command),
        added,
        combinations: combinations(&settings, args.one_at_a_time).or_usage()?,
        settings,
        one_at_a_time: args.one_at_a_time,
        rounds: args.rounds.unwrap_or(ROUNDS),
        seed: args.seed.unwrap_or_else(new_seed),
    };
    let targets = targets(&spec, &args.command, project)?;
    flags_are_known(&targets, note).await?;
    spec.server_files = files(&targets).await?;
    Ok(spec)
}

/// The settings and their values: those typed, or for a name alone those that the profile offers.
fn settings(sets: &[String], target: &Target) -> Result<Vec<SweepSetting>, Failure> {
    let read = |text: &String| {
        if text.contains('=') {
            return parse_setting(text).or_usage();
        }
        let Target::Managed { recipe, .. } = target else {
            return parse_setting(text).or_usage();
        };
        let known = recipe.variables.iter().find(|v| v.name == text.trim());
        match known {
            Some(variable) if !variable.values.is_empty() => {
                let values = variable.values.iter().map(ToString::to_string).collect();
                Ok(SweepSetting {
                    name: variable.name.clone(),
                    values,
                })
            }
            Some(_) => Err(usage(format!(
                "the profile {} offers no values of {text:?} for sweeps; write them: --set \
                 {text}=1,2",
                recipe.profile
            ))),
            None => {
                let names = recipe.variables.iter().map(|v| v.name.as_str());
                let hint = nearest(text, names)
                    .map_or_else(String::new, |near| format!(" (did you mean {near:?}?)"));
                Err(usage(format!(
                    "the profile {} has no variable {text:?}{hint}",
                    recipe.profile
                )))
            }
        }
    };
    sets.iter().map(read).collect()
}

/// The server of every combination, each of which can be started as far as can be told without
/// starting it.
///
/// # Errors
/// The first that cannot.
fn targets(spec: &SweepSpec, command: &[String], project: &Path) -> Result<Vec<Target>, Failure> {
    let count = u32::try_from(spec.combinations.len()).unwrap_or(u32::MAX);
    let target = |number| {
        let typed = inner::check(
            &command_line(spec, command, number, Path::new("results")),
            project,
        )?;
        target(typed.server.as_deref(), typed.speed, &typed.sets, project)
    };
    (1..=count).map(target).collect()
}

/// The build knows the flags of every combination.
async fn flags_are_known(targets: &[Target], note: &impl Fn(String)) -> Result<(), Failure> {
    let mut unchecked = None;
    for target in targets {
        match check_flags(target).await {
            Ok(FlagCheck::NotChecked { because }) => unchecked = Some(because),
            Ok(FlagCheck::AllKnown) => {}
            Err(error) => return Err(error).or_usage(),
        }
    }
    if let (Some(because), Some(Target::Managed { .. })) = (unchecked, targets.first()) {
        note(format!("the server's flags are not checked: {because}"));
    }
    Ok(())
}

/// The programs and files of all combinations, each once.
async fn files(targets: &[Target]) -> Result<Vec<NamedFile>, Failure> {
    let mut files: Vec<NamedFile> = Vec::new();
    for target in targets {
        for file in files_of(target).await.or_usage()? {
            if !files.iter().any(|known| known.path == file.path) {
                files.push(file);
            }
        }
    }
    Ok(files)
}

/// The measured command of a sweep that is taken up again, with its secrets.
///
/// # Errors
/// The record leaves secrets out, and the command was not typed again.
pub fn command(args: &SweepArgs, spec: &SweepSpec) -> Result<Vec<String>, Failure> {
    if !args.command.is_empty() {
        return Ok(args.command.clone());
    }
    if lack_secrets(&spec.command) {
        return Err(usage(
            "--resume: the measured command holds secrets, which are not stored; give the same \
             command again after `--`",
        ));
    }
    Ok(spec.command.clone())
}

/// What the server's log says, as patterns.
///
/// # Errors
/// There is no such profile.
pub fn log_patterns(server: &str, project: &Path) -> Result<Vec<LogPattern>, Failure> {
    Ok(match target(Some(server), None, &[], project)? {
        Target::Simulated { interface, .. }
        | Target::Managed { interface, .. }
        | Target::Attached { interface, .. } => interface.log,
    })
}

/// The server is one that flashrig can start anew for each unit.
fn startable(server: &str, project: &Path) -> Result<Target, Failure> {
    match target(Some(server), None, &[], project)? {
        Target::Attached { name, .. } => Err(usage(format!(
            "a sweep starts the server anew for each measurement, and {name} is one that somebody \
             else started; give a profile that says how to start it (flashrig servers list)"
        ))),
        target => Ok(target),
    }
}

fn profile_hash(server: &str, project: &Path) -> Result<String, Failure> {
    let profiles = Profiles::new(
        "server",
        "servers",
        Some(project),
        &flashrig_harness::HARNESS,
    );
    let document = profiles.document(server).or_usage()?;
    Ok(hex::encode(Sha256::digest(document.text().as_bytes())))
}

fn file_hash(path: &Path) -> anyhow::Result<String> {
    let mut hash = Sha256::new();
    let mut piece = vec![0; 1 << 16];
    let mut read = || -> io::Result<()> {
        let mut file = File::open(path)?;
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(()),
                n => hash.update(&piece[..n]),
            }
        }
    };
    read().with_context(|| format!("cannot read flashrig's own program {}", path.display()))?;
    Ok(hex::encode(hash.finalize()))
}

/// Whether a sweep can be gone on with, and what was typed agrees with it.
///
/// # Errors
/// It is finished, or the first thing that differs.
pub async fn agrees(
    args: &SweepArgs,
    sweep: &Sweep,
    project: &Path,
    program: &Path,
) -> Result<(), Failure> {
    let (spec, id) = (&sweep.spec, &sweep.id);
    if sweep.state == RunState::Finished {
        return Err(usage(format!(
            "--resume: {id} is finished; flashrig report shows it"
        )));
    }
    let target = startable(&spec.server, project)?;
    let settings = settings(&args.sets, &target)?;
    // Typed, and another than the sweep's.
    let differs = [
        (
            "--server",
            args.server.as_ref().is_some_and(|s| *s != spec.server),
        ),
        ("--set", !settings.is_empty() && settings != spec.settings),
        ("--one-at-a-time", args.one_at_a_time && !spec.one_at_a_time),
        ("--rounds", args.rounds.is_some_and(|n| n != spec.rounds)),
        ("--seed", args.seed.is_some_and(|seed| seed != spec.seed)),
        (
            "the command",
            !args.command.is_empty() && masked_arguments(&args.command) != spec.command,
        ),
    ];
    if let Some((what, _)) = differs.iter().find(|(_, differs)| *differs) {
        return Err(usage(format!(
            "{what} is not what the sweep {id} was started with; leave it out to go on as before, or \
             start a new sweep without --resume"
        )));
    }
    let mut changed = vec![
        (
            format!("the profile of the server {}", spec.server),
            profile_hash(&spec.server, project)? != spec.profile_sha256,
        ),
        (
            "flashrig's own program".to_owned(),
            file_hash(program).or_rig()? != spec.rig_sha256,
        ),
    ];
    if changed.iter().all(|(_, changed)| !changed) {
        let command = command(args, spec)?;
        let found = files(&targets(spec, &command, project)?).await?;
        let differs = |was: &NamedFile| {
            let now = found.iter().find(|file| file.path == was.path);
            now.is_none_or(|file| file.sha256 != was.sha256)
        };
        let files = spec.server_files.iter();
        changed.extend(files.map(|file| (file.path.clone(), differs(file))));
    }
    match changed.iter().find(|(_, changed)| *changed) {
        None => Ok(()),
        Some((what, _)) => Err(Failure {
            exit: Exit::Usage,
            error: anyhow!(
                "{what} is not what it was when the sweep {id} was started, and its figures would \
                 not belong together; start a new sweep without --resume"
            ),
        }),
    }
}
