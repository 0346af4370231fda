//! What was asked of `pair`, read and validated.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::{CommandLine, Profile};
use crate::plan::rounds::RoundsAsked;
use crate::plan::server::ServerRequest;
use crate::task::Task;
use flashrig_gateway::egress::Pattern;
use flashrig_process::SandboxChoice;
use flashrig_record::{CachePolicy, GateSpec, Thresholds};

/// What was asked of `pair`, read and validated. Plain data.
#[derive(Clone, Debug)]
pub struct Request {
    /// One for each session.
    pub tasks: Vec<Arc<Task>>,
    /// Names of agent profiles, one for each session.
    pub agents: Vec<String>,
    /// Profiles by name.
    pub profiles: BTreeMap<String, Profile>,
    /// The command line of the agent without a program of its own.
    pub command: Option<CommandLine>,
    /// Whether a missing agent is installed.
    pub install: bool,
    /// The server.
    pub server: ServerRequest,
    /// Scored rounds; `None` is 1 on a simulated server, `auto` otherwise.
    pub rounds: Option<RoundsAsked>,
    /// No round begins after so long.
    pub max_time: Option<Duration>,
    /// What is done about the server's prompt cache.
    pub cache: CachePolicy,
    /// Slowdown thresholds.
    pub thresholds: Thresholds,
    /// Whether rounds with much foreign load are compared all the same.
    pub foreign_load_accepted: bool,
    /// Whether the sessions run back to back twice, and never together.
    pub against_itself: bool,
    /// The gate of the third arm.
    pub gate: Option<GateSpec>,
    /// The longest prompt that the gateway lets through, in tokens.
    pub max_prompt_tokens: Option<u64>,
    /// Whether the gateway answers probes itself.
    pub answer_probes: bool,
    /// What `--stable-prefix` sets, by agent; `None` without it.
    pub stable_prefix: Option<BTreeMap<String, Vec<String>>>,
    /// Limit of each session; `None` is the task's own.
    pub time_limit: Option<Duration>,
    /// Longest wait of a request for its first token.
    pub first_token_limit: Duration,
    /// How sessions are contained.
    pub sandbox: SandboxChoice,
    /// Destinations beyond this machine that agents may reach.
    pub allow_egress: Vec<Pattern>,
    /// Whether workspaces are kept.
    pub keep: bool,
    /// Whether bodies are kept.
    pub bodies: bool,
    /// Folder for results.
    pub results: PathBuf,
}
