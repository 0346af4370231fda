//! `flashrig pair`: from what was typed to a prepared run, its execution and its report.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use tokio::sync::mpsc;

use super::args::{Cache, PairArgs};
use super::console::Console;
use super::exit::{Exit, Failure, OrFail, usage};
use super::setting::{Setting, sandbox};
use super::{progress, signals};
use crate::agent::{self, CommandLine, FindError, Found, Profile, find, install};
use crate::clock::{Origin, Seconds};
use crate::judge::answer;
use crate::plan::{Agent, Plan};
use crate::records::{CachePolicy, Host, RUN_SCHEMA, Rig, Run, RunState, Spec, Thresholds};
use crate::report;
use crate::run::{Bodies, Bus, Context, Live, Scratch, Stop, execute};
use crate::server::{ConnectError, Connected, Target, Wanted, connect, warm_up};
use crate::sim::Script;
use crate::store::Store;
use crate::task::{self, Source, Task};
use crate::workspace::Base;

/// Runs the command.
pub async fn pair(args: PairArgs, console: Console) -> Result<Exit, Failure> {
    let setting = Setting::new()?;
    let project = setting.places.project.clone();
    let wanted = Typed::read(&args, &project)?;
    let target = Target::parse(
        args.server.server.as_deref(),
        args.server.speed,
        Some(&project),
    )
    .or_usage()?;
    needed_programs(&wanted.tasks, &setting)?;
    writable(&args.results)?;

    let (stopper, stop) = Stop::new();
    let watching = tokio::spawn(signals::watch(console, stopper));
    let (live, told) = mpsc::unbounded_channel();
    let showing = tokio::spawn(progress::show(console, told));
    let mut waiting = stop.clone();
    let prepared = tokio::select! {
        () = waiting.wait() => Err(Failure {
            exit: Exit::Interrupted,
            error: anyhow!("stopped before anything was measured"),
        }),
        prepared = prepare(&args, &wanted, &target, &setting, live, stop.clone()) => prepared,
    };
    let result = match prepared {
        Ok((mut context, record)) => {
            let done = execute(&context, record).await.or_rig();
            let results = context.results.clone();
            if let Some(Err(error)) = context.bodies.take().map(Bodies::close) {
                console.error(&error);
            }
            // Ends what is told, and with it the live lines; removes the workspaces.
            drop(context);
            done.map(|done| (done, results))
        }
        Err(failure) => Err(failure),
    };
    let _ = showing.await;
    watching.abort();
    let (done, results) = result?;
    show(&done.run, &results, console)?;
    Ok(match (done.run.state, &done.run.verdict) {
        (RunState::Interrupted, _) => Exit::Interrupted,
        (RunState::Failed, _) | (_, None) => Exit::Rig,
        (_, Some(verdict)) => Exit::of(answer(verdict), args.strict),
    })
}

fn show(run: &Run, results: &Path, console: Console) -> Result<(), Failure> {
    if console.json() {
        console.json_result(run).or_rig()?;
    } else {
        console.result(&format!(
            "\n{}Results: {}",
            report::text(run),
            results.display()
        ));
    }
    Ok(())
}

/// What was typed, read and validated: tasks and the profiles of their agents.
struct Typed {
    tasks: Vec<Arc<Task>>,
    /// Profile names, one for each task.
    agents: Vec<String>,
    profiles: BTreeMap<String, Profile>,
    command: Option<CommandLine>,
    thresholds: Thresholds,
}

impl Typed {
    fn read(args: &PairArgs, project: &Path) -> Result<Self, Failure> {
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
        let command = args
            .agent_command
            .as_deref()
            .map(|c| CommandLine::parse(c).map_err(|e| usage(format!("--agent-command {e}"))))
            .transpose()?;
        if command.is_some() && !profiles.values().any(|p| p.program.is_none()) {
            return Err(usage(
                "--agent-command is for the agent `command`; add --agent command, or name it in \
                 a task: --task NAME@command",
            ));
        }
        Ok(Self {
            tasks,
            agents,
            profiles,
            command,
            thresholds: Thresholds { pass, fail },
        })
    }
}

fn needed_programs(tasks: &[Arc<Task>], setting: &Setting) -> Result<(), Failure> {
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

/// Found out before minutes are spent: the results folder can be written.
fn writable(results: &Path) -> Result<(), Failure> {
    let existing = results
        .ancestors()
        .find(|p| p.exists())
        .unwrap_or(Path::new("."));
    let existing = if existing.as_os_str().is_empty() {
        Path::new(".")
    } else {
        existing
    };
    tempfile::NamedTempFile::new_in(existing)
        .map(drop)
        .map_err(|e| Failure {
            exit: Exit::Rig,
            error: anyhow!(
                "the results folder {} cannot be written: {e}; choose another with --results",
                results.display()
            ),
        })
}

async fn prepare(
    args: &PairArgs,
    wanted: &Typed,
    target: &Target,
    setting: &Setting,
    live: mpsc::UnboundedSender<Live>,
    stop: Stop,
) -> Result<(Context, Run), Failure> {
    let note = |text: String| {
        let _ = live.send(Live::Note(text));
    };
    let sandbox = sandbox(args.sandbox).await?;
    let server = reach(args, wanted, target).await?;
    let agents = find_agents(args, wanted, setting, &note).await?;
    let plan = plan(args, wanted, &agents, server.record.simulated);
    let scratch = Scratch::new(&Scratch::candidates(&setting.places.cache)).or_rig()?;
    let bases = bases(&wanted.tasks, scratch.path())?;
    warm_up_all(&server, &agents, &note).await?;

    let origin = Origin::now();
    let id = run_id(&origin, &plan);
    let store = Store::create(&args.results, &id).or_rig()?;
    let results = store.folder().to_owned();
    let cores = std::thread::available_parallelism()
        .ok()
        .and_then(|n| u32::try_from(n.get()).ok());
    let record = Run {
        schema: RUN_SCHEMA.to_owned(),
        id: store.id(),
        command: "pair".to_owned(),
        command_line: std::env::args().collect(),
        started_at: origin.wall.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        state: RunState::Unfinished,
        stopped_because: None,
        rig: Rig {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sandbox: sandbox.name().to_owned(),
            cpu_s: None,
        },
        host: host(cores),
        server: server.record.clone(),
        spec: Spec {
            sessions: plan.session_specs(),
            rounds: plan.rounds,
            cache: plan.cache,
            time_limit_s: args.time_limit.map(Seconds::from),
            thresholds: plan.thresholds,
        },
        rounds: Vec::new(),
        verdict: None,
    };
    let context = Context {
        plan,
        server,
        bases,
        scratch,
        results,
        sandbox,
        shim: setting.shim.clone(),
        places: setting.places.clone(),
        secret: secret().or_rig()?,
        bus: Bus::new(origin, store, live),
        stop,
        bodies: (!args.no_bodies).then(Bodies::new),
        keep: args.keep,
        cores,
    };
    Ok((context, record))
}

async fn reach(args: &PairArgs, wanted: &Typed, target: &Target) -> Result<Connected, Failure> {
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
    match connected {
        // An address that cannot be one was mistyped; nothing was tried yet.
        Err(error @ ConnectError::Upstream(_)) => Err(error).or_usage(),
        other => other.or_rig(),
    }
}

async fn find_agents(
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

fn plan(
    args: &PairArgs,
    wanted: &Typed,
    agents: &BTreeMap<String, Arc<Agent>>,
    simulated: bool,
) -> Plan {
    let sessions = wanted
        .tasks
        .iter()
        .zip(&wanted.agents)
        .map(|(task, agent)| (task.clone(), agents[agent].clone()))
        .collect();
    Plan::new(
        sessions,
        args.rounds.unwrap_or(if simulated { 1 } else { 3 }),
        match args.cache {
            Cache::Cold => CachePolicy::Cold,
            Cache::Warm => CachePolicy::Warm,
            Cache::Keep => CachePolicy::Keep,
        },
        wanted.thresholds,
        args.time_limit,
    )
}

/// One base for each distinct source, in the order of the tasks.
fn bases(tasks: &[Arc<Task>], scratch: &Path) -> Result<Vec<Base>, Failure> {
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

async fn warm_up_all(
    server: &Connected,
    agents: &BTreeMap<String, Arc<Agent>>,
    note: &impl Fn(String),
) -> Result<(), Failure> {
    let dialects: BTreeSet<_> = agents.values().filter_map(|a| a.profile.dialect).collect();
    for dialect in dialects {
        note(format!("warming up {}", server.record.name));
        warm_up(server, dialect).await.or_rig()?;
    }
    Ok(())
}

/// `20261129T172557Z-pair-fix-bug-add-flag`, cut where it gets long.
fn run_id(origin: &Origin, plan: &Plan) -> String {
    let tasks: BTreeSet<&str> = plan.sessions.iter().map(|s| s.task.name.as_str()).collect();
    let slug: String = tasks
        .into_iter()
        .collect::<Vec<_>>()
        .join("-")
        .chars()
        .take(60)
        .collect();
    format!("{}-pair-{slug}", origin.wall.strftime("%Y%m%dT%H%M%SZ"))
}

fn host(cores: Option<u32>) -> Host {
    let os = nix::sys::utsname::uname().map_or_else(
        |_| std::env::consts::OS.to_owned(),
        |u| {
            format!(
                "{} {}",
                u.sysname().to_string_lossy(),
                u.release().to_string_lossy()
            )
        },
    );
    Host {
        os,
        arch: std::env::consts::ARCH.to_owned(),
        cores,
    }
}

/// 32 random bytes from the system, hexadecimal.
fn secret() -> std::io::Result<String> {
    use std::io::Read as _;
    let mut bytes = [0u8; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}
