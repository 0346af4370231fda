//! Judgement of a sweep: from the records of its units to a line for each combination and to the
//! best of them, with its uncertainty. Pure.

mod best;
mod message;
mod rows;
mod unit;

pub use best::verdict;
pub use message::{factor, figure_label, row_name};
pub use rows::rows;
pub use unit::{Reading, of_load, of_pair};

use flashrig_record::{Sweep, SweepRow, Unit, UnitOutcome};

/// How many units of a sweep could be measured.
pub fn measured(sweep: &Sweep) -> usize {
    let is_measured = |unit: &&Unit| unit.outcome == UnitOutcome::Measured;
    sweep.units.iter().filter(is_measured).count()
}

/// A sweep as it stands, judged: also one that was killed.
pub fn judged(sweep: &Sweep) -> Sweep {
    let mut sweep = sweep.clone();
    if sweep.verdict.is_none() {
        let rows: Vec<SweepRow> = rows(&sweep);
        sweep.verdict = Some(verdict(&sweep, &rows));
        sweep.rows = rows;
    }
    sweep
}

#[cfg(test)]
pub(crate) mod tests;
