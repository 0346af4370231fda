//! From what was asked for to a server that was reached.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use tokio::time::timeout;

use crate::exit::{Exit, Failure, OrFail, usage};
use crate::plan::server::ServerRequest;
use flashrig_server::{Change, Connected, LogIndex, Reset, Target, Wanted, connect, log_tail};
use flashrig_sim::Script;

/// Seeds stay below what every JSON reader can hold.
const MAX_SEED: u64 = 1 << 53;

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

/// Reaches the server, starting it when it is the embedded or a managed one. `scripts` are what the
/// embedded one plays.
///
/// # Errors
/// It is not there, or cannot be what was asked for.
pub async fn reach(
    request: &ServerRequest,
    target: &Target,
    scripts: Vec<Script>,
    note: &impl Fn(String),
) -> Result<Connected, Failure> {
    no_log_of_ours(request.server_log.as_deref(), target)?;
    note_start(target, note);
    let wanted = Wanted {
        model: request.model.clone(),
        context: request.context,
        door: request.door.clone(),
    };
    let mut server = match connect(target, &wanted, scripts, None).await {
        Err(error) if error.is_mistyped() => Err(error).or_usage()?,
        other => other.or_rig()?,
    };
    follow_log(request.server_log.as_deref(), target, &server.log_index)?;
    server.record.settings.clone_from(&request.sets);
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
