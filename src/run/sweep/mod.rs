//! A sweep: units one after the other, each a run of the measured command with a server of its
//! own. What a unit measures is in its own results folder; here it is started, ended and recorded.

mod proof;
mod unit;

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::plan::sweep::{Step, steps};
use crate::run::shared::instrument::own_cpu;
use crate::run::{Bus, Stop};
use crate::store::StoreError;
use flashrig_record::{RunState, Sweep, SweepWhat, UnitBegun};
use flashrig_report::judge::sweep::{rows, verdict};
use flashrig_server::LogPattern;

pub use unit::command_line;

/// All that a sweep needs.
#[derive(Debug)]
pub struct SweepContext {
    /// This binary: it measures, and supervises itself doing so.
    pub program: PathBuf,
    /// The measured command, with the secrets that the record leaves out.
    pub command: Vec<String>,
    /// The environment of the measured command: that of the sweep.
    pub env: Vec<(OsString, OsString)>,
    /// Where the measured command runs: where the sweep was started.
    pub dir: PathBuf,
    /// The sweep's results folder, as an absolute path.
    pub folder: PathBuf,
    /// What the server's log says, as patterns.
    pub log: Vec<LogPattern>,
    /// Where what happens is told.
    pub bus: Bus<Sweep>,
    /// The wish to stop.
    pub stop: Stop,
}

/// How a sweep begins.
#[derive(Debug)]
pub enum Begin {
    /// With a record of which nothing is measured yet.
    New(Box<Sweep>),
    /// Again, with what the store holds.
    Again {
        /// The command line.
        command_line: Vec<String>,
    },
}

/// A sweep that cannot go on. What was measured stays.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The results folder cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A unit's folder cannot be made.
    #[error("cannot make the folder {path}: {source}; free some space and go on with --resume")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Measures every unit that is not measured yet, and judges.
///
/// # Errors
/// The results folder cannot be written.
pub async fn execute(context: &SweepContext, begin: Begin) -> Result<Sweep, SweepError> {
    let bus = &context.bus;
    bus.fact(match begin {
        Begin::New(run) => SweepWhat::SweepStarted { run },
        Begin::Again { command_line } => SweepWhat::SweepResumed { command_line },
    })?;
    let begun = now(bus);
    let done: HashSet<Step> = begun
        .iter()
        .flat_map(|sweep| &sweep.units)
        .map(|unit| Step {
            round: unit.round,
            combination: unit.combination,
        })
        .collect();
    let spec = begun.map(|sweep| sweep.spec).ok_or_else(nothing_begun)?;
    let count = u32::try_from(spec.combinations.len()).unwrap_or(u32::MAX);
    let mut left: Vec<Step> = steps(count, spec.rounds, spec.seed);
    left.retain(|step| !done.contains(step));
    let mut finished = true;
    for step in left {
        if context.stop.is_set() {
            finished = false;
            break;
        }
        let begun = UnitBegun {
            round: step.round,
            combination: step.combination,
            folder: make_folder(context, step)?,
        };
        bus.fact(SweepWhat::UnitStarted {
            unit: begun.clone(),
        })?;
        if let Some(unit) = unit::measure(context, &spec, &begun).await {
            bus.fact(SweepWhat::UnitFinished {
                unit: Box::new(unit),
            })?;
        } else {
            bus.fact(SweepWhat::UnitCutShort { unit: begun })?;
            finished = false;
            break;
        }
    }
    let (state, stopped_because) = if finished {
        (RunState::Finished, None)
    } else {
        context.stop.ending(None)
    };
    let sweep = now(bus).ok_or_else(nothing_begun)?;
    let rows = rows(&sweep);
    let verdict = verdict(&sweep, &rows);
    bus.fact(SweepWhat::SweepFinished {
        state,
        stopped_because,
        rig_cpu_s: own_cpu(),
        rows,
        verdict: Some(Box::new(verdict)),
    })?;
    now(bus).ok_or_else(nothing_begun)
}

fn now(bus: &Bus<Sweep>) -> Option<Sweep> {
    bus.with(|store| store.run().cloned())
}

/// The first event of every sweep holds its record, so this does not come to pass.
fn nothing_begun() -> SweepError {
    SweepError::Folder {
        path: PathBuf::from("events.jsonl"),
        source: io::Error::other("the sweep has no record"),
    }
}

/// The unit's folder, with a number when an earlier attempt left one.
fn make_folder(context: &SweepContext, step: Step) -> Result<String, SweepError> {
    let name = format!("runs/r{}-c{}", step.round, step.combination);
    let mut folder = name.clone();
    let mut number = 2;
    loop {
        let path = context.folder.join(&folder);
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(folder),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && number < 1000 => {
                folder = format!("{name}-{number}");
                number += 1;
            }
            Err(source) => return Err(SweepError::Folder { path, source }),
        }
    }
}
