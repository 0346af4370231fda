//! One session: an agent process on a task.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AgentId, CheckResult, EgressFact, MissingField, OtherModel, PrefixSummary, SessionDetail,
    SessionFailure, UnknownRoute,
};
use flashrig_clock::Seconds;
use llm_observe::Oddity;

/// Requests that the server redirected. No redirect is followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Redirected {
    /// How many.
    pub requests: u64,
    /// What the first redirect was and where it pointed to, and what to do.
    pub message: String,
}

/// One session of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// Name of the session in the plan, e.g. `fix-bug`.
    pub id: String,
    /// Folder below `sessions/` that holds its transcript, patch and check output.
    pub folder: String,
    /// Task name.
    pub task: String,
    /// Agent.
    pub agent: AgentId,
    /// How it ended.
    pub status: Status,
    /// How it ended, with what is known of the cause and what to do next.
    pub detail: SessionDetail,
    /// Start, in seconds since the start of the run.
    pub started_s: Option<Seconds>,
    /// End of the wall, in seconds since the start of the run.
    pub ended_s: Option<Seconds>,
    /// Wall time: from the start signal to the exit of the agent, or to its result when it did
    /// not exit by itself.
    pub wall_s: Option<Seconds>,
    /// Where the wall went; the parts add up to it.
    pub split: Option<Split>,
    /// How the agent's process ended.
    pub exit: Exit,
    /// Main requests, retries included.
    pub requests: u64,
    /// Requests of sub-agents.
    #[serde(default)]
    pub sub_agent_requests: u64,
    /// Side requests.
    pub side_requests: u64,
    /// Probes: connectivity, model list, token count.
    pub probe_requests: u64,
    /// Those of them that flashrig's gateway answered itself, as it was told to.
    #[serde(default)]
    pub answered_by_gateway: u64,
    /// Main and side requests that the server refused or answered with an error.
    pub refusals: u64,
    /// Main and side requests whose answer broke off.
    pub lost_streams: u64,
    /// Requests whose body had been sent before.
    pub repeats: u64,
    /// Main and side requests that were sent again while the first with the same body still ran.
    #[serde(default)]
    pub repeats_open: u64,
    /// Main and side requests over the distinct bodies among them; 1 when nothing was sent twice,
    /// `null` when nothing was sent.
    #[serde(default)]
    pub amplification: Option<f64>,
    /// What the server has no route for or flashrig does not know, in order of the first.
    #[serde(default)]
    pub unknown_routes: Vec<UnknownRoute>,
    /// Required fields that streams to it lacked: clients may refuse such answers, and ask again.
    #[serde(default)]
    pub missing_fields: Vec<MissingField>,
    /// Every model name asked for, in order of its first request.
    #[serde(default)]
    pub models_asked: Vec<String>,
    /// Answers that named another model than the one asked for.
    #[serde(default)]
    pub other_models: Vec<OtherModel>,
    /// Requests that flashrig's own gateway turned away (a wrong token, say); in no other count.
    pub rejected_requests: u64,
    /// Those of them that it turned away because the prompt was above `--max-prompt`.
    #[serde(default)]
    pub long_prompts: u64,
    /// Main and side requests that the server redirected, of those refused; `null` when there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirected: Option<Redirected>,
    /// Main and side requests without the nonce of a cold cache.
    pub unmarked_requests: u64,
    /// What was odd about the answers and matters to figures or to the outcome.
    #[serde(default)]
    pub odd_answers: Vec<OddAnswers>,
    /// Requests whose prompt grew while the server's count of its tokens did not; `null` when there
    /// were none.
    #[serde(default)]
    pub cut_prompts: Option<CutPrompts>,
    /// Prompt tokens of the first main request that the server says came from its cache.
    pub first_cached_tokens: Option<u64>,
    /// Turns that the agent's transcript tells.
    pub turns: Option<u64>,
    /// Tool calls that the agent's transcript tells.
    pub tool_calls: Option<u64>,
    /// Prompt tokens over main and side requests, cached ones included; `null` when the server
    /// left any of them unknown.
    pub input_tokens: Option<u64>,
    /// Those of them that the server took from its cache.
    pub cached_tokens: Option<u64>,
    /// Generated tokens over main and side requests.
    pub output_tokens: Option<u64>,
    /// What successive prompts had in common; `null` when no thread had two.
    pub prefix: Option<PrefixSummary>,
    /// The kept bodies of its requests and answers.
    pub bodies: Option<KeptBodies>,
    /// CPU time of the whole process tree.
    pub cpu_s: Option<Seconds>,
    /// Peak resident memory of the whole process tree, sampled.
    pub peak_rss_bytes: Option<u64>,
    /// Processes that outlived the agent and were ended by the rig.
    pub leftovers: Vec<String>,
    /// What it asked the egress guard for. A program that ignores proxy settings is not seen.
    #[serde(default)]
    pub egress: Vec<EgressFact>,
    /// Whether it tried to reach something beyond this machine that nobody allowed.
    #[serde(default)]
    pub tried_to_leave: bool,
    /// Whether the process tree is proven gone; `null` when nothing was started.
    pub tree_end: Option<TreeProof>,
    /// Whether patch and checks were looked at.
    pub verified: bool,
    /// What the checks said; empty when the session was not verified.
    pub checks: Vec<CheckResult>,
    /// The agent's patch; `null` when it was not taken.
    pub diff: Option<Diff>,
    /// Why the session does not count as done; empty when it does.
    pub failures: Vec<SessionFailure>,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The agent finished and exited.
    Completed,
    /// The agent gave its result but did not exit, and was ended after a grace.
    CompletedNoExit,
    /// The agent reached its own limit of turns.
    TurnLimit,
    /// The agent gave up, crashed or reported an error of its own.
    AgentError,
    /// No main request reached the server.
    NoRequest,
    /// Nothing happened for too long while no request was open.
    Idle,
    /// The session's time limit ran out.
    Timeout,
    /// The server refused the agent's last request.
    ServerRefused,
    /// The server failed or broke off the agent's last request.
    ServerError,
    /// The agent changed files outside its workspace.
    Escaped,
    /// The run was stopped.
    Interrupted,
    /// The rig itself failed.
    RigError,
}

impl Status {
    /// Whether the agent came to its own end.
    pub fn is_completed(self) -> bool {
        matches!(self, Self::Completed | Self::CompletedNoExit)
    }

    /// The status as people read it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::CompletedNoExit => "completed, did not exit",
            Self::TurnLimit => "turn limit reached",
            Self::AgentError => "agent error",
            Self::NoRequest => "no request",
            Self::Idle => "idle",
            Self::Timeout => "time limit reached",
            Self::ServerRefused => "refused by the server",
            Self::ServerError => "server error",
            Self::Escaped => "changed files outside its workspace",
            Self::Interrupted => "interrupted",
            Self::RigError => "rig error",
        }
    }
}

/// Answers with one oddity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OddAnswers {
    /// The oddity.
    #[schemars(with = "String")]
    pub oddity: Oddity,
    /// Answers that have it.
    pub answers: u64,
}

/// Prompts that the server cut without saying so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CutPrompts {
    /// How many requests.
    pub requests: u64,
    /// Prompt tokens that the server counts at most.
    pub tokens: u64,
}

/// How the agent's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind", content = "value")]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// A signal that the rig did not send ended it.
    Signal(i32),
    /// The rig ended it.
    Stopped,
    /// It never started.
    NotStarted,
}

/// What is known of the end of a session's process tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TreeProof {
    /// The system guarantees that nothing of it is left.
    Gone,
    /// Everything that was ever seen of it is gone.
    GoneAsFarAsSeen,
    /// Some of it could not be ended.
    Survivors,
}

/// Where a session's wall went. The parts add up to the wall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Split {
    /// From the start signal to the first main request.
    pub startup_s: Seconds,
    /// Held back by flashrig's own gate.
    pub gate_s: Seconds,
    /// From a request's arrival to its first generated token, the gate left out.
    pub waiting_s: Seconds,
    /// From the first generated token to the end of the answer.
    pub decoding_s: Seconds,
    /// From a failed attempt to the next one.
    pub backoff_s: Seconds,
    /// Between requests: tools, and the agent itself.
    pub between_s: Seconds,
    /// From the last request's end to the end of the wall.
    pub exit_s: Seconds,
}

impl Split {
    /// The sum of the parts.
    pub fn total(&self) -> Seconds {
        Seconds(
            self.startup_s.0
                + self.gate_s.0
                + self.waiting_s.0
                + self.decoding_s.0
                + self.backoff_s.0
                + self.between_s.0
                + self.exit_s.0,
        )
    }
}

/// The size of an agent's patch against the base tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diff {
    /// Changed files.
    pub files: u64,
    /// Inserted lines.
    pub insertions: u64,
    /// Deleted lines.
    pub deletions: u64,
    /// Protected files that were touched.
    pub protected_touched: Vec<String>,
}

/// What was kept of the bodies of a session: `bodies.zst`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptBodies {
    /// Bodies in the file, those of which only hash and length were kept included.
    pub bodies: u64,
    /// Their length, before compression.
    pub bytes: u64,
    /// The length of the file.
    pub file_bytes: u64,
    /// Bodies that were let go because the disk was slower than the agents.
    pub dropped: u64,
}
