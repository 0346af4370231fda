//! A server profile as people write it: `harness/servers/NAME.toml`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::door::DoorSpec;
use super::metrics::MetricNames;
use super::raw_start::{RawIdentity, RawReady, RawReset, RawStart, RawStop, RawVariable};
use crate::log::{LogPattern, RawLogPattern};
use flashrig_record::Dialect;
use flashrig_sim::SimTable;

/// A server profile.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawProfile {
    /// Format name: `flashrig.server/1`.
    pub schema: String,
    /// What it is.
    pub kind: RawKind,
    /// One line for people.
    pub title: String,
    /// Base address of an attached server, with or without `/v1`.
    #[serde(default)]
    pub url: Option<String>,
    /// The model that is asked for; needed for a simulated server, which serves it. That of a
    /// managed one may hold placeholders.
    #[serde(default)]
    pub model: Option<String>,
    /// Context length in tokens.
    #[serde(default)]
    pub context: Option<u64>,
    /// Name of the environment variable that holds the server's key.
    #[serde(default)]
    pub key_env: Option<String>,
    /// Further headers for every request: the name of each header, and the name of the environment
    /// variable that holds its value.
    #[serde(default)]
    pub header_env: BTreeMap<String, String>,
    /// Name of the environment variable that holds `user:pass` for HTTP Basic.
    #[serde(default)]
    pub basic_env: Option<String>,
    /// PEM file of the CA that signed the server's certificate; a path that does not begin with `/` is
    /// relative to the folder in which flashrig is started.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// The protocols that it speaks; what a probe finds is held against them.
    #[serde(default)]
    pub dialects: Option<Vec<Dialect>>,
    /// Where its metrics are and what it calls them; without this table every name of the built-in
    /// profiles is looked for.
    #[serde(default)]
    pub metrics: Option<MetricNames>,
    /// What its log says, as patterns.
    #[serde(default)]
    #[schemars(with = "Vec<RawLogPattern>")]
    pub log: Vec<LogPattern>,
    /// Timing of a simulated server.
    #[serde(default)]
    pub sim: Option<SimTable>,
    /// How a managed server is started.
    #[serde(default)]
    pub start: Option<RawStart>,
    /// What can be set of a managed server, by name: `--set NAME=VALUE`.
    #[serde(default)]
    pub variables: BTreeMap<String, RawVariable>,
    /// How a managed server tells that it is ready.
    #[serde(default)]
    pub ready: Option<RawReady>,
    /// How a managed server's program tells its version.
    #[serde(default)]
    pub identity: Option<RawIdentity>,
    /// How the server is brought back to a known state.
    #[serde(default)]
    pub reset: Option<RawReset>,
    /// How a managed server is ended.
    #[serde(default)]
    pub stop: Option<RawStop>,
}

impl RawProfile {
    /// What opens the server's door.
    pub(super) fn door(&self) -> DoorSpec {
        let headers = self.header_env.iter();
        DoorSpec {
            key_env: self.key_env.clone(),
            header_env: headers
                .map(|(name, of)| (name.clone(), of.clone()))
                .collect(),
            basic_env: self.basic_env.clone(),
            ca: self.ca.clone(),
        }
    }
}

/// What a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RawKind {
    /// flashrig's own.
    Simulated,
    /// Somebody else started it.
    Attached,
    /// flashrig starts and stops it.
    Managed,
}
