//! `fit` and `ttft`: what synthetic sessions met on a server.
//!
//! All times are seconds of the server's own time: on a simulated server at speed S a wall second
//! is S of them (`server.speed`). Instants in `requests.jsonl` stay on the wall clock.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AutoRounds, Cell, CellStopReason, ErrorDetail, Host, IdleBy, LeftOutReason, LoadVerdict,
    Outcome, RefusalKind, Rig, RigLag, RunState, Server, StoppedBecause, Thresholds, TtftRow,
    Watched,
};
use flashrig_clock::Seconds;

/// Format of the records of `fit` and `ttft`.
pub const LOAD_SCHEMA: &str = "flashrig.load/1";

/// `run.json` of `fit` and `ttft`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadRun {
    /// Format and its version: `flashrig.load/1`; flashrig 0.1.0 wrote `flashrig.run/1`.
    pub schema: String,
    /// Name of the results folder.
    pub id: String,
    /// `fit` or `ttft`.
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
    pub spec: LoadSpec,
    /// How prompts were brought to their size; `null` until it is known.
    pub calibration: Option<Calibration>,
    /// Everything measured, in the order in which it was; never dropped, never overwritten.
    pub measured: Vec<Measured>,
    /// Combinations that were left out, and why.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// How often the run was taken up again after it had been stopped.
    #[serde(default)]
    pub resumed: u32,
    /// One judged line for each combination of the grid, in the order of the grid.
    pub cells: Vec<Cell>,
    /// `ttft`: one line for each number of requests at once, in ascending order.
    #[serde(default)]
    pub ttft: Vec<TtftRow>,
    /// The judgement; `null` while the run goes on.
    pub verdict: Option<LoadVerdict>,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSpec {
    /// Context lengths in tokens, in the order typed.
    pub contexts: Vec<u64>,
    /// Numbers of sessions, ascending.
    pub sessions: Vec<u32>,
    /// Rounds: how often each combination is measured; with `auto_rounds` the most.
    pub rounds: u32,
    /// How the number of rounds follows from what they show; `null` when it was fixed.
    #[serde(default)]
    pub auto_rounds: Option<AutoRounds>,
    /// Questions to each session after its first turn.
    pub checks: u32,
    /// Tokens asked of the server in each turn.
    pub answer_tokens: u32,
    /// Seed of prompts, facts and the order of combinations.
    pub seed: u64,
    /// Pause between a session's turns.
    pub think_s: Seconds,
    /// Delay of each session's start behind the one before; 0 for all at once.
    pub stagger_s: Seconds,
    /// Side requests; `null` when there are none.
    pub side: Option<SideSpec>,
    /// Slowdown thresholds.
    pub thresholds: Thresholds,
    /// How many of the questions must be answered right.
    pub recall: RecallRule,
    /// Whether sizes were looked for by galloping and bisecting instead of a whole grid.
    pub search: bool,
    /// `fit`: how many sessions are expected to fit at every context length; `null` when no
    /// number was given.
    #[serde(default)]
    pub expect: Option<u32>,
    /// Longest wait for a first token.
    pub first_token_limit_s: Seconds,
    /// `ttft`: tokens of the one long prompt among the short ones; `null` without one.
    pub long_tokens: Option<u64>,
    /// `ttft`: whether all prompts begin alike.
    pub shared_prefix: bool,
    /// Whether the server was brought back to a known state before each combination.
    #[serde(default)]
    pub reset: bool,
}

/// Short requests beside the sessions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideSpec {
    /// Tokens of each prompt.
    pub prompt_tokens: u64,
    /// Requests a second while warm turns run; 0 for none then.
    pub warm_rate_per_s: f64,
    /// Requests sent one after the other while first turns are being read, the first of them just
    /// after the reading began.
    pub during_cold: u32,
}

/// How many questions must be answered right.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecallRule {
    /// At least as many as one session alone got right in this run, at the same context length.
    AsAlone,
    /// At least this share, 0 to 1, of what was asked, to the nearest percent.
    Share(f64),
    /// Every one.
    All,
    /// Recall is told and not judged.
    Off,
}

/// How prompts were brought to their size, by the server's own count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Tokens per filler line, as the server counts.
    pub tokens_per_line: f64,
    /// Tokens of one more word in a line, as the server counts.
    #[serde(default)]
    pub tokens_per_word: f64,
    /// Tokens of an empty prompt's envelope, as the server counts.
    pub envelope_tokens: f64,
    /// Tokens of a line with a fact, as the server counts.
    #[serde(default)]
    pub tokens_per_fact: f64,
    /// Tokens that a later turn adds beside the answer before it: the question with its filler,
    /// and both messages' envelopes.
    #[serde(default)]
    pub tokens_per_question: f64,
    /// Whether the server takes the fields that fix the length of an answer (`ignore_eos`,
    /// `min_tokens`) and keeps to it. If not, answers end when the model ends them.
    #[serde(default)]
    pub fixed_output: bool,
}

/// One combination, measured once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// Round, from 1.
    pub round: u32,
    /// Context length asked for, in tokens.
    pub context_tokens: u64,
    /// Number of sessions.
    pub sessions: u32,
    /// How long the rig waited for the server to be idle before.
    pub idle_wait_s: Option<Seconds>,
    /// How long it took to bring the server back to a known state before; `null` when that was not
    /// asked for. On the wall clock.
    #[serde(default)]
    pub reset_s: Option<Seconds>,
    /// How it was known that the server was idle.
    #[serde(default)]
    pub idle_by: Option<IdleBy>,
    /// Last session's first byte sent minus the first one's, less what was staggered on purpose.
    pub start_skew_s: Option<Seconds>,
    /// From the first warm turn's start to the last one's end.
    pub warm_span_s: Option<Seconds>,
    /// Each session.
    pub lanes: Vec<Lane>,
    /// Side requests, in order of sending.
    pub side: Vec<SideTurn>,
    /// What flashrig's own client did meanwhile.
    pub client: ClientHonesty,
    /// What the server said of itself meanwhile.
    #[serde(rename = "told")]
    pub reported: ServerReported,
    /// What was seen of the server meanwhile; `null` when nothing was.
    #[serde(default)]
    pub watched: Option<Box<Watched>>,
    /// Why the combination ended before its time.
    pub stopped: Option<CellStop>,
}

impl Measured {
    /// A combination of which nothing is known yet.
    pub fn nothing(round: u32, context_tokens: u64, sessions: u32) -> Self {
        Self {
            round,
            context_tokens,
            sessions,
            idle_wait_s: None,
            reset_s: None,
            idle_by: None,
            start_skew_s: None,
            warm_span_s: None,
            lanes: Vec::new(),
            side: Vec::new(),
            client: ClientHonesty::default(),
            reported: ServerReported::default(),
            watched: None,
            stopped: None,
        }
    }

    /// How long it took until the server was idle, on the wall clock, and how that was known.
    pub fn was_idle(&mut self, waited: std::time::Duration, by: IdleBy, speed: f64) {
        self.idle_wait_s = Some(Seconds(waited.as_secs_f64() * speed));
        self.idle_by = Some(by);
    }

    /// What was seen of the server.
    pub fn was_watched(&mut self, watched: Option<Box<Watched>>) {
        if let Some(seen) = &watched {
            self.reported = ServerReported {
                refused: seen.refused.metrics.or(seen.refused.log),
                peak_memory_bytes: seen.peak_memory_bytes,
            };
        }
        self.watched = watched;
    }
}

/// A combination that was left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Round, from 1; `null` when it was left out of all.
    pub round: Option<u32>,
    /// Context length in tokens.
    pub context_tokens: u64,
    /// Number of sessions.
    pub sessions: u32,
    /// Why.
    pub reason: LeftOutReason,
}

/// One synthetic session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lane {
    /// Name, unique in the combination: `s1`, `s2`, …
    pub id: String,
    /// Turns in order; the first one is cold. A failed turn is one, and the last.
    pub turns: Vec<Turn>,
}

/// One turn of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// From 0, which is the cold one.
    pub index: u32,
    /// When it was sent, since the start of the run, on the wall clock.
    pub sent_at_s: Seconds,
    /// From the request's sending to the end of the answer.
    pub wall_s: Option<Seconds>,
    /// From the request's sending to the first token of any kind.
    pub ttft_s: Option<Seconds>,
    /// From the first token to the last.
    pub decode_s: Option<Seconds>,
    /// Prompt tokens by the server's count.
    pub input_tokens: Option<u64>,
    /// Of them cached.
    pub cached_tokens: Option<u64>,
    /// Tokens generated, by the server's count.
    pub output_tokens: Option<u64>,
    /// Model name in the answer; `null` when it names none.
    #[serde(default)]
    pub answered_model: Option<String>,
    /// The fact asked for; `null` when none was.
    pub asked: Option<String>,
    /// Whether the answer has it; `null` when nothing was asked or no answer came.
    pub right: Option<bool>,
    /// How the request ended.
    #[serde(rename = "end", alias = "outcome")]
    pub outcome: Outcome,
    /// Why it was refused, when it was.
    pub refusal: Option<RefusalKind>,
    /// The server's words.
    pub error: Option<ErrorDetail>,
}

/// One side request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideTurn {
    /// Whether it was sent while first turns were being read.
    pub during_cold: bool,
    /// From its sending to the end of its answer; `null` when it got none.
    pub wall_s: Option<Seconds>,
    /// From its sending to its first token.
    pub ttft_s: Option<Seconds>,
    /// How it ended.
    #[serde(rename = "end", alias = "outcome")]
    pub outcome: Outcome,
    /// The server's words when it failed.
    pub error: Option<ErrorDetail>,
}

/// What flashrig's own client did: whether the figures are the server's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientHonesty {
    /// How late the client's own event loop was; wall milliseconds.
    pub lag_ms: Option<RigLag>,
    /// The largest number of requests that were really open at one time.
    pub max_in_flight: Option<u32>,
    /// CPU time of the client's process; `null` when an embedded server shares it.
    pub cpu_s: Option<Seconds>,
    /// Share of one processor used by the client's process over the span; `null` when an embedded server shares it.
    pub cpu_share: Option<f64>,
    /// Whether the client was the bottleneck: the figures are then not the server's.
    pub bottleneck: bool,
}

/// What the server said of itself during a combination. Unknown is `null`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerReported {
    /// Requests that it refused, by its metrics or log.
    pub refused: Option<u64>,
    /// Highest memory in use, in bytes.
    pub peak_memory_bytes: Option<u64>,
}

/// Why a combination ended before its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellStop {
    /// What happened.
    pub kind: StopKind,
    /// Why, with session, turn and the server's own words.
    #[serde(rename = "words")]
    pub reason: CellStopReason,
}

/// What ended a combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopKind {
    /// The server refused a request.
    Refused,
    /// The server accepts but gives no first token within the limit.
    Stalled,
    /// The server failed: error, broken stream, unreachable.
    Failed,
    /// What it answers cannot be measured (no stream, no usage, no HTTP of a dialect).
    Unmeasurable,
    /// Ctrl-C.
    Interrupted,
}
