//! The validated form of what a profile says about starting a server.

use std::collections::BTreeMap;
use std::time::Duration;

use super::door::DoorSpec;
use super::raw_start::{RawIdentity, RawReady, RawStart, RawStop, RawVariable, Value};
use super::variable::{BUILT_IN, FOLDERS, Variable};
use flashrig_config::{Expression, Template, parse_duration, unknown};

const USUAL_READY_LIMIT: Duration = Duration::from_secs(300);
const USUAL_GRACE: Duration = Duration::from_secs(10);

/// How a server is started, and what is set of it.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Name of the profile.
    pub profile: String,
    /// The program: a name or a path.
    pub(crate) program: Template,
    /// The server that `servers install` installs.
    pub install: String,
    pub(crate) args: Vec<Vec<Template>>,
    pub(crate) env: Vec<(String, Template)>,
    pub(crate) pass_env: Vec<String>,
    pub(crate) dir: Option<Template>,
    /// The port that was asked for; `None` for a free one.
    pub port: Option<u16>,
    pub(crate) help: Option<Vec<String>>,
    /// Whether it is started again after a death.
    pub restart: bool,
    /// What can be set, by name.
    pub variables: Vec<Variable>,
    /// How it tells that it is ready.
    pub ready: Ready,
    pub(crate) version: Option<(Vec<String>, Option<regex::Regex>)>,
    /// How long it has to end by itself.
    pub grace: Duration,
    /// The model to ask for.
    pub(crate) model: Option<Template>,
    /// Context length in tokens, as the profile has it.
    pub context: Option<u64>,
    /// What opens its door.
    pub door: DoorSpec,
}

/// How a server tells that it is ready.
#[derive(Clone, Debug)]
pub struct Ready {
    /// What is asked for, below the base address.
    pub path: String,
    /// The status that says so; `None` for any from 200 to 299.
    pub status: Option<u16>,
    /// How long it may take.
    pub limit: Duration,
}

/// What of a profile makes a recipe.
pub struct RecipeParts {
    /// `[start]`
    pub start: RawStart,
    /// `[variables]`
    pub variables: BTreeMap<String, RawVariable>,
    /// `[ready]`
    pub ready: Option<RawReady>,
    /// `[identity]`
    pub identity: Option<RawIdentity>,
    /// `[stop]`
    pub stop: Option<RawStop>,
    /// `model`
    pub model: Option<String>,
    /// `context`
    pub context: Option<u64>,
    /// What opens its door.
    pub door: DoorSpec,
}

/// A field that cannot be, and what is wrong with it.
type Fault = (String, String);

impl Recipe {
    /// Validates one.
    ///
    /// # Errors
    /// The field, and what is wrong with it.
    pub fn from_raw(profile: &str, raw: RecipeParts) -> Result<Self, Fault> {
        let start = raw.start;
        let mut variables = Vec::new();
        for (name, variable) in raw.variables {
            let variable = Variable::from_raw(&name, variable)
                .map_err(|(field, message)| (format!("variables.{name}{field}"), message))?;
            variables.push(variable);
        }
        let version = raw.identity.map(version).transpose()?;
        let recipe = Self {
            profile: profile.to_owned(),
            program: Template::parse(&start.program),
            install: start.install.unwrap_or_else(|| profile.to_owned()),
            args: start
                .args
                .iter()
                .map(|group| group.0.iter().map(|text| Template::parse(text)).collect())
                .collect(),
            env: start
                .env
                .iter()
                .map(|(name, text)| (name.clone(), Template::parse(text)))
                .collect(),
            pass_env: start.pass_env,
            dir: start.dir.as_deref().map(Template::parse),
            port: start.port,
            help: start.help,
            restart: start.restart,
            variables,
            ready: ready(raw.ready)?,
            version,
            grace: match raw.stop {
                Some(stop) => duration("stop.grace", &stop.grace)?,
                None => USUAL_GRACE,
            },
            model: raw.model.as_deref().map(Template::parse),
            context: raw.context,
            door: raw.door,
        };
        recipe.check()?;
        Ok(recipe)
    }

    /// Gives a variable, or the port, another value; `typed` is how it was written.
    ///
    /// # Errors
    /// There is none of that name, or the value is not of its kind.
    pub fn set(&mut self, name: &str, value: Value, typed: &str) -> Result<(), String> {
        if name == "port" {
            let port = match value {
                Value::Whole(number) => u16::try_from(number).ok().filter(|port| *port > 0),
                _ => None,
            };
            self.port = Some(port.ok_or("must be a port, from 1 to 65535")?);
            return Ok(());
        }
        if let Some(variable) = self.variables.iter_mut().find(|v| v.name == name) {
            return variable.set(value, typed);
        }
        let names = self.variables.iter().map(|v| v.name.as_str());
        let kind = format!("setting of the profile {}", self.profile);
        Err(unknown(&kind, name, names.chain(["port"])))
    }

    /// Everything that holds placeholders, with its field.
    fn templates(&self) -> Vec<(&'static str, &Template)> {
        let mut all = vec![("start.program", &self.program)];
        all.extend(self.args.iter().flatten().map(|t| ("start.args", t)));
        all.extend(self.env.iter().map(|(_, t)| ("start.env", t)));
        all.extend(self.dir.iter().map(|t| ("start.dir", t)));
        all.extend(self.model.iter().map(|t| ("model", t)));
        all
    }

    fn check(&self) -> Result<(), Fault> {
        let bad = |field: &str, message: String| Err((field.to_owned(), message));
        if self.program.to_string().trim().is_empty() {
            return bad("start.program", "is empty; name a program".to_owned());
        }
        if self.port == Some(0) {
            return bad(
                "start.port",
                "must be above 0; leave it out for a free one".to_owned(),
            );
        }
        if self.args.iter().any(Vec::is_empty) {
            return bad(
                "start.args",
                "holds an empty group; leave it out".to_owned(),
            );
        }
        let mut named: Vec<&str> = Vec::new();
        for (field, template) in self.templates() {
            for name in template.names() {
                if name.starts_with("env.") {
                    if field == "start.env" {
                        continue;
                    }
                    return bad(
                        field,
                        format!(
                            "{{{name}}} may stand in start.env only: everybody on the machine can \
                             read a command line, and records keep the rest"
                        ),
                    );
                }
                self.known(field, name)?;
                let is_setting = matches!(field, "start.args" | "start.env");
                if is_setting && !FOLDERS.contains(&name) && named.contains(&name) {
                    return bad(
                        field,
                        format!("names the placeholder {{{name}}} twice; what sets it must be one"),
                    );
                }
                if !is_setting && matches!(name, "host" | "port") {
                    return bad(
                        field,
                        format!("{{{name}}} may stand in start.args and start.env"),
                    );
                }
                named.push(name);
            }
        }
        if !named.contains(&"port") && self.port.is_none() {
            return bad(
                "start.args",
                "names no {port}, so that nobody knows where the server listens; hand it on, or \
                 say which it is with `port`"
                    .to_owned(),
            );
        }
        match self
            .variables
            .iter()
            .find(|v| !named.contains(&v.name.as_str()))
        {
            Some(unused) => bad(
                &format!("variables.{}", unused.name),
                format!(
                    "is used nowhere; name {{{}}} in start.args, or leave it out",
                    unused.name
                ),
            ),
            None => Ok(()),
        }
    }

    fn known(&self, field: &str, name: &str) -> Result<(), Fault> {
        let variables = self.variables.iter().map(|v| v.name.as_str());
        let known: Vec<&str> = BUILT_IN.into_iter().chain(variables).collect();
        if known.contains(&name) {
            return Ok(());
        }
        Err((
            field.to_owned(),
            format!(
                "{} (a table [variables.NAME] adds one)",
                unknown("placeholder", name, known.iter().copied())
            ),
        ))
    }
}

fn version(raw: RawIdentity) -> Result<(Vec<String>, Option<regex::Regex>), Fault> {
    let pattern = raw.pattern.map(|Expression(pattern)| pattern);
    if pattern.as_ref().is_some_and(|p| p.captures_len() < 2) {
        return Err((
            "identity.pattern".to_owned(),
            "needs a group around the version".to_owned(),
        ));
    }
    Ok((raw.version, pattern))
}

fn ready(raw: Option<RawReady>) -> Result<Ready, Fault> {
    let (path, status, limit) = match raw {
        Some(raw) => (raw.path, raw.status, raw.limit),
        None => (None, None, None),
    };
    let path = path.unwrap_or_else(|| "/v1/models".to_owned());
    if !path.starts_with('/') {
        let message = format!("is {path:?}, but a path begins with /");
        return Err(("ready.path".to_owned(), message));
    }
    if status.is_some_and(|status| !(100..=599).contains(&status)) {
        let message = "is not an HTTP status; write one like 200".to_owned();
        return Err(("ready.status".to_owned(), message));
    }
    let limit = match limit {
        Some(text) => duration("ready.limit", &text)?,
        None => USUAL_READY_LIMIT,
    };
    if limit.is_zero() {
        let message = "leaves no time to start; give more, such as 2m".to_owned();
        return Err(("ready.limit".to_owned(), message));
    }
    Ok(Ready {
        path,
        status,
        limit,
    })
}

fn duration(field: &str, text: &str) -> Result<Duration, Fault> {
    parse_duration(text).map_err(|error| (field.to_owned(), error.to_string()))
}
