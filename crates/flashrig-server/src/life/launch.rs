//! From a recipe to what is started on this machine: program found, files there, values filled in.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::launch_error::LaunchError;
use crate::install;
use crate::profiles::{FOLDERS, FileKind, Places, Recipe, SettingSource, Value};
use flashrig_config::Template;
use flashrig_http::Secret;
use flashrig_process::find_program;

/// The address that servers are told to listen on.
pub const HOST: &str = "127.0.0.1";

/// A server that can be started here.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What it comes from.
    pub recipe: Recipe,
    /// Its program, as an absolute path.
    pub program: PathBuf,
    /// Working directory.
    pub dir: PathBuf,
    /// Variables with a value.
    pub valued: Vec<Valued>,
    /// The model to ask for, as the profile has it.
    pub model: Option<String>,
    /// Values of the operator's that must not be seen in records.
    pub secrets: Vec<Secret>,
    /// Where things are.
    pub places: Places,
    folders: BTreeMap<&'static str, String>,
}

/// What names `{installed}`.
enum Needs<'a> {
    /// The default of a variable.
    Variable(&'a str),
    /// A field of the profile.
    Field(&'a str),
}

/// A variable that has a value.
#[derive(Clone, Debug)]
pub struct Valued {
    /// Its name.
    pub name: String,
    /// Its value, as the server is given it.
    pub text: String,
    /// The flag that hands it on; `None` when none does.
    pub flag: Option<String>,
    /// Where the server tells what it has.
    pub reported_in: Option<SettingSource>,
    /// Whether the server may round it up.
    pub rounds_up: bool,
    /// The file or folder that it is.
    pub file: Option<PathBuf>,
    value: Value,
}

impl Launch {
    /// Looks for everything that the recipe names.
    ///
    /// # Errors
    /// See [`LaunchError`].
    pub fn new(recipe: Recipe, places: Places) -> Result<Self, LaunchError> {
        let cache = std::path::absolute(&places.cache).unwrap_or_else(|_| places.cache.clone());
        let installed = install::folder(&recipe.install, &cache);
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut folders =
            BTreeMap::from([("cache", text(&cache)), ("project", text(&places.project))]);
        folders.extend(
            installed
                .as_deref()
                .map(|folder| ("installed", text(folder))),
        );
        let mut launch = Self {
            program: PathBuf::new(),
            dir: places.project.clone(),
            valued: Vec::new(),
            model: None,
            secrets: Vec::new(),
            folders,
            recipe,
            places,
        };
        launch.valued = launch.values()?;
        launch.program = launch.find(installed.as_deref())?;
        if let Some(dir) = launch.recipe.dir.clone() {
            let dir = launch.filled("start.dir", &dir)?;
            launch.dir = launch.places.project.join(dir);
        }
        if let Some(model) = launch.recipe.model.clone() {
            launch.model = Some(launch.filled("model", &model)?);
        }
        launch.secrets = launch.secrets()?;
        Ok(launch)
    }

    /// Its arguments when it is to listen on `port`.
    pub fn args(&self, port: u16) -> Vec<String> {
        let groups = self
            .recipe
            .args
            .iter()
            .filter_map(|group| self.group(group, port));
        groups.flatten().collect()
    }

    /// A group of arguments; `None` when it is left out.
    fn group(&self, group: &[Template], port: u16) -> Option<Vec<String>> {
        let mut message = Vec::new();
        for template in group {
            for name in template.names() {
                if self.value_of(name) == Some(&Value::Switch(false)) {
                    return None;
                }
            }
            let only = template.only_name().and_then(|name| self.value_of(name));
            // The flag alone says that it is on.
            if only == Some(&Value::Switch(true)) {
                continue;
            }
            message.push(template.render(|name| self.text_of(name, port)).ok()?);
        }
        Some(message)
    }

    /// Its environment when it is to listen on `port`.
    pub fn env(&self, port: u16) -> Vec<(OsString, OsString)> {
        let mut env = self.places.passed(&self.recipe.pass_env);
        for (name, template) in &self.recipe.env {
            let value = template.render(|name| match name.strip_prefix("env.") {
                Some(theirs) => {
                    let value = self.places.of_environment(theirs)?;
                    Some(value.to_string_lossy().into_owned())
                }
                None => self.text_of(name, port),
            });
            if let Ok(value) = value {
                env.insert(name.into(), value.into());
            }
        }
        env.into_iter().collect()
    }

    /// What the profile adds to the environment, for records: the operator's values stay names.
    pub fn environment(&self, port: u16) -> BTreeMap<String, String> {
        let of_profile = self.recipe.env.iter().filter_map(|(name, template)| {
            let value = template.render(|name| match name.strip_prefix("env.") {
                Some(_) => Some(format!("{{{name}}}")),
                None => self.text_of(name, port),
            });
            Some((name.clone(), value.ok()?))
        });
        let passed = self.recipe.pass_env.iter().filter_map(|name| {
            self.places.of_environment(name)?;
            Some((name.clone(), format!("{{env.{name}}}")))
        });
        passed.chain(of_profile).collect()
    }

    /// The words before the first flag: subcommands.
    pub(super) fn subcommands(&self) -> Vec<String> {
        let message = self.recipe.args.iter().flatten();
        message
            .take_while(|word| word.names().next().is_none() && !word.to_string().starts_with('-'))
            .map(ToString::to_string)
            .collect()
    }

    fn value_of(&self, name: &str) -> Option<&Value> {
        self.valued
            .iter()
            .find(|v| v.name == name)
            .map(|v| &v.value)
    }

    fn text_of(&self, name: &str, port: u16) -> Option<String> {
        match name {
            "host" => Some(HOST.to_owned()),
            "port" => Some(port.to_string()),
            _ => self.folders.get(name).cloned().or_else(|| {
                let mut valued = self.valued.iter();
                valued.find(|v| v.name == name).map(|v| v.text.clone())
            }),
        }
    }

    /// The variables that have a value, with the flags that hand them on.
    fn values(&self) -> Result<Vec<Valued>, LaunchError> {
        let profile = &self.recipe.profile;
        let mut valued = Vec::new();
        for variable in &self.recipe.variables {
            let Some(value) = &variable.value else {
                continue;
            };
            let mut text = value.to_string();
            if let (Value::Text(written), false) = (value, variable.is_set) {
                let template = Template::parse(written);
                let filled = template.render(|name| self.folders.get(name).cloned());
                text = filled.map_err(|_| self.not_installed(Needs::Variable(&variable.name)))?;
            }
            let path = self.places.project.join(self.at_home(&text));
            let file = match variable.file {
                FileKind::No => None,
                FileKind::OrName => Some(path).filter(|path| path.exists()),
                FileKind::MustExist if path.exists() => Some(path),
                FileKind::MustExist => {
                    return Err(LaunchError::NoFile {
                        profile: profile.clone(),
                        variable: variable.name.clone(),
                        path: path.display().to_string(),
                    });
                }
            };
            if let Some(file) = &file {
                text = file.to_string_lossy().into_owned();
            }
            valued.push(Valued {
                name: variable.name.clone(),
                text,
                flag: self.flag_of(&variable.name),
                reported_in: variable.reported_in.clone(),
                rounds_up: variable.rounds_up,
                file,
                value: value.clone(),
            });
        }
        Ok(valued)
    }

    /// The flag that hands a variable on.
    fn flag_of(&self, variable: &str) -> Option<String> {
        let names = |word: &Template| word.names().any(|name| name == variable);
        let group = self
            .recipe
            .args
            .iter()
            .find(|group| group.iter().any(names))?;
        let flag = group.first()?.to_string();
        let flag = flag.split('=').next().unwrap_or_default();
        (flag.starts_with('-')).then(|| flag.to_owned())
    }

    /// `~/` of paths that no shell has seen.
    fn at_home(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), self.places.of_environment("HOME")) {
            (Some(rest), Some(home)) => Path::new(home).join(rest),
            _ => PathBuf::from(path),
        }
    }

    /// Text of a field that must have all of its values.
    fn filled(&self, field: &'static str, template: &Template) -> Result<String, LaunchError> {
        let value = |name: &str| {
            let is_address = matches!(name, "host" | "port");
            self.text_of(name, 0).filter(|_| !is_address)
        };
        template.render(value).map_err(|name| {
            if FOLDERS.contains(&name) {
                return self.not_installed(Needs::Field(field));
            }
            LaunchError::NoValue {
                profile: self.recipe.profile.clone(),
                field,
                variable: name.to_owned(),
            }
        })
    }

    fn find(&self, installed: Option<&Path>) -> Result<PathBuf, LaunchError> {
        let program = self.filled("start.program", &self.recipe.program)?;
        let path = self.at_home(&program);
        let found = if program.contains('/') {
            find_program(self.places.project.join(path), OsStr::new(""))
        } else {
            let own = installed.map(|folder| folder.join("bin").join(&program));
            let own = own.and_then(|own| find_program(own, OsStr::new("")));
            self.places.on_path(&program).or(own)
        };
        found.ok_or_else(|| LaunchError::NoProgram {
            profile: self.recipe.profile.clone(),
            next: match (
                program.contains('/'),
                can_be_installed(&self.recipe.install),
            ) {
                (true, _) => "give the path of an executable file".to_owned(),
                (false, true) => format!(
                    "put it on PATH, or run `flashrig servers install {}`",
                    self.recipe.install
                ),
                (false, false) => "install it and put it on PATH".to_owned(),
            },
            program,
        })
    }

    fn not_installed(&self, user: Needs<'_>) -> LaunchError {
        let install = self.recipe.install.clone();
        let (what, set) = match user {
            Needs::Variable(name) => (
                format!("variable {name}"),
                format!("give a value of your own with --set {name}=VALUE"),
            ),
            Needs::Field(field) => (
                field.to_owned(),
                "write another path into the profile".to_owned(),
            ),
        };
        let next = if can_be_installed(&install) {
            format!("run `flashrig servers install {install}`, or {set}")
        } else {
            set
        };
        LaunchError::NotInstalled {
            profile: self.recipe.profile.clone(),
            what,
            install,
            next,
        }
    }

    /// The operator's values that the environment is given.
    fn secrets(&self) -> Result<Vec<Secret>, LaunchError> {
        let mut secrets = Vec::new();
        for name in self.recipe.env.iter().flat_map(|(_, t)| t.names()) {
            let Some(theirs) = name.strip_prefix("env.") else {
                continue;
            };
            let value = self.places.of_environment(theirs);
            let value = value.ok_or_else(|| LaunchError::NoEnvironment {
                profile: self.recipe.profile.clone(),
                variable: theirs.to_owned(),
            })?;
            secrets.push(Secret::new(value.to_string_lossy()));
        }
        for name in &self.recipe.pass_env {
            let value = self.places.of_environment(name);
            secrets.extend(value.map(|value| Secret::new(value.to_string_lossy())));
        }
        Ok(secrets)
    }
}

impl Recipe {
    /// Where its program is on this machine.
    ///
    /// # Errors
    /// It is not there; says in a few words what to do.
    pub fn program_here(&self, places: &Places) -> Result<PathBuf, String> {
        let mut bare = self.clone();
        // Whether its files are there is another question.
        for variable in &mut bare.variables {
            if bare.program.names().all(|name| name != variable.name) {
                variable.value = None;
            }
        }
        (bare.model, bare.dir, bare.env) = (None, None, Vec::new());
        match Launch::new(bare, places.clone()) {
            Ok(launch) => Ok(launch.program),
            Err(LaunchError::NoProgram { .. } | LaunchError::NotInstalled { .. })
                if can_be_installed(&self.install) =>
            {
                Err(format!(
                    "not installed: flashrig servers install {}",
                    self.install
                ))
            }
            Err(LaunchError::NoProgram { program, .. }) if program.contains('/') => {
                Err(format!("{program} is not there"))
            }
            Err(LaunchError::NoProgram { program, .. }) => Err(format!("{program} is not on PATH")),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Whether `flashrig servers install` knows it.
fn can_be_installed(name: &str) -> bool {
    install::names().iter().any(|known| known == name)
}
