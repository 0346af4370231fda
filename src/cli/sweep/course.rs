//! Progress of `sweep`: a line for each measurement, and how much time is left.

use std::time::Duration;

use crate::cli::progress::Progress;
use crate::cli::terminal::spinner;
use flashrig_clock::Stamp;
use flashrig_config::{format_rough, format_seconds};
use flashrig_record::{Sweep, SweepWhat, Unit, UnitOutcome};
use flashrig_report::sweep_left;

/// How far the sweep got, once it began.
#[derive(Default)]
pub struct Course(Option<Shown>);

impl Progress<SweepWhat> for Course {
    fn fact(&mut self, what: &SweepWhat, now: Stamp) -> Option<String> {
        match (what, &mut self.0) {
            (SweepWhat::SweepStarted { run }, shown) => {
                *shown = Some(Shown::new((**run).clone()));
                None
            }
            (SweepWhat::UnitStarted { unit }, Some(shown)) => {
                shown.since = Some(now);
                Some(shown.begins(unit.round, unit.combination))
            }
            (SweepWhat::UnitFinished { unit }, Some(shown)) => {
                shown.since = None;
                Some(shown.ended(unit))
            }
            _ => None,
        }
    }

    fn live(&self, now: Stamp) -> Vec<String> {
        let since = self.0.as_ref().and_then(|shown| shown.since);
        let lines = since.iter();
        lines
            .map(|&since| {
                let took = Duration::from_secs(now.since(since).as_secs());
                format!("  {} measuring for {}", spinner(now), format_rough(took))
            })
            .collect()
    }
}

/// The sweep so far.
struct Shown {
    sweep: Sweep,
    planned: usize,
    done: usize,
    took_s: f64,
    /// When the current measurement began.
    since: Option<Stamp>,
}

impl Shown {
    fn new(sweep: Sweep) -> Self {
        Self {
            planned: sweep.spec.combinations.len() * sweep.spec.rounds as usize,
            done: sweep.units.len(),
            took_s: sweep.units.iter().map(|unit| unit.took_s.0).sum(),
            since: None,
            sweep,
        }
    }

    fn begins(&self, round: u32, combination: u32) -> String {
        let settings = self.sweep.spec.sets(combination).join(", ");
        format!(
            "{} of {}, round {round}: {settings}",
            self.done + 1,
            self.planned
        )
    }

    fn ended(&mut self, unit: &Unit) -> String {
        self.done += 1;
        self.took_s += unit.took_s.0;
        let left = self.planned.saturating_sub(self.done);
        #[expect(clippy::cast_precision_loss, reason = "at most a few hundred thousand")]
        let seconds = self.took_s / self.done as f64 * left as f64;
        let what = match unit.outcome {
            UnitOutcome::Measured => {
                format!("measured in {}", format_seconds(unit.took_s.0))
            }
            UnitOutcome::Failed => {
                let failure = unit.failure.as_ref();
                let why = failure.map_or_else(String::new, |failure| format!(": {failure}"));
                format!("failed{why}")
            }
        };
        format!("  {what}; {}", sweep_left(left, seconds))
    }
}
