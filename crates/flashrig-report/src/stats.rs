//! Small-sample statistics of ratios. Pure.

use flashrig_record::Ratio;

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

/// Summarises one ratio per round: the median, and Student's t interval of the mean logarithm.
///
/// Rounds whose ratio is not a positive finite number are left out, and do not count in `n`.
pub fn ratio(per_round: &[f64]) -> Ratio {
    let usable: Vec<f64> = per_round
        .iter()
        .copied()
        .filter(|r| r.is_finite() && *r > 0.0)
        .collect();
    Ratio {
        value: median(&usable),
        ci95: log_interval(&usable),
        n: u32::try_from(usable.len()).unwrap_or(u32::MAX),
    }
}

/// 95% interval of a positive quantity on the logarithmic scale; `None` below two values.
fn log_interval(values: &[f64]) -> Option<[f64; 2]> {
    let (mean, deviation) = log_moments(values)?;
    let half = t_quantile(values.len() - 1) * deviation / count(values.len()).sqrt();
    Some([(mean - half).exp(), (mean + half).exp()])
}

/// Mean and standard deviation (n - 1) of the logarithms; `None` below two values.
fn log_moments(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
    let n = count(logs.len());
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some((mean, variance.sqrt()))
}

/// How many rounds in all would bring the interval clear of every threshold, if mean and spread
/// stayed as they are. `None` when that takes more than 200 rounds, or cannot be told.
pub fn rounds_needed(per_round: &[f64], thresholds: &[f64]) -> Option<u32> {
    let (mean, deviation) = log_moments(per_round)?;
    let distance = thresholds
        .iter()
        .map(|t| (mean - t.ln()).abs())
        .fold(f64::INFINITY, f64::min);
    (per_round.len()..=200)
        .find(|n| t_quantile(n - 1) * deviation / count(*n).sqrt() < distance)
        .and_then(|n| u32::try_from(n).ok())
}

/// The 97.5% quantile of Student's t distribution: from the table up to 30 degrees of freedom,
/// beyond by the Cornish-Fisher expansion (Abramowitz and Stegun 26.7.5), exact to 1e-4 there.
fn t_quantile(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010,
        2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739,
        2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
    ];
    const Z: f64 = 1.959_964;
    match degrees {
        0 => f64::INFINITY,
        1..=30 => TABLE[degrees - 1],
        _ => {
            let v = count(degrees);
            Z + (Z.powi(3) + Z) / (4.0 * v)
                + (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / (96.0 * v * v)
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of rounds are small")]
fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64, tolerance: f64) {
        assert!(
            (a - b).abs() <= tolerance,
            "{a} is not within {tolerance} of {b}"
        );
    }

    #[test]
    fn median_of_an_even_number_of_values_is_the_mean_of_the_middle_two() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn one_round_has_a_value_and_no_interval() {
        let r = ratio(&[1.4]);
        assert_eq!((r.value, r.ci95, r.n), (Some(1.4), None, 1));
    }

    /// Worked by hand: logs of 1.2, 1.5, 1.8 have mean 0.391862 and standard deviation 0.203147;
    /// t(2) = 4.3027, so the interval is exp(0.391862 -+ 0.504644).
    #[test]
    fn interval_is_students_t_on_the_logarithms() {
        let [low, high] = ratio(&[1.2, 1.5, 1.8]).ci95.unwrap();
        near(low, 0.8933, 2e-3);
        near(high, 2.4512, 4e-3);
    }

    #[test]
    fn interval_of_inverted_ratios_is_the_inverted_interval() {
        let values = [1.1, 1.7, 1.3, 1.25];
        let inverted: Vec<f64> = values.iter().map(|v| 1.0 / v).collect();
        let (a, b) = (ratio(&values).ci95.unwrap(), ratio(&inverted).ci95.unwrap());
        near(a[0], 1.0 / b[1], 1e-12);
        near(a[1], 1.0 / b[0], 1e-12);
    }

    #[test]
    fn quantile_beyond_the_table_continues_it() {
        near(t_quantile(31), 2.0395, 2e-4);
        near(t_quantile(60), 2.0003, 2e-4);
        near(t_quantile(1000), 1.9623, 2e-4);
    }

    #[test]
    fn more_rounds_are_named_when_the_spread_allows_and_none_when_the_mean_sits_on_a_threshold() {
        let needed = rounds_needed(&[1.40, 1.70, 1.75], &[1.5, 2.0]).unwrap();
        assert!(needed > 3, "{needed}");
        let on_the_line = [1.5 * 0.9, 1.5 / 0.9];
        assert_eq!(rounds_needed(&on_the_line, &[1.5, 2.0]), None);
    }

    #[test]
    fn a_round_without_a_ratio_does_not_count() {
        assert_eq!(ratio(&[1.0, f64::NAN, 0.0, f64::INFINITY]).n, 1);
    }
}
