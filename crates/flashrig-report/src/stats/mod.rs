//! Small-sample statistics of ratios. Pure.
//!
//! Everything that compares rests on this: the geometric mean of ratios that are paired by round, and
//! one-sided bounds of it. `docs/STATISTICS.md` derives them, and `cargo bench --bench verdicts`
//! counts how often their claims are wrong where the truth is known.

mod bounds;
mod ratio;

pub use bounds::{CONFIDENCE, Looks, at_least, at_most, bounds_after, lower_bound, reads_high_by};
pub use ratio::{geometric_mean, ratio};

/// The median; `None` for an empty slice. Values must be finite.
pub fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    Some(if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts of rounds are small")]
fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_an_even_number_of_values_is_the_mean_of_the_middle_two() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
