//! From a profile to a command line, an environment and a private home.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Profile;
use flashrig_config::{Template, unknown};
use flashrig_gateway::egress::{LOOPBACK_NAMES, proxy_environment};

/// Placeholders that a profile may use.
const PLACEHOLDERS: [&str; 10] = [
    "prompt",
    "base_url",
    "token",
    "model",
    "workspace",
    "home",
    "context",
    "output_limit",
    "client_limit_ms",
    "proxy_url",
];

/// Variables that hold the places of toolchains; their values are passed on, since an agent
/// without a compiler cannot do its task.
const TOOLCHAINS: [&str; 14] = [
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "NVM_DIR",
    "VOLTA_HOME",
    "FNM_DIR",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "MISE_DATA_DIR",
    "JAVA_HOME",
    "GOROOT",
    "SDKROOT",
    "DEVELOPER_DIR",
];

/// Other variables of the operator that are passed on.
const HARMLESS: [&str; 4] = ["PATH", "LANG", "LC_ALL", "TZ"];

/// Reads text in which `{name}` is a placeholder.
///
/// # Errors
/// A name that is not one of an agent's placeholders; says which there are.
pub fn template(text: &str) -> Result<Template, String> {
    let template = Template::parse(text);
    if let Some(name) = template.names().find(|name| !PLACEHOLDERS.contains(name)) {
        return Err(unknown("placeholder", name, PLACEHOLDERS));
    }
    Ok(template)
}

fn render(template: &Template, values: &Values, json: bool) -> String {
    template.fill(|name| {
        let value = values.get(name);
        if json { json_escaped(&value) } else { value }
    })
}

/// The value as it stands between the quotes of a JSON string.
fn json_escaped(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// What is known of a session when its agent is launched.
#[derive(Clone, Debug)]
pub struct Values {
    /// What the agent is told.
    pub prompt: String,
    /// Address of the session's gateway, without `/v1`.
    pub base_url: String,
    /// Token of the session's gateway.
    pub token: String,
    /// The served model.
    pub model: String,
    /// The session's copy of the repository.
    pub workspace: PathBuf,
    /// The session's private home.
    pub home: PathBuf,
    /// Context length told to the agent, in tokens.
    pub context: u64,
    /// The limit that clients are given for one request, above the session's own.
    pub client_limit_ms: u64,
    /// Address of the session's egress guard.
    pub proxy_url: String,
}

impl Values {
    /// The output limit told to agents that want one: a quarter of the context, at most 32,000,
    /// the default of Claude Code.
    fn output_limit(&self) -> u64 {
        (self.context / 4).clamp(1, 32_000)
    }

    fn get(&self, name: &str) -> String {
        match name {
            "prompt" => self.prompt.clone(),
            "base_url" => self.base_url.clone(),
            "token" => self.token.clone(),
            "model" => self.model.clone(),
            "workspace" => self.workspace.display().to_string(),
            "home" => self.home.display().to_string(),
            "context" => self.context.to_string(),
            "output_limit" => self.output_limit().to_string(),
            "proxy_url" => self.proxy_url.clone(),
            _ => self.client_limit_ms.to_string(),
        }
    }
}

/// What the process room needs to start an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Files for the private home, by relative path.
    pub files: Vec<(String, String)>,
}

/// The command line of `--agent-command`, for profiles without a program of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine(Vec<Template>);

impl CommandLine {
    /// Splits a command line as a shell would; placeholders are filled in after the split, so
    /// that a prompt with spaces stays one argument.
    ///
    /// # Errors
    /// An unclosed quote, an empty command, an unknown placeholder.
    pub fn parse(text: &str) -> Result<Self, String> {
        let message = shell_words::split(text).map_err(|e| format!("{text:?}: {e}"))?;
        if message.is_empty() {
            return Err("is empty: give a program".to_owned());
        }
        message
            .iter()
            .map(|word| template(word))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The program as typed.
    pub fn program(&self) -> String {
        self.0.first().map_or_else(String::new, Template::to_string)
    }
}

/// Builds the launch of one session. `operator` is the operator's environment, of which only the
/// allow-listed variables are read.
pub fn launch(
    profile: &Profile,
    program: &Path,
    command: Option<&CommandLine>,
    values: &Values,
    operator: &BTreeMap<OsString, OsString>,
) -> Launch {
    let own_args = command.map_or(&[][..], |c| &c.0[1..]);
    let args = own_args
        .iter()
        .chain(&profile.args)
        .map(|a| OsString::from(render(a, values, false)))
        .collect();
    let mut env = base_environment(&values.home, operator);
    for (name, value) in proxy_environment(&values.proxy_url) {
        env.insert(name.into(), value.into());
    }
    for name in &profile.pass_env {
        if let Some(value) = operator.get(&OsString::from(name)) {
            env.insert(name.into(), value.clone());
        }
    }
    for (name, value) in [
        ("FLASHRIG_PROMPT", "prompt"),
        ("FLASHRIG_BASE_URL", "base_url"),
        ("FLASHRIG_TOKEN", "token"),
        ("FLASHRIG_MODEL", "model"),
        ("FLASHRIG_WORKSPACE", "workspace"),
    ] {
        // A well-described agent gets these through its own variables; two names for one thing
        // would only be noise there.
        if command.is_some() || profile.program.is_none() {
            env.insert(name.into(), values.get(value).into());
        }
    }
    for (name, template) in &profile.env {
        env.insert(name.into(), render(template, values, false).into());
    }
    Launch {
        program: program.to_owned(),
        args,
        env: env.into_iter().collect(),
        files: profile
            .files
            .iter()
            .map(|f| (f.path.clone(), render(&f.content, values, f.json)))
            .collect(),
    }
}

/// The environment that every child of a session gets: a home of its own, and of the operator
/// only what says where programs are.
pub fn base_environment(
    home: &Path,
    operator: &BTreeMap<OsString, OsString>,
) -> BTreeMap<OsString, OsString> {
    let mut env = BTreeMap::new();
    for name in HARMLESS.iter().chain(&TOOLCHAINS) {
        if let Some(value) = operator.get(&OsString::from(*name)) {
            env.insert(OsString::from(*name), value.clone());
        }
    }
    // rustup's shims on PATH look for their toolchains below HOME, which is another one now.
    if let Some(operator_home) = operator.get(&OsString::from("HOME")) {
        let rustup = Path::new(operator_home).join(".rustup");
        if rustup.is_dir() {
            env.entry("RUSTUP_HOME".into())
                .or_insert_with(|| rustup.into());
        }
    }
    let below = |name: &str| home.join(name).into_os_string();
    for (name, value) in [
        ("HOME", home.as_os_str().to_owned()),
        ("XDG_CONFIG_HOME", below(".config")),
        ("XDG_DATA_HOME", below(".local/share")),
        ("XDG_STATE_HOME", below(".local/state")),
        ("XDG_CACHE_HOME", below(".cache")),
        ("TMPDIR", below("tmp")),
        ("CARGO_HOME", below(".cargo")),
        // Neither the operator's nor the system's git settings reach a session.
        ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ("GIT_TERMINAL_PROMPT", "0".into()),
        ("TERM", "dumb".into()),
        ("SHELL", "/bin/sh".into()),
        ("NO_PROXY", LOOPBACK_NAMES.into()),
        ("no_proxy", LOOPBACK_NAMES.into()),
    ] {
        env.insert(name.into(), value);
    }
    env
}

/// Folders that must exist in a fresh private home.
pub const HOME_FOLDERS: [&str; 5] = [".config", ".local/share", ".local/state", ".cache", "tmp"];

#[cfg(test)]
mod tests;
