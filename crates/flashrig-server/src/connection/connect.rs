//! From a target to a server that is there, identified, and ready to be measured.

use std::path::PathBuf;

use super::error::ConnectError;
use super::identity::{Identity, identify};
use super::open::{Opened, Wanted, open};
use crate::life::{Life, StartError};
use crate::log::LogIndex;
use crate::profiles::{MetricNames, Target};
use flashrig_http::Upstream;
use flashrig_record::Server;
use flashrig_sim::Script;

/// A server that is there. Dropping it stops one that was started here.
#[derive(Debug)]
pub struct Connected {
    /// What the record says of it.
    pub record: Server,
    /// How it is reached.
    pub upstream: Upstream,
    /// Where its metrics are, and what it calls them.
    pub metrics: MetricNames,
    /// What becomes of its process.
    pub life: Life,
    /// What its log says.
    pub log_index: LogIndex,
    /// What it was opened as.
    opened: Opened,
}

/// Lines of its log that are told of a server in trouble.
const LAST_LINES: usize = 20;

impl Connected {
    /// The last lines of its log, oldest first; none where its log is not read.
    pub fn last_lines(&self) -> Vec<String> {
        self.log_index.last_lines(LAST_LINES)
    }
}

/// Reaches the target, starting it when it is simulated or managed.
///
/// # Errors
/// See [`ConnectError`]. Nothing is left running.
pub async fn connect(
    target: &Target,
    wanted: &Wanted,
    scripts: Vec<Script>,
    sim_log: Option<PathBuf>,
) -> Result<Connected, ConnectError> {
    attach(open(target, wanted, scripts, sim_log).await?).await
}

async fn attach(opened: Opened) -> Result<Connected, ConnectError> {
    let (url, server) = (opened.url.as_str(), &opened.upstream);
    let wanted = opened.model.as_deref();
    let identity = identify(server, wanted).await?;
    let model = choose_model(url, wanted, &identity)?;
    let identity = if wanted.is_none() && identity.context.is_none() {
        identify(server, Some(&model)).await?
    } else {
        identity
    };
    let (context_tokens, context_source) = opened.context(&identity);
    let managed = opened.proven().await?;
    let of_program = managed.as_ref().and_then(|m| m.program_version.clone());
    Ok(Connected {
        record: Server {
            name: opened.name.clone(),
            profile_file: opened.interface.profile_file.clone(),
            url: opened.url.clone(),
            simulated: identity.simulated || opened.sim.is_some(),
            speed: opened.speed.or(identity.speed),
            settings: Vec::new(),
            version: identity.version.or(of_program),
            model,
            models: identity.models,
            quantization: identity.quantization,
            context_tokens,
            context_source,
            context_reported_tokens: identity.context,
            managed,
            life: Vec::new(),
        },
        upstream: opened.upstream.clone(),
        metrics: opened.interface.metrics.clone(),
        life: opened.life.clone(),
        log_index: opened.log_index.clone(),
        opened,
    })
}

impl Connected {
    /// Looks again whether what the server was started with took effect: some tell only once they
    /// have served requests.
    ///
    /// # Errors
    /// The server contradicts a value that it was given.
    pub async fn prove(&mut self) -> Result<(), StartError> {
        self.record.managed = self.opened.proven().await?;
        Ok(())
    }
}

fn choose_model(
    url: &str,
    wanted: Option<&str>,
    identity: &Identity,
) -> Result<String, ConnectError> {
    let served = identity.models.as_deref();
    match (wanted, served) {
        (Some(name), Some(list)) if !list.is_empty() && !list.iter().any(|m| m == name) => {
            Err(ConnectError::Model {
                url: url.to_owned(),
                model: name.to_owned(),
                served: list.to_owned(),
            })
        }
        (Some(name), _) => Ok(name.to_owned()),
        (None, Some([only])) => Ok(only.clone()),
        (None, Some(list)) if list.len() > 1 => Err(ConnectError::ModelNeeded(format!(
            "the server at {url} lists several models; choose one with --model: {}",
            list.join(", ")
        ))),
        (None, _) => Err(ConnectError::ModelNeeded(format!(
            "the server at {url} does not say which model it serves (no list at /v1/models); check \
             that this is its API address, or name the model with --model"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serving(names: &[&str]) -> Identity {
        Identity {
            models: Some(names.iter().map(|n| (*n).to_owned()).collect()),
            ..Identity::default()
        }
    }

    #[test]
    fn the_only_model_is_taken_and_several_must_be_chosen_from() {
        assert_eq!(choose_model("u", None, &serving(&["m"])).unwrap(), "m");
        let error = choose_model("u", None, &serving(&["a", "b"]))
            .unwrap_err()
            .to_string();
        assert!(error.ends_with("choose one with --model: a, b"), "{error}");
    }

    #[test]
    fn a_wrong_model_name_is_answered_with_the_nearest_and_the_list() {
        let error = choose_model("u", Some("qwem"), &serving(&["qwen", "x"]))
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "the server at u: unknown model \"qwem\"; known: qwen, x; did you mean \"qwen\"?"
        );
    }

    #[test]
    fn a_server_without_a_list_takes_any_name_and_needs_one() {
        assert_eq!(
            choose_model("u", Some("m"), &Identity::default()).unwrap(),
            "m"
        );
        assert!(choose_model("u", None, &Identity::default()).is_err());
    }
}
