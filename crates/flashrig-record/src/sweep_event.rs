//! What a sweep tells while it goes on: the lines of its `events.jsonl`, and their fold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kept::as_json;
use super::{Kept, RunState, StoppedBecause, Sweep, SweepRow, SweepVerdict, Unit, UnitBegun};
use flashrig_clock::Seconds;

/// A line of `events.jsonl` of `sweep`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepEvent {
    /// Seconds since the start of the sweep.
    pub at_s: Seconds,
    /// What happened.
    pub what: SweepWhat,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "the large event is the last of a run, and held once"
)]
pub enum SweepWhat {
    /// Everything is validated; the record so far.
    SweepStarted {
        /// The record.
        run: Box<Sweep>,
    },
    /// The sweep was taken up again.
    SweepResumed {
        /// The command line.
        command_line: Vec<String>,
    },
    /// A unit begins.
    UnitStarted {
        /// Which.
        unit: UnitBegun,
    },
    /// A unit came to its end, measured or failed.
    UnitFinished {
        /// All of it.
        unit: Box<Unit>,
    },
    /// A unit was stopped before its end; it is measured anew when the sweep is taken up again.
    UnitCutShort {
        /// Which.
        unit: UnitBegun,
    },
    /// The sweep ended.
    SweepFinished {
        /// How.
        state: RunState,
        /// Why it stopped early.
        stopped_because: Option<StoppedBecause>,
        /// The rig's CPU time, without that of the units.
        rig_cpu_s: Option<Seconds>,
        /// All combinations, judged.
        rows: Vec<SweepRow>,
        /// The judgement.
        verdict: Option<Box<SweepVerdict>>,
    },
}

impl Kept for Sweep {
    type Event = SweepEvent;
    type What = SweepWhat;
    const FOLDERS: &'static [&'static str] = &["runs"];
    const REQUESTS: bool = false;

    fn event(at_s: Seconds, what: SweepWhat) -> SweepEvent {
        SweepEvent { at_s, what }
    }

    as_json!();

    fn at(event: &SweepEvent) -> Seconds {
        event.at_s
    }

    fn apply(run: &mut Option<Self>, event: SweepEvent) {
        let Some(record) = run else {
            if let SweepWhat::SweepStarted { run: started } = event.what {
                *run = Some(*started);
            }
            return;
        };
        match event.what {
            SweepWhat::SweepStarted { run: started } => *record = *started,
            // What was judged is judged again at the end, over everything.
            SweepWhat::SweepResumed { .. } => {
                record.state = RunState::Unfinished;
                record.stopped_because = None;
                record.rows.clear();
                record.verdict = None;
                record.resumed += 1;
                record.cut_short.extend(record.open.take());
            }
            SweepWhat::UnitStarted { unit } => record.open = Some(unit),
            SweepWhat::UnitFinished { unit } => {
                record.open = None;
                record.units.push(*unit);
            }
            SweepWhat::UnitCutShort { unit } => {
                record.open = None;
                record.cut_short.push(unit);
            }
            SweepWhat::SweepFinished {
                state,
                stopped_because,
                rig_cpu_s,
                rows,
                verdict,
            } => {
                record.state = state;
                record.stopped_because = stopped_because;
                record.rig.cpu_s = rig_cpu_s;
                record.rows = rows;
                record.verdict = verdict.map(|v| *v);
            }
        }
    }
}
