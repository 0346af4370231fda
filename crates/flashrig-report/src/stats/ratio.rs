//! The geometric mean of ratios, one for each round, and its two-sided interval.

use super::count;
use flashrig_record::Ratio;
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// Summarises one ratio per round: the geometric mean, and Student's t interval of the same mean of
/// logarithms.
///
/// Rounds whose ratio is not a positive finite number are left out, and do not count in `n`.
pub fn ratio(per_round: &[f64]) -> Ratio {
    let usable: Vec<f64> = per_round
        .iter()
        .copied()
        .filter(|r| r.is_finite() && *r > 0.0)
        .collect();
    Ratio {
        value: geometric_mean(&usable),
        ci95: Moments::of(&usable).map(|m| [m.bound(-1.0, 0.025), m.bound(1.0, 0.025)]),
        n: u32::try_from(usable.len()).unwrap_or(u32::MAX),
    }
}

/// The geometric mean of positive values; `None` for an empty slice.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    // Equal values come back as they are, free of rounding.
    match values {
        [] => None,
        [first, rest @ ..] if rest.iter().all(|v| v == first) => Some(*first),
        _ => Some((values.iter().map(|v| v.ln()).sum::<f64>() / count(values.len())).exp()),
    }
}

/// A geometric mean, and how far it scatters on the logarithmic scale.
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    /// The geometric mean.
    pub value: f64,
    /// The standard deviation of the logarithms (n - 1).
    pub deviation: f64,
    /// How many.
    pub n: usize,
}

impl Moments {
    /// Of positive values; `None` below two.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.len() < 2 {
            return None;
        }
        let value = geometric_mean(values)?;
        let mean = value.ln();
        // Equal values have no scatter, whatever rounding makes of their logarithms.
        let is_same = values.iter().all(|v| *v == value);
        let squares: f64 = values.iter().map(|v| (v.ln() - mean).powi(2)).sum();
        Some(Self {
            value,
            deviation: if is_same {
                0.0
            } else {
                (squares / count(values.len() - 1)).sqrt()
            },
            n: values.len(),
        })
    }

    /// The standard error of the mean of logarithms.
    pub fn error(&self) -> f64 {
        self.deviation / count(self.n).sqrt()
    }

    /// The bound of the geometric mean on one `side` (-1 below, 1 above) that is wrong with
    /// probability `alpha`.
    pub fn bound(&self, side: f64, alpha: f64) -> f64 {
        let error = self.error();
        if error == 0.0 {
            return self.value;
        }
        self.value * (side * t_quantile(self.n - 1, alpha) * error).exp()
    }
}

/// The value that Student's t exceeds with probability `alpha`, which is below one half; infinite
/// without a degree of freedom.
fn t_quantile(degrees: usize, alpha: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, count(degrees)) {
        Ok(t) => -t.inverse_cdf(alpha),
        Err(_) => f64::INFINITY,
    }
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
    fn the_value_lies_in_the_middle_of_its_own_interval_on_the_logarithmic_scale() {
        let nine = [1.48, 1.48, 1.48, 1.48, 1.48, 2.09, 2.09, 2.09, 2.09];
        let r = ratio(&nine);
        let [low, high] = r.ci95.unwrap();
        near(r.value.unwrap(), (low * high).sqrt(), 1e-9);
        near(r.value.unwrap(), 1.725, 1e-3);
    }

    #[test]
    fn interval_of_inverted_ratios_is_the_inverted_interval() {
        let values = [1.1, 1.7, 1.3, 1.25];
        let inverted: Vec<f64> = values.iter().map(|v| 1.0 / v).collect();
        let (a, b) = (ratio(&values), ratio(&inverted));
        near(a.value.unwrap(), 1.0 / b.value.unwrap(), 1e-12);
        let (a, b) = (a.ci95.unwrap(), b.ci95.unwrap());
        near(a[0], 1.0 / b[1], 1e-9);
        near(a[1], 1.0 / b[0], 1e-9);
    }

    /// From the published table of Student's t (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
    #[test]
    fn quantiles_are_those_of_the_published_table() {
        near(t_quantile(1, 0.025), 12.706, 1e-3);
        near(t_quantile(3, 0.05), 2.353, 1e-3);
        near(t_quantile(5, 0.01), 3.365, 1e-3);
        near(t_quantile(11, 0.001), 4.025, 1e-3);
        near(t_quantile(100, 0.025), 1.984, 1e-3);
        assert_eq!(t_quantile(0, 0.05), f64::INFINITY);
    }

    #[test]
    fn a_round_without_a_ratio_does_not_count() {
        assert_eq!(ratio(&[1.0, f64::NAN, 0.0, f64::INFINITY]).n, 1);
    }
}
