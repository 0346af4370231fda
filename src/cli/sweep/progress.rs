//! What is shown while a sweep goes on.

use tokio::sync::mpsc;

use crate::cli::console::Console;
use crate::run::Live;
use flashrig_config::format_seconds;
use flashrig_record::{Sweep, SweepWhat, Unit, UnitOutcome};
use flashrig_report::sweep_left;

/// Shows what is told until nobody tells any more.
pub async fn show(console: Console, mut reported: mpsc::UnboundedReceiver<Live<SweepWhat>>) {
    let mut shown: Option<Shown> = None;
    while let Some(live) = reported.recv().await {
        match live {
            Live::Note(text) => console.note(&text),
            Live::Fact(what) => match (*what, &mut shown) {
                (SweepWhat::SweepStarted { run }, shown) => *shown = Some(Shown::new(*run)),
                (SweepWhat::UnitStarted { unit }, Some(shown)) => {
                    console.note(&shown.begins(unit.round, unit.combination));
                }
                (SweepWhat::UnitFinished { unit }, Some(shown)) => {
                    console.note(&shown.ended(&unit));
                }
                _ => {}
            },
            Live::Session { .. } => {}
        }
    }
}

/// The sweep so far.
struct Shown {
    sweep: Sweep,
    planned: usize,
    done: usize,
    took_s: f64,
}

impl Shown {
    fn new(sweep: Sweep) -> Self {
        Self {
            planned: sweep.spec.combinations.len() * sweep.spec.rounds as usize,
            done: sweep.units.len(),
            took_s: sweep.units.iter().map(|unit| unit.took_s.0).sum(),
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
                let message = unit.message.as_deref().unwrap_or("for an unknown reason");
                format!("failed: {message}")
            }
        };
        format!("  {what}; {}", sweep_left(left, seconds))
    }
}
