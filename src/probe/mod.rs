//! What can be learned of a server by asking it: routes, identity, protocols tried live, metrics,
//! first-token times. A few small requests, one after the other.
//!
//! Runs, sessions, verdicts about speed, files and the terminal must not enter this room.

mod dialects;
mod endpoints;

use std::time::Duration;

use flashrig_http::HttpError;
use flashrig_load::{LoadDialect, LoadLimits};
use flashrig_record::{Generates, PROBE_SCHEMA, Probe};
use flashrig_server::{Identity, Opened, log_tail};

/// The last lines of its log that are looked at.
const LAST_LINES: usize = 20;

/// Learns what can be learned of the server. `limit` is that of each first token, in the server's
/// own time; `seed` keeps prompts out of caches; `say` is told what is going on.
///
/// # Errors
/// Nobody is there, it is not an LLM server, or it wants a key.
pub async fn probe(
    server: &Opened,
    limit: Duration,
    seed: u64,
    say: impl Fn(&str),
) -> Result<Probe, HttpError> {
    say(&format!("asking {} who it is", server.url));
    let looked = endpoints::look(server).await?;
    let listed = looked.identity(server.model.as_deref());
    let mut remarks = Vec::new();
    let model = server.model.clone().or_else(|| only(&listed));
    if let Some(remark) = about_the_model(server.model.as_deref(), &listed) {
        remarks.push(remark);
    }
    let identity = looked.identity(model.as_deref());
    let (context_tokens, context_source) = server.context(&identity);
    let speed = server.speed.or(identity.speed);
    let mut found = Probe {
        schema: PROBE_SCHEMA.to_owned(),
        name: server.name.clone(),
        url: server.url.clone(),
        simulated: identity.simulated || server.sim.is_some(),
        speed,
        version: identity.version.or_else(|| {
            let managed = server.managed.as_ref()?;
            managed.program_version.clone()
        }),
        fingerprint: None,
        models: identity.models,
        model,
        context_tokens,
        context_source,
        quantization: identity.quantization,
        slots: looked.slots(),
        managed: None,
        dialects: Vec::new(),
        counted_tokens: None,
        counts_as_usage: None,
        first_tokens: Vec::new(),
        metrics: Vec::new(),
        generates: Generates::Unknown,
        answer: String::new(),
        remarks,
        endpoints: Vec::new(),
    };
    let is_silent = looked.is_silent();
    found.endpoints = looked.rows;
    match found.model.clone() {
        Some(model) => generate(server, &model, limit, seed, &say, &mut found).await,
        None if is_silent => {
            found.generates = Generates::AcceptsOnly;
            found.answer = "it accepts connections and answers nothing; look into its log and \
                            start it again"
                .to_owned();
        }
        None => {
            found.answer = "whether it generates was not tried, as no model is known; name one \
                            with --model"
                .to_owned();
        }
    }
    if let Some(page) = endpoints::metrics(server).await {
        found.metrics = server.interface.metrics.read(&page);
    }
    found.managed = server.proofs().await;
    Ok(found)
}

/// Has it generate.
async fn generate(
    server: &Opened,
    model: &str,
    limit: Duration,
    seed: u64,
    say: &impl Fn(&str),
    found: &mut Probe,
) {
    let (row, counted) = endpoints::count(server, model).await;
    found.endpoints.push(row);
    found.counted_tokens = counted;
    let limits = LoadLimits {
        first_token: limit,
        silence: limit,
    };
    let speed = found.speed.unwrap_or(1.0);
    let tried = dialects::try_all(server, model, speed, limits, say).await;
    let mut stalled = tried.stalled;
    if let Some((aim, ready_tokens)) = tried.works.filter(|_| stalled.is_none()) {
        found.counts_as_usage = counted.zip(ready_tokens).map(|(a, b)| a == b);
        if aim.dialect == LoadDialect::OpenaiChat {
            found.fingerprint = endpoints::fingerprint(server, model, limit).await;
        }
        say("timing first tokens");
        let (rows, silent) = dialects::time(&aim, ready_tokens, found.context_tokens, seed).await;
        found.first_tokens = rows;
        stalled = silent;
    }
    let names: Vec<&str> = (tried.rows.iter())
        .filter(|row| row.streams == Some(true))
        .map(|row| row.dialect.label())
        .collect();
    let message = names.join(" and ");
    found.dialects = tried.rows;
    (found.generates, found.answer) = match stalled {
        Some(silence) => {
            let life = endpoints::signs_of_life(server).await;
            let tail = log_tail(&server.log_index.last_lines(LAST_LINES));
            let message = format!(
                "it accepts requests and does not generate: {silence}, while {life}; look into \
                 its log and start it again, or give a longer --first-token-limit{tail}"
            );
            (Generates::AcceptsOnly, message)
        }
        None if message.is_empty() => {
            let message = "it streams tokens in neither protocol; what it said stands above";
            (Generates::No, message.to_owned())
        }
        None => (Generates::Yes, format!("it generates: {message}")),
    };
}

fn only(identity: &Identity) -> Option<String> {
    match identity.models.as_deref() {
        Some([only]) => Some(only.clone()),
        _ => None,
    }
}

/// What is to be known about the model that is, or would be, asked for.
fn about_the_model(wanted: Option<&str>, identity: &Identity) -> Option<String> {
    let list = identity.models.as_deref();
    match (wanted, list) {
        (Some(model), Some(list)) if !list.is_empty() && !list.iter().any(|m| m == model) => {
            Some(format!("the model {model:?} is not in its list"))
        }
        (None, Some(list)) if list.len() > 1 => Some(format!(
            "it lists {} models; choose one with --model",
            list.len()
        )),
        (None, None | Some([])) => Some("it lists no model; name one with --model".to_owned()),
        _ => None,
    }
}
