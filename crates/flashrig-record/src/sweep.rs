//! `sweep`: one command measured under several settings of a server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Host, NamedFile, ProofSource, Ratio, Rig, RowFault, RunState, SettingProof, StoppedBecause,
    SweepWarning, UnitFailure, UnitFault,
};
use flashrig_clock::Seconds;

/// The version of the format of a sweep's `run.json`.
pub const SWEEP_SCHEMA: &str = "flashrig.sweep/1";

/// `run.json` of `sweep`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// Format and its version: `flashrig.sweep/1`.
    pub schema: String,
    /// Name of the results folder.
    pub id: String,
    /// `sweep`.
    pub command: String,
    /// The command line as typed, without secrets.
    pub command_line: Vec<String>,
    /// Wall time of the start, RFC 3339, UTC.
    pub started_at: String,
    /// How far the sweep got.
    pub state: RunState,
    /// Why it stopped early, when it did.
    pub stopped_because: Option<StoppedBecause>,
    /// The measuring instrument.
    pub rig: Rig,
    /// The machine it ran on.
    pub host: Host,
    /// What was asked for.
    pub spec: SweepSpec,
    /// Everything measured, in the order in which it was; never dropped, never overwritten.
    pub units: Vec<Unit>,
    /// The unit that is being measured.
    pub open: Option<UnitBegun>,
    /// Units that were cut short, by Ctrl-C or a kill; what they left is kept in their folders.
    pub cut_short: Vec<UnitBegun>,
    /// How often the sweep was taken up again after it had been stopped.
    pub resumed: u32,
    /// A judged line for each combination, in the order of the plan; empty while the sweep goes on.
    pub rows: Vec<SweepRow>,
    /// The judgement; `null` while the sweep goes on.
    pub verdict: Option<SweepVerdict>,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepSpec {
    /// The server's profile.
    pub server: String,
    /// SHA-256 of the profile's file, in hex.
    pub profile_sha256: String,
    /// SHA-256 of flashrig's own program, in hex.
    pub rig_sha256: String,
    /// The server's program and the files that its settings name, each once; empty for a server
    /// that is no program of its own.
    pub server_files: Vec<NamedFile>,
    /// Name of the command that is measured: `pair`, `fit` or `ttft`.
    pub measures: String,
    /// The whole command, its name first, as typed after `--`.
    pub command: Vec<String>,
    /// Options that the sweep adds to it, beside the server, its settings and where results go.
    pub added: Vec<String>,
    /// The settings and their values, in the order typed.
    pub settings: Vec<SweepSetting>,
    /// Whether each value is tried alone, beside the first values of all other settings, instead
    /// of the full grid.
    pub one_at_a_time: bool,
    /// The combinations: the first is what all others are compared with. Each has one value for
    /// every setting, in their order.
    pub combinations: Vec<Vec<String>>,
    /// How often each combination is measured.
    pub rounds: u32,
    /// Seed of the order.
    pub seed: u64,
}

impl SweepSpec {
    /// The settings of a combination (from 1) as `KEY=VALUE`; empty for one that is not there.
    pub fn sets(&self, combination: u32) -> Vec<String> {
        let index = (combination as usize).checked_sub(1);
        let values = index.and_then(|i| self.combinations.get(i));
        self.settings
            .iter()
            .zip(values.into_iter().flatten())
            .map(|(setting, value)| format!("{}={value}", setting.name))
            .collect()
    }
}

/// A setting of the server and the values that are tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SweepSetting {
    /// Its name.
    pub name: String,
    /// The values, as typed.
    pub values: Vec<String>,
}

/// One combination in one round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnitBegun {
    /// Round, from 1.
    pub round: u32,
    /// Combination, from 1.
    pub combination: u32,
    /// Its folder, below the sweep's: what the command printed, and its own results folder.
    pub folder: String,
}

/// One combination, measured once by a run of the command with a server of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unit {
    /// Round, from 1.
    pub round: u32,
    /// Combination, from 1.
    pub combination: u32,
    /// Its folder, below the sweep's.
    pub folder: String,
    /// The results folder of the command's run, below the sweep's; `null` when it made none.
    pub run: Option<String>,
    /// From the start of the command's process to its end.
    pub took_s: Seconds,
    /// Its exit code; `null` when it did not exit by itself.
    pub exit_code: Option<i32>,
    /// What it came to.
    pub outcome: UnitOutcome,
    /// Why nothing could be measured, in the command's own words; `null` otherwise.
    #[serde(rename = "words")]
    pub failure: Option<UnitFailure>,
    /// What speaks against taking this unit's figures for a success, such as tasks that were not
    /// done; empty when nothing does.
    pub faults: Vec<UnitFault>,
    /// Whether flashrig's own client was the bottleneck, so that figures are not the server's;
    /// `null` when nothing tells.
    pub client_bottleneck: Option<bool>,
    /// What was measured.
    pub figures: Vec<Figure>,
    /// The server that answered; `null` when none did.
    pub server: Option<UnitServer>,
}

/// What a unit came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnitOutcome {
    /// The command ran to its end, whatever its answer.
    Measured,
    /// It did not.
    Failed,
}

/// The server of a unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnitServer {
    /// Profile name, with what was changed.
    pub name: String,
    /// Whether it is flashrig's own simulated server.
    pub simulated: bool,
    /// Time factor of a simulated server.
    pub speed: Option<f64>,
    /// Version that it told; `null` when it told none.
    pub version: Option<String>,
    /// The model that was asked for.
    pub model: String,
    /// Context length in tokens.
    pub context_tokens: Option<u64>,
    /// SHA-256 of its program, in hex; `null` unless flashrig started it as a process.
    pub program_sha256: Option<String>,
    /// SHA-256 of the model's file, in hex.
    pub model_sha256: Option<String>,
    /// From its start to its being ready; `null` unless flashrig started it as a process.
    pub ready_after_s: Option<Seconds>,
    /// The most memory in use, in bytes; `null` when nobody could tell.
    pub peak_memory_bytes: Option<u64>,
    /// Who told.
    pub peak_memory_by: Option<MemoryBy>,
    /// Which of its settings took effect, as far as that could be told.
    pub proofs: Vec<SettingProof>,
}

/// Who told how much memory was in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryBy {
    /// The system: resident memory of the server's process tree.
    System,
    /// The server itself, in its metrics.
    Server,
}

/// One figure of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Which.
    #[serde(flatten)]
    pub of: FigureOf,
    /// Its value: seconds, a ratio, tokens a second or a count; `null` when it is unknown.
    pub value: Option<f64>,
    /// Whether all that it was measured on was done as asked: no task left undone, no request
    /// refused or failed, no fact forgotten beyond what the command allows.
    pub sound: bool,
}

/// Which figure.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct FigureOf {
    /// Context length (`fit`) in tokens; `null` where there is none to tell.
    pub context_tokens: Option<u64>,
    /// Sessions (`fit`) or requests at once (`ttft`); `null` where there is none to tell.
    pub sessions: Option<u32>,
    /// What it is.
    pub kind: FigureKind,
}

/// What a figure is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FigureKind {
    /// `pair`: makespan together, in seconds.
    TogetherS,
    /// `pair`: the sum of walls back to back, in seconds.
    BackToBackS,
    /// `pair`: the first over the second.
    TogetherOverBackToBack,
    /// `pair`, `fit`: the worst session's slowdown.
    WorstSlowdown,
    /// `pair`: share of the sessions, over all arms and rounds, that are done; 0 to 1.
    DoneShare,
    /// `fit`: the largest number of sessions that passes at this context length.
    Fits,
    /// `fit`: median warm turn, in seconds.
    WarmTurnS,
    /// `fit`: median first-token time of cold prompts, in seconds.
    ColdTtftS,
    /// `fit`: 95th percentile of side requests' walls, in seconds.
    SideP95S,
    /// 95th percentile of the time to the first token of side requests, in seconds.
    SideTtftP95S,
    /// `ttft`: median first-token time, in seconds.
    TtftMedianS,
    /// `ttft`: worst first-token time, in seconds.
    TtftWorstS,
    /// `ttft`, `fit`: tokens generated a second by all together.
    TokensPerS,
}

impl FigureKind {
    /// Whether the figure over that of another combination means something.
    pub fn has_ratio(self) -> bool {
        !matches!(self, Self::DoneShare | Self::Fits)
    }
}

/// One combination over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepRow {
    /// Combination, from 1.
    pub combination: u32,
    /// Its settings, as `KEY=VALUE`.
    pub settings: Vec<String>,
    /// Rounds in which it was measured.
    pub measured: u32,
    /// Rounds in which it failed.
    pub failed: u32,
    /// The figures.
    pub figures: Vec<RowFigure>,
    /// The most memory in use in any round, in bytes; `null` when nobody could tell.
    pub peak_memory_bytes: Option<u64>,
    /// Who told.
    pub peak_memory_by: Option<MemoryBy>,
    /// From the server's start to its being ready: median over rounds.
    pub ready_after_s: Option<Seconds>,
    /// Whether its settings took effect, in their order.
    pub proofs: Vec<RowProof>,
    /// Why it cannot be the best, or why figures are missing.
    pub faults: Vec<RowFault>,
}

/// A figure of a combination.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RowFigure {
    /// Which.
    #[serde(flatten)]
    pub of: FigureOf,
    /// Median over the rounds in which it is known.
    pub value: Option<f64>,
    /// Whether it is sound in all rounds.
    pub sound: bool,
    /// The figure over that of the first combination, paired by round.
    pub of_first: Ratio,
}

/// Whether a setting took effect, over all rounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RowProof {
    /// The setting.
    pub name: String,
    /// What is known.
    pub proven: Proven,
    /// The value that the server reported when that is another one; `null` otherwise.
    #[serde(default)]
    pub reported: Option<String>,
    /// Where the value was read; `null` when the server reported none.
    pub by: Option<ProofSource>,
}

/// Whether a setting took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Proven {
    /// The server told the value that it was given, in every round.
    Proven,
    /// Nobody told.
    NotProven,
    /// The server told another value.
    DidNothing,
}

/// The judgement over a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepVerdict {
    /// The figure by which combinations are ranked; `null` when none could be.
    pub by: Option<FigureOf>,
    /// The best combination (from 1); `null` when there is none.
    pub best: Option<u32>,
    /// Those that cannot be told apart from the best (from 1).
    pub equals: Vec<u32>,
    /// How many rounds in all would tell the best from those, by the spread seen so far; `null`
    /// when that cannot be told or is not needed.
    pub rounds_needed: Option<u32>,
    /// The answer in words, a sentence each.
    pub answer: Vec<String>,
    /// What a reader should know before trusting the figures.
    pub warnings: Vec<SweepWarning>,
}
