//! What `fit` and `ttft` have in common before anything is measured: a client aimed at the server, a
//! record begun.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::exit::{Failure, OrFail};
use crate::run::shared::bus::Live;
use crate::run::shared::command_line::command_line;
use crate::run::shared::instrument::{host, rig, started_at};
use crate::run::shared::stalled::{unless_stalled, warm_up_sessions};
use crate::run::shared::warm_up::aim_at;
use flashrig_clock::{Origin, Seconds};
use flashrig_load::{Client, WarmUp, calibrate, choose_dialect};
use flashrig_record::{Calibration, LOAD_SCHEMA, LoadRun, LoadSpec, LoadWhat, RunState};
use flashrig_server::{Connected, Target};

/// Where the progress of such a run is reported.
pub type Reported = mpsc::UnboundedSender<Live<LoadWhat>>;

/// Gives a remark.
pub fn note(live: &Reported, text: String) {
    let _ = live.send(Live::Note(text));
}

/// Says that a simulated server takes as long as a real one, where nobody chose that.
pub fn note_speed(target: &Target, chosen: Option<f64>, live: &Reported) {
    if let Target::Simulated { profile, speed, .. } = target
        && *speed <= 1.0
        && chosen.is_none()
    {
        note(
            live,
            format!(
                "{} is simulated at the speed of a real server; --speed 50 makes it 50 times as fast",
                profile.name
            ),
        );
    }
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
    let aim = aim_at(server, dialect, limit, speed(server));
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
        schema: LOAD_SCHEMA.to_owned(),
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

/// A duration that a record has in seconds.
pub fn duration(seconds: Seconds) -> Duration {
    Duration::try_from_secs_f64(seconds.0).unwrap_or(Duration::MAX)
}
