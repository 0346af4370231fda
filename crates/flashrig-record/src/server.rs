//! The server under test: who answered, how it was started, and what became of it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{LifeFact, ProofSource};
use flashrig_clock::Seconds;

/// The server under test, as it identified itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Server {
    /// Profile name, or the address when there is none.
    pub name: String,
    /// File of the project that the profile was read from, relative to the project's folder; `null`
    /// for a built-in profile, and where there is none.
    #[serde(default)]
    pub profile_file: Option<String>,
    /// Base address, without credentials.
    pub url: String,
    /// Whether it is flashrig's own simulated server.
    pub simulated: bool,
    /// Time factor of a simulated server.
    pub speed: Option<f64>,
    /// Values of the server's profile that were changed for the run, as `KEY=VALUE`.
    #[serde(default)]
    pub settings: Vec<String>,
    /// Version that it told; `null` when it told none.
    pub version: Option<String>,
    /// The model that requests ask for.
    pub model: String,
    /// The models that it lists; `null` when it has no list.
    pub models: Option<Vec<String>>,
    /// Quantization of the model, in the server's words; `null` when it told none.
    #[serde(default)]
    pub quantization: Option<String>,
    /// Context length in tokens.
    pub context_tokens: Option<u64>,
    /// Where the context length comes from.
    pub context_source: ContextSource,
    /// Context length in tokens that the server told, whatever was given; `null` when it told none.
    #[serde(default)]
    #[serde(rename = "context_told_tokens")]
    pub context_reported_tokens: Option<u64>,
    /// How flashrig started it; `null` when somebody else did.
    #[serde(default)]
    pub managed: Option<Box<Managed>>,
    /// What became of a server that flashrig started, in order.
    #[serde(default)]
    pub life: Vec<ServerLife>,
}

/// Where a context length comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextSource {
    /// The server told it.
    Server,
    /// The user or the server's profile gave it.
    Given,
    /// Nobody told it: agents were given their profile's fallback.
    Unknown,
}

/// A server that flashrig started: with what, and what is known of its files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Managed {
    /// The program and its arguments, as started.
    pub command_line: Vec<String>,
    /// What the profile added to its environment.
    pub environment: BTreeMap<String, String>,
    /// Version that the program tells when asked for it; `null` when it tells none.
    pub program_version: Option<String>,
    /// SHA-256 of the program's file, in hex; `null` when it could not be read.
    pub program_sha256: Option<String>,
    /// The model's file; `null` when the profile names none.
    pub model_file: Option<String>,
    /// SHA-256 of the model's file, in hex; `null` when there is no file or it could not be read.
    pub model_sha256: Option<String>,
    /// Size of the model's file in bytes.
    pub model_bytes: Option<u64>,
    /// Every file or folder that the profile's variables name, the model's included.
    #[serde(default)]
    pub files: Vec<NamedFile>,
    /// Process id of the program at its first start.
    #[serde(default)]
    pub pid: Option<u32>,
    /// Why the flags of the command line were not held against those that the program lists;
    /// `null` when it lists every one of them.
    #[serde(default)]
    pub flags_not_checked: Option<String>,
    /// From the start of the process to its first sign of being ready. Never part of an arm.
    pub ready_after_s: Seconds,
    /// The profile's variables that have a value, by name, and whether they took effect.
    pub variables: Vec<SettingProof>,
}

/// A file or folder that a server was started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedFile {
    /// The variable that names it.
    pub variable: String,
    /// Its path.
    pub path: String,
    /// SHA-256 in hex: of the file, or of the list of a folder's files with theirs; `null` when it
    /// could not be read.
    pub sha256: Option<String>,
    /// Bytes in all; `null` when it could not be read.
    pub bytes: Option<u64>,
}

/// A variable of a server's profile, and whether its value took effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingProof {
    /// Its name in the profile.
    pub name: String,
    /// The value that the server was started with.
    pub value: String,
    /// The value that the server told; `null` when it told none.
    #[serde(rename = "told")]
    pub reported: Option<String>,
    /// Who told it: a line of the log, a metric, or a field of an answer; `null` when nobody did.
    #[serde(rename = "told_by")]
    pub reported_by: Option<ProofSource>,
    /// Whether the value told is the value given; `null`, which is "not proven", when none was told.
    pub engaged: Option<bool>,
}

/// Something that became of a server which flashrig started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerLife {
    /// When, in seconds since the start of the run.
    pub at_s: Seconds,
    /// What.
    pub what: LifeKind,
    /// What is known of it.
    #[serde(rename = "words")]
    pub fact: LifeFact,
    /// The last lines of its log before that, oldest first; empty when it wrote none.
    pub last_lines: Vec<String>,
    /// From its start to its being ready; `null` unless it was started.
    pub ready_after_s: Option<Seconds>,
}

/// What became of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LifeKind {
    /// It ended without having been asked to.
    Died,
    /// It was started again, and is ready.
    Restarted,
    /// It was brought back to a known state.
    Reset,
}
