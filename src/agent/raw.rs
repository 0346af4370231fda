//! An agent profile as people write it: `harness/agents/NAME.toml`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use flashrig_config::Expression;

/// An agent profile.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawProfile {
    /// Format name: `flashrig.agent/1`.
    pub schema: String,
    /// One line for people.
    pub title: String,
    /// The protocol that the agent speaks.
    pub dialect: RawDialect,
    /// Context length told to the agent when nobody knows the server's, in tokens.
    pub fallback_context: u64,
    /// How to find the program.
    #[serde(default)]
    pub program: RawProgram,
    /// How to ask for its version.
    #[serde(default)]
    pub version: Option<RawVersion>,
    /// How to start it.
    pub launch: RawLaunch,
    /// Environment variables, with placeholders. Nothing of the operator's environment is added
    /// but `PATH`, the locale, the time zone and the places of toolchains.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Settings of the agent's own that keep its prompts from changing at the start.
    #[serde(default)]
    pub stable_prefix: RawStablePrefix,
    /// Names of variables of the operator's environment that are passed on.
    #[serde(default)]
    pub pass_env: Vec<String>,
    /// Destinations beyond this machine that the agent may reach through the session's proxy, as
    /// `HOST` or `HOST:PORT`; `*.example.com` is every name below. Everything else is refused.
    #[serde(default)]
    pub egress_allow: Vec<String>,
    /// Files written into the session's private home before the start.
    #[serde(default)]
    pub files: Vec<RawFile>,
    /// How to read its standard output.
    pub transcript: RawTranscript,
}

/// The protocol that an agent speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RawDialect {
    /// `POST /v1/messages`
    Anthropic,
    /// `POST /v1/chat/completions`
    OpenaiChat,
    /// `POST /v1/responses`
    OpenaiResponses,
    /// Not known beforehand.
    Any,
}

/// How to find a program.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawProgram {
    /// Name looked for on PATH, or a path; relative paths count from the project's folder.
    #[serde(default)]
    pub name: Option<String>,
    /// Folder below `harness/npm/` with the pinned manifest that installs it.
    #[serde(default)]
    pub npm: Option<String>,
}

/// How to ask a program for its version.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawVersion {
    /// Arguments.
    pub args: Vec<String>,
    /// Regular expression whose first group is the version.
    #[schemars(with = "String")]
    pub pattern: Expression,
}

/// How to start an agent.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawLaunch {
    /// Arguments, with placeholders.
    pub args: Vec<String>,
    /// Limit from the start to the first main request.
    pub first_request_limit: String,
    /// Limit for doing nothing with no request open.
    pub idle_limit: String,
    /// Limit from the end of the work, as the transcript tells it, to the exit.
    pub exit_grace: String,
}

/// What `--stable-prefix` sets.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawStablePrefix {
    /// Environment variables, with placeholders; they win over those of `env`.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// A file for the session's private home.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawFile {
    /// Path relative to the home.
    pub path: String,
    /// Contents, with placeholders; in a `.json` file their values are escaped for JSON strings.
    pub content: String,
}

/// How to read an agent's standard output.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawTranscript {
    /// Its form.
    pub format: RawFormat,
    /// Whether a transcript without an `end` or `error` event means that the agent failed.
    pub end_required: bool,
    /// What its lines mean; every matching rule counts.
    #[serde(default)]
    pub events: Vec<RawRule>,
}

/// The form of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RawFormat {
    /// One JSON object a line.
    JsonLines,
    /// Text; kept, not read.
    Text,
}

/// What a line of a transcript means.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawRule {
    /// The meaning.
    pub means: RawMeaning,
    /// JSON pointers and the values that must stand there; `*` stands for any array index.
    pub r#where: BTreeMap<String, serde_json::Value>,
    /// A pointer whose value tells events apart, so that one told in several lines counts once.
    #[serde(default)]
    pub key: Option<String>,
    /// Pointers to text worth showing; the first two that are there are taken.
    #[serde(default)]
    pub detail: Vec<String>,
}

/// The meaning of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RawMeaning {
    /// A turn of the model.
    Turn,
    /// A tool call.
    ToolCall,
    /// The agent's work is done.
    End,
    /// The agent reports an error.
    Error,
    /// The agent reached its own limit of turns.
    TurnLimit,
}
