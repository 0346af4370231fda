//! Summarises how much slower three rounds were together than one after the other.

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use flashrig_report::stats::{median, ratio};

fn main() {
    let per_round = [1.42, 1.51, 1.47];
    let summary = ratio(&per_round);
    println!("median {:?} of {} rounds", median(&per_round), summary.n);
    println!(
        "{:.2}x, 95% interval {:?}",
        summary.value.unwrap_or(f64::NAN),
        summary.ci95
    );
    // One round has no interval: unknown is not zero.
    println!("one round alone: {:?}", ratio(&per_round[..1]).ci95);
}
