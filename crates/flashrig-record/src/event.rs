//! What `run` tells while it goes on. The stored ones are lines of `events.jsonl`; folding them
//! gives `run.json`, so that a run that was killed can still be told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Arm, ArmKind, InvalidReason, Placed, Run, RunState, ServerLife, Session, StoppedBecause,
    Verdict,
};
use flashrig_clock::Seconds;

/// A line of `events.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Seconds since the start of the run.
    pub at_s: Seconds,
    /// What happened.
    #[serde(rename = "what")]
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// Everything is prepared; the record so far, without rounds.
    RunStarted {
        /// The record.
        run: Box<Run>,
    },
    /// An arm begins.
    ArmStarted {
        /// Round, from 1; 0 is the unscored warm-up.
        round: u32,
        /// Arm.
        arm: ArmKind,
    },
    /// A session was let go.
    SessionStarted {
        /// Round.
        round: u32,
        /// Arm.
        arm: ArmKind,
        /// Session name.
        session: String,
    },
    /// A session's agent is gone; not verified yet.
    SessionEnded {
        /// Round.
        round: u32,
        /// Arm.
        arm: ArmKind,
        /// What is known of it.
        session: Box<Session>,
    },
    /// A session was verified; replaces the record of `session_ended`.
    SessionVerified {
        /// Round.
        round: u32,
        /// Arm.
        arm: ArmKind,
        /// The whole record.
        session: Box<Session>,
    },
    /// An arm ended, every session verified.
    ArmFinished {
        /// Round.
        round: u32,
        /// The arm, with its sessions.
        arm: Box<Arm>,
    },
    /// Something became of the server.
    ServerLife {
        /// What.
        life: Box<ServerLife>,
    },
    /// A round was judged.
    RoundFinished {
        /// Round.
        round: u32,
        /// Whether its times may be compared.
        valid: bool,
        /// Why not.
        invalid_reasons: Vec<Placed<InvalidReason>>,
    },
    /// The run ended.
    RunFinished {
        /// How.
        state: RunState,
        /// Why it stopped early.
        stopped_because: Option<StoppedBecause>,
        /// The rig's CPU time.
        rig_cpu_s: Option<Seconds>,
        /// The judgement.
        verdict: Option<Box<Verdict>>,
    },
}

impl From<ServerLife> for What {
    fn from(life: ServerLife) -> Self {
        Self::ServerLife {
            life: Box::new(life),
        }
    }
}
