//! What `fit` and `ttft` have in common between what was typed and a prepared run: the server
//! reached, a client aimed at it, a record begun.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::args::ServerArgs;
use super::exit::{Exit, Failure, OrFail, usage};
use super::instrument::{host, rig, started_at};
use crate::run::{Live, command_line, unless_stalled, warm_up_sessions};
use flashrig_clock::Origin;
use flashrig_load::{Aim, Client, LoadLimits, WarmUp, calibrate, choose_dialect};
use flashrig_record::{Calibration, LoadRun, LoadSpec, LoadWhat, RUN_SCHEMA, RunState};
use flashrig_server::{Change, Connected, LogIndex, Reset, Target, Wanted, connect, log_tail};

/// Seeds stay below what every JSON reader can hold.
const MAX_SEED: u64 = 1 << 53;

/// Where the progress of such a run is told.
pub type Reported = mpsc::UnboundedSender<Live<LoadWhat>>;

/// A seed that no earlier run had.
pub fn new_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |d| (d.as_micros() % u128::from(MAX_SEED)) as u64)
}

/// The server that was asked for.
///
/// # Errors
/// It means nothing, or a changed value does not.
pub fn target(
    server: Option<&str>,
    speed: Option<f64>,
    sets: &[String],
    project: &Path,
) -> Result<Target, Failure> {
    let changes = sets.iter().map(|text| text.parse());
    let changes: Vec<Change> = changes.collect::<Result<_, _>>().or_usage()?;
    Target::parse_with(server, speed, &changes, Some(project)).or_usage()
}

/// Says that a server is started, which may take minutes.
pub fn note_start(target: &Target, note: &impl Fn(String)) {
    if let Target::Managed { name, .. } = target {
        note(format!(
            "starting {name} (its program and model are hashed first, once)"
        ));
    }
}

/// Whether a server that is to be reset can be.
///
/// # Errors
/// Its profile does not say how, or says to restart one that flashrig does not start.
pub fn can_reset(target: &Target, wanted: bool) -> Result<(), Failure> {
    if !wanted {
        return Ok(());
    }
    let (name, interface, is_managed) = match target {
        Target::Simulated { profile, .. } => {
            return Err(usage(format!(
                "--reset: {} is simulated within flashrig, and has no [reset]",
                profile.name
            )));
        }
        Target::Attached {
            name, interface, ..
        } => (name, interface, false),
        Target::Managed {
            name, interface, ..
        } => (name, interface, true),
    };
    match &interface.reset {
        Some(Reset::Restart) if !is_managed => Err(usage(format!(
            "--reset: {name} is reset by a restart, and flashrig does not start it here; name its \
             profile alone with --server, or leave --reset out"
        ))),
        Some(_) => Ok(()),
        None => Err(usage(format!(
            "--reset: nothing says how {name} is brought back to a known state; give its profile a \
             [reset] (harness/servers/NAME.toml), or leave the option out"
        ))),
    }
}

/// Reaches the server, starting it when it is the embedded or a managed one.
///
/// # Errors
/// It is not there, or cannot be what was asked for.
pub async fn reach(
    args: &ServerArgs,
    model: Option<String>,
    target: &Target,
    live: &Reported,
) -> Result<Connected, Failure> {
    no_log_of_ours(args.server_log.as_deref(), target)?;
    let note = |text: String| {
        let _ = live.send(Live::Note(text));
    };
    note_start(target, &note);
    if let Target::Simulated { profile, speed, .. } = target
        && *speed <= 1.0
        && args.speed.is_none()
    {
        note(format!(
            "{} is simulated at the speed of a real server; --speed 50 makes it 50 times as fast",
            profile.name
        ));
    }
    let wanted = Wanted {
        model,
        context: args.context,
        key_env: args.key_env.clone(),
    };
    let server = match connect(target, &wanted, Vec::new(), None).await {
        Err(error) if error.is_mistyped() => Err(error).or_usage()?,
        other => other.or_rig()?,
    };
    follow_log(args.server_log.as_deref(), target, &server.log_index)?;
    Ok(server)
}

/// For the news of a death to arrive.
const DEATH_LIMIT: Duration = Duration::from_secs(1);

/// What came of the work before anything was measured. Where the server died meanwhile, that is
/// what is told: a connection that broke off is only how it showed.
///
/// # Errors
/// Those of the work.
pub async fn or_death<T>(
    server: &Connected,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let failure = match work.await {
        Err(failure) if server.life.is_managed() => failure,
        done => return done,
    };
    let Ok(death) = timeout(DEATH_LIMIT, server.life.died()).await else {
        return Err(failure);
    };
    Err(Failure {
        exit: Exit::Rig,
        error: anyhow!(
            "the server {} died before anything was measured: it {}{}",
            server.record.name,
            death.exit,
            log_tail(&death.last_lines)
        ),
    })
}

/// `--server-log` is not for a server whose log flashrig has anyway.
///
/// # Errors
/// It was given for one.
pub fn no_log_of_ours(file: Option<&Path>, target: &Target) -> Result<(), Failure> {
    match (file, target) {
        (None, _) | (Some(_), Target::Attached { .. }) => Ok(()),
        (Some(_), Target::Simulated { .. } | Target::Managed { .. }) => Err(usage(
            "--server-log is for a server that runs already; flashrig has the log of one that it \
             starts itself",
        )),
    }
}

/// Follows the log of a server that somebody else started.
///
/// # Errors
/// It cannot be followed, or flashrig itself starts the server and has its log anyway.
pub fn follow_log(
    file: Option<&Path>,
    target: &Target,
    log_index: &LogIndex,
) -> Result<(), Failure> {
    no_log_of_ours(file, target)?;
    file.map_or(Ok(()), |file| log_index.follow(file).or_usage())
}

/// A client for the server, in a dialect in which it streams.
///
/// # Errors
/// It streams in none.
pub async fn aim(
    server: &Connected,
    limit: Duration,
    origin: Origin,
    live: &Reported,
) -> Result<Client, Failure> {
    let _ = live.send(Live::Note(format!(
        "finding out how {} counts tokens",
        server.record.name
    )));
    let choosing = choose_dialect(&server.upstream, &server.record.model, limit);
    let dialect = unless_stalled(server, None, limit, choosing)
        .await
        .or_rig()?;
    let aim = Aim {
        upstream: server.upstream.clone(),
        model: server.record.model.clone(),
        dialect,
        limits: LoadLimits {
            first_token: limit,
            silence: limit,
        },
        speed: speed(server),
    };
    Ok(Client::new(aim, origin))
}

/// Finds out how the server counts tokens.
///
/// # Errors
/// It does not stream, tells no usage, refuses, fails or stalls.
pub async fn calibrated(
    server: &Connected,
    client: &Client,
    seed: u64,
) -> Result<Calibration, Failure> {
    let limit = client.aim().limits_on_the_wall().first_token;
    let counting = calibrate(client, seed);
    unless_stalled(server, Some(client), limit, counting)
        .await
        .or_rig()
}

/// Sends an unscored prompt of the shape of those that are measured.
///
/// # Errors
/// The server refuses, fails or stalls.
pub async fn warmed_up(
    server: &Connected,
    client: &Client,
    calibration: &Calibration,
    shape: WarmUp,
    live: &Reported,
) -> Result<(), Failure> {
    let message = format!("warming up {}", server.record.name);
    let _ = live.send(Live::Note(message));
    warm_up_sessions(server, client, calibration, shape)
        .await
        .or_rig()
}

/// Seconds of the server's own time in a wall second.
pub fn speed(server: &Connected) -> f64 {
    server.record.speed.unwrap_or(1.0)
}

/// A record of which nothing is measured yet.
pub fn begun(
    command: &str,
    id: String,
    origin: &Origin,
    server: &Connected,
    spec: &LoadSpec,
    calibration: Calibration,
) -> LoadRun {
    LoadRun {
        schema: RUN_SCHEMA.to_owned(),
        id,
        command: command.to_owned(),
        command_line: command_line(Some(&server.upstream)),
        started_at: started_at(origin),
        state: RunState::Unfinished,
        stopped_because: None,
        rig: rig("none"),
        host: host(),
        server: server.record.clone(),
        spec: spec.clone(),
        calibration: Some(calibration),
        measured: Vec::new(),
        left_out: Vec::new(),
        resumed: 0,
        cells: Vec::new(),
        ttft: Vec::new(),
        verdict: None,
    }
}
