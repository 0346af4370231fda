//! What was typed for a pair, read and validated before anything is started.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::args::{Cache, ForeignLoad, PairArgs};
use crate::agent::{self, CommandLine, Profile};
use crate::cli::args::GateOrderArg;
use crate::exit::{Failure, OrFail, usage};
use crate::plan::rounds::{Rounds, RoundsAsked};
use crate::run::pair::Request;
use crate::task::{self, Task};
use flashrig_record::{CachePolicy, GateSpec, Thresholds};

/// Reads tasks, profiles, thresholds and the command line.
///
/// # Errors
/// The first thing that is not right: exit code 2.
pub fn request(args: &PairArgs, project: &Path) -> Result<Request, Failure> {
    let library = task::Library::new(Some(project));
    let agents_library = agent::Library::new(Some(project));
    let mut known: BTreeMap<String, Arc<Task>> = BTreeMap::new();
    let (mut tasks, mut agents, mut profiles) = (Vec::new(), Vec::new(), BTreeMap::new());
    for typed in &args.tasks {
        let (name, agent) = match typed.split_once('@') {
            Some((name, agent)) => (name, agent),
            None => (typed.as_str(), args.agent.as_str()),
        };
        if !known.contains_key(name) {
            known.insert(name.to_owned(), Arc::new(library.load(name).or_usage()?));
        }
        if !profiles.contains_key(agent) {
            profiles.insert(agent.to_owned(), agents_library.load(agent).or_usage()?);
        }
        tasks.push(known[name].clone());
        agents.push(agent.to_owned());
    }
    let (pass, fail) = (args.pass_below, args.fail_above);
    if !(pass.is_finite() && fail.is_finite() && pass >= 1.0 && fail >= pass) {
        return Err(usage(format!(
            "--pass-below {pass} and --fail-above {fail} are no thresholds; they are slowdowns, \
             at least 1, the first not above the second"
        )));
    }
    if args.time_limit.is_some_and(|limit| limit.is_zero()) {
        return Err(usage(
            "--time-limit 0s leaves no time for anything; give a longer one, e.g. 20m",
        ));
    }
    Rounds::new(args.rounds, args.max_time, RoundsAsked::Auto).or_usage()?;
    if args.against_itself && args.rounds == Some(RoundsAsked::Auto) {
        return Err(usage(
            "--against-itself has no verdict for --rounds auto to wait for; give a number of rounds",
        ));
    }
    if args.first_token_limit.is_zero() {
        return Err(usage(
            "--first-token-limit 0s leaves no time for a first token; give a longer one, e.g. 10m",
        ));
    }
    if args.server.reset && args.cache == Cache::Warm {
        return Err(usage(
            "--reset empties the server's cache before each arm, which --cache warm fills; leave \
             one of them out",
        ));
    }
    let command = args
        .agent_command
        .as_deref()
        .map(|c| CommandLine::parse(c).map_err(|e| usage(format!("--agent-command: {e}"))))
        .transpose()?;
    if command.is_some() && !profiles.values().any(|p| p.program.is_none()) {
        return Err(usage(
            "--agent-command is for the agent `command`; add --agent command, or name it in \
             a task: --task NAME@command",
        ));
    }
    Ok(Request {
        tasks,
        agents,
        command,
        install: !args.no_install,
        server: args.server.request(),
        rounds: args.rounds,
        max_time: args.max_time,
        cache: match args.cache {
            Cache::Cold => CachePolicy::Cold,
            Cache::Warm => CachePolicy::Warm,
            Cache::Keep => CachePolicy::Keep,
        },
        thresholds: Thresholds { pass, fail },
        foreign_load_accepted: args.foreign_load == ForeignLoad::Accept,
        against_itself: args.against_itself,
        gate: gate(args)?,
        max_prompt_tokens: args.max_prompt,
        answer_probes: args.answer_probes,
        stable_prefix: stable_prefix(args, &mut profiles)?,
        profiles,
        time_limit: args.time_limit,
        first_token_limit: args.first_token_limit,
        sandbox: args.sandbox.into(),
        allow_egress: args.allow_egress.clone(),
        keep: args.keep,
        bodies: !args.no_bodies,
        results: args.results.clone(),
    })
}

/// What `--stable-prefix` sets, which is then in the profiles.
fn stable_prefix(
    args: &PairArgs,
    profiles: &mut BTreeMap<String, Profile>,
) -> Result<Option<BTreeMap<String, Vec<String>>>, Failure> {
    if !args.stable_prefix {
        return Ok(None);
    }
    let set: BTreeMap<String, Vec<String>> = profiles
        .iter_mut()
        .map(|(name, profile)| (name.clone(), profile.keep_prefix_stable()))
        .collect();
    if set.values().all(Vec::is_empty) {
        let names: Vec<&str> = set.keys().map(String::as_str).collect();
        return Err(usage(format!(
            "--stable-prefix has nothing to set: no profile of {} has stable_prefix.env; add it to \
             harness/agents/NAME.toml, or leave the option out",
            names.join(", ")
        )));
    }
    Ok(Some(set))
}

/// `--gated` alone lets in one request at a time; `--gate N` says how many, and needs no `--gated`.
fn gate(args: &PairArgs) -> Result<Option<GateSpec>, Failure> {
    let order = args.gate_order.map(GateOrderArg::order).unwrap_or_default();
    match (args.gate.or(args.gated.then_some(1)), args.gate_order) {
        (Some(limit), _) => Ok(Some(GateSpec { limit, order })),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(usage(
            "--gate-order orders a gate that is not there; add --gated, or --gate N",
        )),
    }
}
