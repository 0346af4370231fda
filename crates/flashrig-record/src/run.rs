//! The run as a whole, its rounds and their arms.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    GateOrder, IdleBy, InvalidReason, Placed, RefusalKind, Server, ServerLoss, Session,
    StoppedBecause, Verdict, Watched,
};
use flashrig_clock::Seconds;

/// The version of the format of `run.json`.
pub const RUN_SCHEMA: &str = "flashrig.run/1";

/// `run.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Format and its version: `flashrig.run/1`.
    pub schema: String,
    /// Name of the results folder.
    pub id: String,
    /// The subcommand.
    pub command: String,
    /// The command line as typed, without secrets.
    pub command_line: Vec<String>,
    /// Wall time of the start, RFC 3339, UTC.
    pub started_at: String,
    /// How far the run got.
    pub state: RunState,
    /// Why it stopped early, when it did.
    pub stopped_because: Option<StoppedBecause>,
    /// The measuring instrument.
    pub rig: Rig,
    /// The machine it ran on.
    pub host: Host,
    /// The server under test.
    pub server: Server,
    /// What was asked for.
    pub spec: Spec,
    /// Rounds, in order; each holds every arm once.
    pub rounds: Vec<Round>,
    /// The judgement; `null` while the run goes on or when it was cut short before any round.
    pub verdict: Option<Verdict>,
}

/// How far a run got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Not sealed: it is still running, or the rig was killed.
    Unfinished,
    /// Every planned round ran.
    Finished,
    /// Stopped by Ctrl-C or a termination signal.
    Interrupted,
    /// Stopped by a failure of the rig or its surroundings.
    Failed,
}

/// The measuring instrument.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rig {
    /// Version of flashrig.
    pub version: String,
    /// How sessions were contained.
    pub sandbox: String,
    /// The rig's own CPU time, the embedded server's included when one ran.
    pub cpu_s: Option<Seconds>,
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Operating system and its kernel release.
    pub os: String,
    /// Processor architecture.
    pub arch: String,
    /// Logical processors available to the rig.
    pub cores: Option<u32>,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spec {
    /// The sessions of each arm.
    pub sessions: Vec<SessionSpec>,
    /// Number of rounds planned; with `auto_rounds` the most.
    pub rounds: u32,
    /// How the number of rounds follows from what they show; `null` when it was fixed.
    #[serde(default)]
    pub auto_rounds: Option<AutoRounds>,
    /// Cache policy.
    pub cache: CachePolicy,
    /// Time limit given on the command line, for every session.
    pub time_limit_s: Option<Seconds>,
    /// Slowdown thresholds.
    pub thresholds: Thresholds,
    /// The gate of the arm `gated`; `null` when there is no such arm, which is the default.
    #[serde(default)]
    pub gate: Option<GateSpec>,
    /// Whether rounds with much foreign load on the machine are compared all the same.
    #[serde(default)]
    pub foreign_load_accepted: bool,
    /// Whether the sessions ran back to back twice, and never together.
    #[serde(default)]
    pub against_itself: bool,
    /// Longer prompts, in estimated tokens, are refused by the gateway; `null` when none are.
    #[serde(default)]
    pub max_prompt_tokens: Option<u64>,
    /// Whether flashrig's gateway answered probes itself instead of passing them on.
    #[serde(default)]
    pub answer_probes: bool,
    /// By agent, the settings of its own that keep its prompts from changing at the start, as
    /// `NAME=VALUE`; `null` when agents ran as they come. An agent without such a setting has an
    /// empty list.
    #[serde(default)]
    pub stable_prefix: Option<BTreeMap<String, Vec<String>>>,
    /// Longest wait of a request for its first token; beyond it its session is ended.
    #[serde(default)]
    pub first_token_limit_s: Option<Seconds>,
    /// Whether the server was brought back to a known state before each arm.
    #[serde(default)]
    pub reset: bool,
}

/// Rounds go on until the time verdict is settled, or a budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AutoRounds {
    /// The verdict is not looked at before this many rounds.
    pub at_least: u32,
    /// No round begins after so long since the first one's start; `null` without such a limit.
    pub max_time_s: Option<Seconds>,
}

/// A gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateSpec {
    /// Generation requests of all sessions that are let into the server at once.
    pub limit: u32,
    /// Who is let in next.
    pub order: GateOrder,
}

/// One session of each arm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSpec {
    /// Name of the session, unique in the run.
    pub id: String,
    /// Task name.
    pub task: String,
    /// Folder of the project that the task was read from, relative to the project's folder; `null`
    /// for a built-in task.
    #[serde(default)]
    pub task_folder: Option<String>,
    /// Agent name and version.
    pub agent: AgentId,
}

/// Which agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentId {
    /// Profile name.
    pub name: String,
    /// Version that the program told; `null` when it told none.
    pub version: Option<String>,
    /// File of the project that the profile was read from, relative to the project's folder; `null`
    /// for a built-in profile.
    #[serde(default)]
    pub profile_file: Option<String>,
}

/// What is done about the server's prompt cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CachePolicy {
    /// A nonce at the very start of each prompt, one per session and arm: no arm profits from
    /// another's prompts, while a session's own turns still share their prefix.
    Cold,
    /// No nonce; every session runs once, unscored, before the first round.
    Warm,
    /// No nonce and no warm-up: whatever the server still holds.
    Keep,
}

/// Slowdown at or below `pass` passes, at or below `fail` warns, above fails.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Thresholds {
    /// Upper end of a pass. Default 1.5.
    pub pass: f64,
    /// Upper end of a warning. Default 2.0.
    pub fail: f64,
}

/// Every arm once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// From 1.
    pub index: u32,
    /// Whether its times may be compared.
    pub valid: bool,
    /// Why not.
    pub invalid_reasons: Vec<Placed<InvalidReason>>,
    /// Arms in the order in which they ran.
    pub arms: Vec<Arm>,
}

/// One way of running the sessions.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ArmKind {
    /// All at once.
    Together,
    /// All at once, their requests held back by flashrig's own gate.
    Gated,
    /// One after the other.
    BackToBack,
    /// The same once more: what two equal arms differ by, the measurement itself makes.
    BackToBackAgain,
}

impl ArmKind {
    /// Whether one session at a time runs.
    pub fn is_serial(self) -> bool {
        matches!(self, Self::BackToBack | Self::BackToBackAgain)
    }

    /// The name as people read it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Together => "together",
            Self::Gated => "gated",
            Self::BackToBack => "back to back",
            Self::BackToBackAgain => "back to back again",
        }
    }

    /// The name as it is stored.
    pub fn slug(self) -> &'static str {
        match self {
            Self::Together => "together",
            Self::Gated => "gated",
            Self::BackToBack => "back_to_back",
            Self::BackToBackAgain => "back_to_back_again",
        }
    }
}

/// How late the rig's own event loop was, in milliseconds: what it may have added to any instant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RigLag {
    /// Half of the time it was no later.
    pub p50: f64,
    /// 99% of the time it was no later.
    pub p99: f64,
    /// It was never later.
    pub max: f64,
}

/// What the rest of the machine did in a span. Shares are 0 to 1; `null` where the system does not
/// tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineLoad {
    /// Length of the span.
    pub span_s: Seconds,
    /// Share of all processors used by what is neither flashrig, nor an agent, nor the server.
    /// `null` too when the server runs on this machine and its process cannot be found.
    pub foreign_cpu_share: Option<f64>,
    /// Share of all processors that a hypervisor gave to others.
    pub stolen_cpu_share: Option<f64>,
    /// Share of the time in which some task waited for memory.
    pub memory_stall_share: Option<f64>,
    /// Bytes moved to or from swap.
    pub swapped_bytes: Option<u64>,
}

/// A failure of the server that hit several sessions at once: every request in flight failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerEvent {
    /// When the first of them failed, in seconds since the start of the run.
    pub at_s: Seconds,
    /// The sessions whose requests failed.
    pub sessions: Vec<String>,
    /// How many requests failed.
    pub requests: u32,
    /// The status of the first.
    pub status: Option<u16>,
    /// Why, when its words tell.
    pub refusal: Option<RefusalKind>,
    /// The server's words to the first.
    pub message: Option<String>,
}

/// One arm of one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Arm {
    /// Which way of running.
    pub kind: ArmKind,
    /// How long the rig waited for the server to be idle before the arm.
    pub idle_wait_s: Option<Seconds>,
    /// How it was known that the server was idle; of several waits the least certain way.
    #[serde(default)]
    pub idle_by: Option<IdleBy>,
    /// First start to last finish. For `back_to_back` this includes the rig's own work between
    /// sessions; comparisons use the sum of walls instead.
    pub makespan_s: Option<Seconds>,
    /// The sum of the sessions' walls.
    pub sum_of_walls_s: Option<Seconds>,
    /// The largest number of sessions that ran at one time.
    pub max_overlap: Option<u32>,
    /// Last start minus first start; `null` for `back_to_back`.
    pub start_skew_s: Option<Seconds>,
    /// Cached share of all prompt tokens, 0 to 1.
    pub cached_share: Option<f64>,
    /// Share of the machine's processors that the sessions' process trees used, 0 to 1.
    pub cpu_share: Option<f64>,
    /// What the rest of the machine did while the sessions ran; `null` when it was not looked at.
    #[serde(default)]
    pub machine: Option<MachineLoad>,
    /// Agents whose program was another one after the arm than at the start of the run.
    #[serde(default)]
    pub changed_programs: Vec<String>,
    /// How late the rig's own event loop was while the sessions ran; `null` when not measured.
    pub rig_lag_ms: Option<RigLag>,
    /// Failures of the server that hit several sessions at once, in order.
    #[serde(default)]
    pub server_events: Vec<ServerEvent>,
    /// Why the server was lost in the arm, which ended all of its sessions; `null` when it was not.
    #[serde(default)]
    pub server_lost: Option<ServerLoss>,
    /// How long it took to bring the server back to a known state before the arm; `null` when that
    /// was not asked for.
    #[serde(default)]
    pub reset_s: Option<Seconds>,
    /// What was seen of the server during the arm; `null` when nothing was.
    #[serde(default)]
    pub watched: Option<Box<Watched>>,
    /// Sessions, in the order of the plan.
    pub sessions: Vec<Session>,
}

impl Arm {
    /// An arm of which nothing is known yet.
    pub fn unmeasured(kind: ArmKind) -> Self {
        Self {
            kind,
            idle_wait_s: None,
            idle_by: None,
            makespan_s: None,
            sum_of_walls_s: None,
            max_overlap: None,
            start_skew_s: None,
            cached_share: None,
            cpu_share: None,
            machine: None,
            changed_programs: Vec::new(),
            rig_lag_ms: None,
            server_events: Vec::new(),
            server_lost: None,
            reset_s: None,
            watched: None,
            sessions: Vec::new(),
        }
    }
}
