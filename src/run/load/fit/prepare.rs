//! From a validated request to a run of `fit` that can begin, or go on.

use std::path::{Path, PathBuf};

use anyhow::anyhow;

use super::{Begin, FitContext, shape};
use crate::exit::{Exit, Failure, OrFail, usage};
use crate::plan::fit::{Asked, SIMULATED_ROUNDS, spec, within};
use crate::plan::resume::{agrees, base_name, is_open, same_server};
use crate::plan::rounds::RoundsAsked;
use crate::plan::server::ServerRequest;
use crate::run::load::prepare::{
    Reported, aim, begun, calibrated, duration, note, note_speed, speed, warmed_up,
};
use crate::run::shared::bus::{Bus, Live};
use crate::run::shared::command_line::command_line;
use crate::run::shared::instrument::writable;
use crate::run::shared::reach::{can_reset, new_seed, or_death, reach, target};
use crate::run::shared::stop::Stop;
use crate::store::{Store, Stored, read_run};
use flashrig_clock::{Origin, Stamp};
use flashrig_load::{Client, Prepared, SessionPlan};
use flashrig_record::{Calibration, LoadRun, LoadSpec, LoadWhat};
use flashrig_server::{Target, Watcher};

/// What was asked of `fit`. Plain data.
#[derive(Clone, Debug)]
pub struct Request {
    /// The experiment.
    pub asked: Asked,
    /// The server.
    pub server: ServerRequest,
    /// The run to go on with.
    pub resume: Option<PathBuf>,
    /// Folder for results.
    pub results: PathBuf,
}

impl Request {
    /// Whether it makes sense, before anything is started.
    ///
    /// # Errors
    /// The first option that makes none.
    pub fn check(&self) -> Result<(), Failure> {
        spec(&self.asked, new_seed(), SIMULATED_ROUNDS)
            .map(drop)
            .or_usage()
    }
}

/// Prepares a run: the server is reached, its counting of tokens known, the record begun or taken up
/// again. The path is that of the results folder.
///
/// # Errors
/// What was asked for makes no sense, or the server or the folder cannot be used.
pub async fn prepare(
    request: &Request,
    live: Reported,
    stop: Stop,
) -> Result<(FitContext, Begin, PathBuf), Failure> {
    match &request.resume {
        None => new(request, live, stop).await,
        Some(folder) => again(request, folder, live, stop).await,
    }
}

/// A new run.
async fn new(
    request: &Request,
    live: Reported,
    stop: Stop,
) -> Result<(FitContext, Begin, PathBuf), Failure> {
    request.check()?;
    let project = std::env::current_dir().or_rig()?;
    let wanted = &request.server;
    let target = target(
        wanted.server.as_deref(),
        wanted.speed,
        &wanted.sets,
        &project,
    )?;
    can_reset(&target, request.asked.reset)?;
    writable(&request.results)?;
    note_speed(&target, wanted.speed, &live);
    let mut server = reach(wanted, &target, Vec::new(), &|text| note(&live, text)).await?;
    let rounds = if server.record.simulated {
        SIMULATED_ROUNDS
    } else {
        RoundsAsked::Auto
    };
    let spec = spec(&request.asked, new_seed(), rounds).or_usage()?;
    within(&spec, &server.record).or_usage()?;
    let origin = Origin::now();
    let limit = duration(spec.first_token_limit_s);
    let readying = async {
        let aimed = aim(&server, limit, origin.clone(), &live).await?;
        let calibration = calibrated(&server, &aimed, spec.seed).await?;
        has_room(&aimed, &calibration, &spec)?;
        warmed_up(&server, &aimed, &calibration, shape(&spec, 0), &live).await?;
        Ok((aimed, calibration))
    };
    let (aimed, calibration) = or_death(&server, readying).await?;
    server.prove().await.or_rig()?;

    let id = format!("{}-fit", origin.wall.strftime("%Y%m%dT%H%M%SZ"));
    let store = Store::<LoadRun>::create(&request.results, &id).or_rig()?;
    let folder = store.folder().to_owned();
    let watcher = Watcher::start(&server, &origin, &folder).or_rig()?;
    let record = begun("fit", store.id(), &origin, &server, &spec, calibration);
    let context = FitContext {
        speed: speed(&server),
        embedded: matches!(target, Target::Simulated { .. }),
        server,
        watcher,
        client: aimed,
        calibration,
        spec,
        bus: Bus::new(origin, store, live),
        stop,
    };
    Ok((context, Begin::New(Box::new(record)), folder))
}

/// A run that was stopped or killed.
async fn again(
    request: &Request,
    folder: &Path,
    live: Reported,
    stop: Stop,
) -> Result<(FitContext, Begin, PathBuf), Failure> {
    let other = match read_run(folder) {
        Ok(Stored::Pair(run)) => Some((run.id, run.command)),
        Ok(Stored::Sweep(run)) => Some((run.id, run.command)),
        Ok(Stored::Load(_)) | Err(_) => None,
    };
    if let Some((id, command)) = other {
        return Err(usage(format!(
            "--resume: {id} is a run of {command}, not of fit"
        )));
    }
    let (store, last) = Store::<LoadRun>::reopen(folder).or_usage()?;
    let Some(run) = store.run().cloned() else {
        return Err(Failure {
            exit: Exit::Usage,
            error: anyhow!("--resume: {} holds no run", folder.display()),
        });
    };
    is_open(&run).or_usage()?;
    agrees(&request.asked, &request.server, &run).or_usage()?;
    let spec = run.spec.clone();
    let project = std::env::current_dir().or_rig()?;
    // The address of an embedded server is a new one each time; its profile's name is not.
    let name = base_name(&run.server);
    let was = &run.server;
    let target = match target(Some(name), None, &was.settings, &project)? {
        Target::Simulated { .. } => target(Some(name), was.speed, &was.settings, &project)?,
        real @ (Target::Attached { .. } | Target::Managed { .. }) => real,
    };
    can_reset(&target, spec.reset)?;
    let wanted = ServerRequest {
        model: Some(run.server.model.clone()),
        sets: was.settings.clone(),
        ..request.server.clone()
    };
    note_speed(&target, wanted.speed.or(was.speed), &live);
    let server = reach(&wanted, &target, Vec::new(), &|text| note(&live, text)).await?;
    same_server(&server.record, &run).or_usage()?;
    // Instants go on from the last one: the time between is nobody's.
    let mut origin = Origin::now();
    let gone = duration(last);
    origin.stamp = Stamp(
        origin
            .stamp
            .0
            .saturating_sub(u64::try_from(gone.as_nanos()).unwrap_or(u64::MAX)),
    );
    let limit = duration(spec.first_token_limit_s);
    let aimed = aim(&server, limit, origin.clone(), &live).await?;
    let calibration = match run.calibration {
        Some(calibration) => calibration,
        None => calibrated(&server, &aimed, spec.seed).await?,
    };
    // No prompt of an earlier beginning is sent again.
    let number = 1_000_000 + u64::from(run.resumed);
    let warm = shape(&spec, number);
    warmed_up(&server, &aimed, &calibration, warm, &live).await?;
    let _ = live.send(Live::Fact(Box::new(LoadWhat::RunStarted {
        run: Box::new(run.clone()),
    })));
    let watcher = Watcher::start(&server, &origin, folder).or_rig()?;
    let context = FitContext {
        speed: speed(&server),
        embedded: matches!(target, Target::Simulated { .. }),
        server,
        watcher,
        client: aimed,
        calibration,
        spec,
        bus: Bus::new(origin, store, live),
        stop,
    };
    let begin = Begin::Again {
        command_line: command_line(Some(&context.server.upstream)),
    };
    Ok((context, begin, folder.to_owned()))
}

/// Every context leaves room for the turns.
fn has_room(client: &Client, calibration: &Calibration, spec: &LoadSpec) -> Result<(), Failure> {
    let Some(&context_tokens) = spec.contexts.iter().min() else {
        return Ok(());
    };
    let plan = SessionPlan {
        id: String::new(),
        context_tokens,
        checks: spec.checks,
        answer_tokens: spec.answer_tokens,
        seed: spec.seed,
        salt: 0,
        shared_prefix: false,
    };
    Prepared::new(client, calibration, plan)
        .map(drop)
        .or_usage()
}
