//! What `fit` and `ttft` tell while they go on: the lines of their `events.jsonl`, whose fold is
//! their record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Calibration, Cell, LeftOut, LoadRun, LoadVerdict, Measured, RunState, ServerLife,
    StoppedBecause, TtftRow,
};
use flashrig_clock::Seconds;

/// A line of `events.jsonl` of `fit` and `ttft`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadEvent {
    /// Seconds since the start of the run.
    pub at_s: Seconds,
    /// What happened.
    pub what: LoadWhat,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "the large event is the last of a run, and held once"
)]
pub enum LoadWhat {
    /// Everything is prepared; the record so far.
    RunStarted {
        /// The record.
        run: Box<LoadRun>,
    },
    /// The run was taken up again.
    RunResumed {
        /// The command line.
        command_line: Vec<String>,
    },
    /// Prompts are calibrated.
    Calibrated {
        /// By so much.
        calibration: Calibration,
    },
    /// A combination begins.
    CellStarted {
        /// Round.
        round: u32,
        /// Context length in tokens.
        context_tokens: u64,
        /// Number of sessions.
        sessions: u32,
    },
    /// A combination was measured.
    CellMeasured {
        /// All of it.
        measured: Box<Measured>,
    },
    /// Something became of the server.
    ServerLife {
        /// What.
        life: Box<ServerLife>,
    },
    /// A combination was left out.
    CellLeftOut {
        /// Which, and why.
        left_out: LeftOut,
    },
    /// The run ended.
    RunFinished {
        /// How.
        state: RunState,
        /// Why it stopped early.
        stopped_because: Option<StoppedBecause>,
        /// The rig's CPU time.
        rig_cpu_s: Option<Seconds>,
        /// All combinations, judged.
        cells: Vec<Cell>,
        /// `ttft`: a line for each number of requests at once.
        #[serde(default)]
        ttft: Vec<TtftRow>,
        /// The judgement.
        verdict: Option<Box<LoadVerdict>>,
    },
}

impl From<ServerLife> for LoadWhat {
    fn from(life: ServerLife) -> Self {
        Self::ServerLife {
            life: Box::new(life),
        }
    }
}
