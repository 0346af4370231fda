//! From a validated request to a run of `ttft` that can begin.

use std::path::PathBuf;

use super::{TtftContext, shape};
use crate::exit::{Failure, OrFail, usage};
use crate::plan::server::ServerRequest;
use crate::run::load::prepare::{
    Reported, aim, begun, calibrated, duration, note, note_speed, warmed_up,
};
use crate::run::shared::bus::Bus;
use crate::run::shared::instrument::writable;
use crate::run::shared::reach::{can_reset, or_death, reach, target};
use crate::run::shared::stop::Stop;
use crate::store::Store;
use flashrig_clock::Origin;
use flashrig_config::format_tokens;
use flashrig_record::{LoadRun, LoadSpec, Server};
use flashrig_server::{Target, Watcher};

/// What was asked of `ttft`. Plain data.
#[derive(Clone, Debug)]
pub struct Request {
    /// The experiment.
    pub spec: LoadSpec,
    /// The server.
    pub server: ServerRequest,
    /// Folder for results.
    pub results: PathBuf,
}

/// Prepares a run: the server is reached, its counting of tokens known, the record begun. The path
/// is that of the results folder.
///
/// # Errors
/// What was asked for makes no sense, or the server or the folder cannot be used.
pub async fn prepare(
    request: Request,
    live: Reported,
    stop: Stop,
) -> Result<(TtftContext, LoadRun, PathBuf), Failure> {
    let Request {
        spec,
        server: typed,
        results,
    } = request;
    let project = std::env::current_dir().or_rig()?;
    let target = target(typed.server.as_deref(), typed.speed, &typed.sets, &project)?;
    can_reset(&target, spec.reset)?;
    writable(&results)?;
    note_speed(&target, typed.speed, &live);
    let mut server = reach(&typed, &target, Vec::new(), &|text| note(&live, text)).await?;
    within(&spec, &server.record)?;
    let origin = Origin::now();
    let readying = async {
        let limit = duration(spec.first_token_limit_s);
        let client = aim(&server, limit, origin.clone(), &live).await?;
        let calibration = calibrated(&server, &client, spec.seed).await?;
        has_room(&spec, calibration.envelope_tokens)?;
        let warm = shape(&spec, 0);
        warmed_up(&server, &client, &calibration, warm, &live).await?;
        Ok((client, calibration))
    };
    let (client, calibration) = or_death(&server, readying).await?;
    server.prove().await.or_rig()?;

    let id = format!("{}-ttft", origin.wall.strftime("%Y%m%dT%H%M%SZ"));
    let store = Store::<LoadRun>::create(&results, &id).or_rig()?;
    let folder = store.folder().to_owned();
    let watcher = Watcher::start(&server, &origin, &folder).or_rig()?;
    let record = begun("ttft", store.id(), &origin, &server, &spec, calibration);
    let context = TtftContext {
        embedded: matches!(target, Target::Simulated { .. }),
        server,
        watcher,
        client,
        calibration,
        spec,
        bus: Bus::new(origin, store, live),
        stop,
    };
    Ok((context, record, folder))
}

/// The shortest prompt has room for what every prompt holds.
fn has_room(spec: &LoadSpec, envelope_tokens: f64) -> Result<(), Failure> {
    match spec.contexts.iter().min() {
        Some(&prompt) if (prompt as f64) < envelope_tokens => Err(usage(format!(
            "--prompt {} is too small: a prompt with nothing in it has {} tokens on this server; \
             give more",
            format_tokens(prompt),
            envelope_tokens.ceil(),
        ))),
        _ => Ok(()),
    }
}

/// Prompt and answer fit into the server's context.
fn within(spec: &LoadSpec, server: &Server) -> Result<(), Failure> {
    let Some(limit) = server.context_tokens else {
        return Ok(());
    };
    let answer = u64::from(spec.answer_tokens);
    let prompts = [
        ("--prompt", spec.contexts.first().copied()),
        ("--long", spec.long_tokens),
    ];
    for (option, tokens) in prompts {
        if let Some(tokens) = tokens.filter(|tokens| tokens + answer > limit) {
            return Err(usage(format!(
                "{option} {} and an answer of {answer} tokens are beyond the context of the \
                 server, which is {} ({limit} tokens); give less",
                format_tokens(tokens),
                format_tokens(limit),
            )));
        }
    }
    Ok(())
}
