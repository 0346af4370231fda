//! Server profiles, validated.

use std::path::Path;

use serde::Deserialize as _;

use super::change::{self, Change};
use super::known;
use super::metrics::MetricNames;
use super::raw::{RawKind, RawProfile};
use super::recipe::{Recipe, RecipeParts};
use super::reset::Reset;
use crate::log::LogPattern;
use flashrig_config::{FileError, ProfileError, Profiles};
use flashrig_harness::HARNESS;
use flashrig_record::Dialect;
use flashrig_sim::SimProfile;

/// The format of server profiles.
pub const SERVER_SCHEMA: &str = "flashrig.server/1";

/// A server profile.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its file's name.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// What it is.
    pub kind: Kind,
    /// How to look into it.
    pub interface: Interface,
}

/// How to look into a server.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Its metrics.
    pub metrics: MetricNames,
    /// The protocols that its profile says it speaks; `None` when it says nothing of that.
    pub dialects: Option<Vec<Dialect>>,
    /// What its log says.
    pub log: Vec<LogPattern>,
    /// How it is brought back to a known state; `None` when its profile does not say.
    pub reset: Option<Reset>,
}

impl Interface {
    /// That of a server of which only the address is known.
    pub fn unknown() -> Self {
        Self {
            metrics: known::metrics(),
            dialects: None,
            log: known::log(),
            reset: None,
        }
    }
}

/// What a server is.
#[derive(Clone, Debug)]
pub enum Kind {
    /// flashrig's own.
    Simulated(SimProfile),
    /// Somebody else started it.
    Attached {
        /// Base address.
        url: String,
        /// The model to ask for.
        model: Option<String>,
        /// Context length in tokens.
        context: Option<u64>,
        /// Environment variable with the key.
        key_env: Option<String>,
    },
    /// flashrig starts it.
    Managed(Box<Recipe>),
}

/// All server profiles.
#[derive(Clone, Debug)]
pub struct Library(Profiles);

impl Library {
    /// Profiles of the project in `project`, and the built-in ones.
    pub fn new(project: Option<&Path>) -> Self {
        Self(Profiles::new("server", "servers", project, &HARNESS))
    }

    /// The names, sorted.
    pub fn names(&self) -> Vec<String> {
        self.0.names()
    }

    /// Loads one profile.
    ///
    /// # Errors
    /// An unknown name, or an invalid file with its place.
    pub fn load(&self, name: &str) -> Result<Profile, ProfileError> {
        self.load_with(name, &[])
    }

    /// Loads one profile with some of its values changed.
    ///
    /// # Errors
    /// An unknown name, an invalid file with its place, or a change that cannot be.
    pub fn load_with(&self, name: &str, changes: &[Change]) -> Result<Profile, ProfileError> {
        let (file, text) = self.0.text(name)?;
        if changes.is_empty() {
            let raw: RawProfile = flashrig_config::read_toml(&file, &text)?;
            return Ok(validate(name, &file, raw)?);
        }
        let mut table: toml::Table = flashrig_config::read_toml(&file, &text)?;
        let managed = toml::Value::String("managed".to_owned());
        if table.get("kind") == Some(&managed) {
            return self.managed_with(name, &file, &text, changes);
        }
        for change in changes {
            change.apply(&mut table);
        }
        let file = format!("{file} with {}", change::list(changes));
        // What was changed belongs to its name: the server tells it, and records keep it.
        let name = &change::named(name, changes);
        let raw = RawProfile::deserialize(table).map_err(|error| FileError::Invalid {
            file: file.clone(),
            message: change::with_hint(error.to_string().trim_end()),
        })?;
        Ok(validate(name, &file, raw)?)
    }

    /// A managed server with some of its variables set.
    fn managed_with(
        &self,
        name: &str,
        file: &str,
        text: &str,
        changes: &[Change],
    ) -> Result<Profile, ProfileError> {
        let raw: RawProfile = flashrig_config::read_toml(file, text)?;
        let mut profile = validate(name, file, raw)?;
        if let Kind::Managed(recipe) = &mut profile.kind {
            for change in changes {
                change.set(recipe).map_err(|message| FileError::Field {
                    file: format!("{file} with {change}"),
                    field: format!("variables.{}", change.name()),
                    message,
                })?;
            }
        }
        profile.name = change::named(name, changes);
        Ok(profile)
    }
}

fn validate(name: &str, file: &str, mut raw: RawProfile) -> Result<Profile, FileError> {
    if raw.schema != SERVER_SCHEMA {
        return Err(FileError::Schema {
            file: file.to_owned(),
            found: raw.schema,
            expected: SERVER_SCHEMA.to_owned(),
        });
    }
    let bad = |field: &str, message: &str| FileError::Field {
        file: file.to_owned(),
        field: field.to_owned(),
        message: message.to_owned(),
    };
    if raw.context == Some(0) {
        return Err(bad("context", "must be above 0"));
    }
    if let Some((field, message)) = raw.metrics.as_ref().and_then(MetricNames::fault) {
        return Err(bad(&field, &message));
    }
    let generates = |dialects: &Vec<Dialect>| dialects.iter().all(|d| d.generates());
    if raw.dialects.as_ref().is_some_and(|d| !generates(d)) {
        return Err(bad(
            "dialects",
            "may hold openai_chat, anthropic_messages and openai_responses",
        ));
    }
    let is_managed = raw.kind == RawKind::Managed;
    let for_managed = [
        ("start", raw.start.is_some()),
        ("variables", !raw.variables.is_empty()),
        ("ready", raw.ready.is_some()),
        ("identity", raw.identity.is_some()),
        ("stop", raw.stop.is_some()),
    ];
    if let Some((field, _)) = for_managed.iter().find(|(_, is)| *is && !is_managed) {
        return Err(bad(field, "belongs to managed servers only"));
    }
    let reset = raw.reset.take().map(|raw| Reset::from_raw(raw, is_managed));
    let reset = reset
        .transpose()
        .map_err(|message| bad("reset", &message))?;
    let interface = Interface {
        metrics: raw.metrics.unwrap_or_else(known::metrics),
        dialects: raw.dialects,
        // What a managed server is said to be set to must be its own words.
        log: if raw.log.is_empty() && !is_managed {
            known::log()
        } else {
            raw.log
        },
        reset,
    };
    let kind = match raw.kind {
        RawKind::Simulated => {
            let missing = |field| bad(field, "is needed for a simulated server");
            if raw.url.is_some() || raw.key_env.is_some() {
                return Err(bad(
                    "url",
                    "a simulated server has no address or key of its own",
                ));
            }
            let model = raw.model.ok_or_else(|| missing("model"))?;
            let context = raw.context.ok_or_else(|| missing("context"))?;
            let table = raw.sim.ok_or_else(|| missing("sim"))?;
            Kind::Simulated(SimProfile::new(name, model, context, &table).map_err(|e| {
                let message = format!("is {}, but {}", e.value, e.rule);
                bad(&format!("sim.{}", e.field), &message)
            })?)
        }
        RawKind::Attached => {
            if raw.sim.is_some() {
                return Err(bad("sim", "belongs to simulated servers only"));
            }
            Kind::Attached {
                url: raw
                    .url
                    .ok_or_else(|| bad("url", "is needed for an attached server"))?,
                model: raw.model,
                context: raw.context,
                key_env: raw.key_env,
            }
        }
        RawKind::Managed => {
            if raw.sim.is_some() {
                return Err(bad("sim", "belongs to simulated servers only"));
            }
            if raw.url.is_some() {
                return Err(bad(
                    "url",
                    "a managed server gets its address when it is started; to use one that runs \
                     already, name it with its address: --server NAME@http://HOST:PORT",
                ));
            }
            let start = raw.start.ok_or_else(|| {
                bad(
                    "start",
                    "is needed for a managed server: the program and its args",
                )
            })?;
            let parts = RecipeParts {
                start,
                variables: raw.variables,
                ready: raw.ready,
                identity: raw.identity,
                stop: raw.stop,
                model: raw.model,
                context: raw.context,
                key_env: raw.key_env,
            };
            let recipe =
                Recipe::from_raw(name, parts).map_err(|(field, message)| bad(&field, &message))?;
            Kind::Managed(Box::new(recipe))
        }
    };
    Ok(Profile {
        name: name.to_owned(),
        title: raw.title,
        kind,
        interface,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_profile_is_valid() {
        let library = Library::new(None);
        assert!(library.names().contains(&"sim".to_owned()));
        for name in library.names() {
            library.load(&name).unwrap();
        }
    }

    #[test]
    fn a_simulated_profile_without_timing_names_file_and_field() {
        let raw: RawProfile = flashrig_config::read_toml(
            "x.toml",
            "schema = \"flashrig.server/1\"\nkind = \"simulated\"\ntitle = \"x\"\nmodel = \"m\"\ncontext = 1\n",
        )
        .unwrap();
        assert_eq!(
            validate("x", "x.toml", raw).unwrap_err().to_string(),
            "x.toml: field `sim`: is needed for a simulated server"
        );
    }
}
