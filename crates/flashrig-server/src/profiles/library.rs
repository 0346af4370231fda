//! Server profiles, validated.

use std::path::Path;

use serde::Deserialize as _;

use super::change::{self, Change};
use super::door::DoorSpec;
use super::known;
use super::metrics::MetricNames;
use super::raw::{RawKind, RawProfile};
use super::recipe::{Recipe, RecipeParts};
use super::reset::Reset;
use crate::log::LogPattern;
use flashrig_config::{Document, FileError, ProfileError, Profiles};
use flashrig_harness::HARNESS;
use flashrig_http::Address;
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
    /// File of the project that its profile was read from, relative to the project's folder; `None`
    /// for a built-in profile, and where there is none.
    pub profile_file: Option<String>,
}

impl Interface {
    /// That of a server of which only the address is known.
    pub fn unknown() -> Self {
        Self {
            metrics: known::metrics(),
            dialects: None,
            log: known::log(),
            reset: None,
            profile_file: None,
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
        address: Box<Address>,
        /// The model to ask for.
        model: Option<String>,
        /// Context length in tokens.
        context: Option<u64>,
        /// What opens its door.
        door: DoorSpec,
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
        let mut profile = self.read(name, changes)?;
        profile.interface.profile_file = self.project_file(name);
        Ok(profile)
    }

    /// The project's file of a profile, relative to the project's folder; `None` when the built-in
    /// one is used.
    pub fn project_file(&self, name: &str) -> Option<String> {
        self.0.project_file(name)
    }

    fn read(&self, name: &str, changes: &[Change]) -> Result<Profile, ProfileError> {
        let document = self.0.document(name)?;
        let raw: RawProfile = document.parse_schema(SERVER_SCHEMA)?;
        if changes.is_empty() {
            return Ok(validate(name, &document, raw)?);
        }
        // What was changed belongs to its name: the server tells it, and records keep it.
        let changed_name = change::named(name, changes);
        if raw.kind == RawKind::Managed {
            let mut profile = validate(name, &document, raw)?;
            if let Kind::Managed(recipe) = &mut profile.kind {
                for change in changes {
                    change.set(recipe).map_err(|problem| {
                        let field = format!("variables.{}", change.name());
                        changed(&document, std::slice::from_ref(change)).error(field, problem)
                    })?;
                }
            }
            profile.name = changed_name;
            return Ok(profile);
        }
        let mut table: toml::Table = document.parse()?;
        for change in changes {
            change.apply(&mut table);
        }
        let document = changed(&document, changes);
        let raw = RawProfile::deserialize(table).map_err(|error| document.error_in("", &error))?;
        Ok(validate(&changed_name, &document, raw)?)
    }
}

/// A profile with changes: what is wrong with one of them has no place in its file.
fn changed(document: &Document, changes: &[Change]) -> Document {
    let file = format!("{} with {}", document.file(), change::list(changes));
    Document::new(file, "")
}

fn validate(name: &str, document: &Document, mut raw: RawProfile) -> Result<Profile, FileError> {
    let bad = |field: &str, problem: &str| document.error(field, problem);
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
    let door = raw.door();
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
        profile_file: None,
    };
    // Said at the field that makes it necessary, since the missing one has no line.
    let needs = |server: &str, field: &str| {
        let table = match field {
            "sim" => "the table `[sim]`, its timing",
            "start" => "the table `[start]`, its program and args",
            "context" => "the field `context`, its context length in tokens",
            "model" => "the field `model`, the name of the model that it serves",
            _ => "the field `url`, its address",
        };
        bad("kind", &format!("{server} needs {table}; add it"))
    };
    let kind = match raw.kind {
        RawKind::Simulated => {
            let missing = |field| needs("a simulated server", field);
            if raw.url.is_some() || door != DoorSpec::default() {
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
            let url = raw.url.ok_or_else(|| needs("an attached server", "url"))?;
            let address = Address::parse(&url).map_err(|error| bad("url", &error.to_string()))?;
            Kind::Attached {
                address: Box::new(address),
                model: raw.model,
                context: raw.context,
                door,
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
            let start = raw
                .start
                .ok_or_else(|| needs("a managed server", "start"))?;
            let parts = RecipeParts {
                start,
                variables: raw.variables,
                ready: raw.ready,
                identity: raw.identity,
                stop: raw.stop,
                model: raw.model,
                context: raw.context,
                door,
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
        let document = Document::new(
            "x.toml",
            "schema = \"flashrig.server/1\"\nkind = \"simulated\"\ntitle = \"x\"\nmodel = \"m\"\ncontext = 0\n",
        );
        let error = |document: &Document| {
            let raw = document.parse().unwrap();
            validate("x", document, raw).unwrap_err().to_string()
        };
        assert_eq!(error(&document), "x.toml:5:11: context: must be above 0");
        let document = Document::new(
            "x.toml",
            "schema = \"flashrig.server/1\"\nkind = \"simulated\"\ntitle = \"x\"\nmodel = \"m\"\ncontext = 1\n",
        );
        assert_eq!(
            error(&document),
            "x.toml:2:8: kind: a simulated server needs the table `[sim]`, its timing; add it"
        );
    }
}
