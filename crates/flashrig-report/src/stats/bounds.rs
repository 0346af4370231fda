//! One-sided bounds over all sessions: what the rounds prove of the slowest one.

use super::count;
use super::ratio::Moments;
use statrs::distribution::{ContinuousCDF as _, Normal};

/// The confidence that flashrig promises for a claim, over all looks.
pub const CONFIDENCE: f64 = 0.95;

/// A claim is wrong with at most this probability where logarithms are normal: a little below the 5%
/// that flashrig promises, so that it keeps its promise where they are not quite.
const ALPHA: f64 = 0.045;

/// The share of [`ALPHA`] that each of five looks may spend. Looks at the same rounds again are
/// alike, so that five of them spend less than five times one: with a quarter each, the claim that
/// is true at the threshold itself is wrong in 3.5% of runs for one session, and in less where the
/// share is divided by the number of sessions. Found by simulation, as for Pocock's boundary
/// (Biometrika 64, 1977); the law of Student's t at each look depends on neither mean nor scatter.
/// `cargo bench --bench verdicts` counts it.
const SHARE_OF_A_LOOK: f64 = 0.25;

/// How often a verdict is looked at before it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// Once: the number of rounds was fixed before the first.
    Once,
    /// After every second round from the fourth to the twelfth, and no more once it is settled.
    UpToFive,
}

impl Looks {
    /// How many at most.
    pub fn most(self) -> u32 {
        match self {
            Self::Once => 1,
            Self::UpToFive => 5,
        }
    }

    fn alpha(self) -> f64 {
        match self {
            Self::Once => ALPHA,
            Self::UpToFive => ALPHA * SHARE_OF_A_LOOK,
        }
    }
}

/// No session's ratio is above this; `None` below two rounds, or without a session.
///
/// The largest of the sessions' own upper bounds. That all of them are below a threshold is an
/// intersection of claims, which needs no correction for their number (Berger, Technometrics 24,
/// 1982).
pub fn at_most(per_session: &[Vec<f64>], looks: Looks) -> Option<f64> {
    largest(&moments(per_session)?, |m| m.bound(1.0, looks.alpha()))
}

/// Some session's ratio is at least this; `None` below two rounds, or without a session.
///
/// The largest of the sessions' own lower bounds, each corrected for the number of sessions
/// (Bonferroni), since any of them may be the one.
pub fn at_least(per_session: &[Vec<f64>], looks: Looks) -> Option<f64> {
    let alpha = looks.alpha() / count(per_session.len());
    largest(&moments(per_session)?, |m| m.bound(-1.0, alpha))
}

/// The ratio is at least this after `n` rounds, if mean and scatter stay as they are; `None` below two
/// values. Wrong with at most 5% over `comparisons` such claims (Bonferroni).
pub fn lower_bound(values: &[f64], n: usize, comparisons: usize) -> Option<f64> {
    let now = Moments::of(values)?;
    Some(Moments { n, ..now }.bound(-1.0, ALPHA / count(comparisons.max(1))))
}

/// Both bounds, lower and upper, after `n` rounds, if means and scatter stayed as they are.
pub fn bounds_after(per_session: &[Vec<f64>], looks: Looks, n: usize) -> Option<[f64; 2]> {
    let mut all = moments(per_session)?;
    for m in &mut all {
        m.n = n;
    }
    let corrected = looks.alpha() / count(all.len());
    let low = largest(&all, |m| m.bound(-1.0, corrected))?;
    Some([low, largest(&all, |m| m.bound(1.0, looks.alpha()))?])
}

/// Of every session; `None` when one has fewer than two rounds.
fn moments(per_session: &[Vec<f64>]) -> Option<Vec<Moments>> {
    per_session.iter().map(|all| Moments::of(all)).collect()
}

fn largest(all: &[Moments], of: impl Fn(&Moments) -> f64) -> Option<f64> {
    all.iter().map(of).reduce(f64::max)
}

/// The factor by which the largest of the sessions' geometric means is expected to exceed the true
/// one, if all sessions were slowed down alike; less where one of them stands out. `None` below two
/// rounds.
///
/// The expected largest of k standard normal values, by Blom's approximation (Statistical Estimates
/// and Transformed Beta-Variables, 1958), times the root mean square of the standard errors.
pub fn reads_high_by(per_session: &[Vec<f64>]) -> Option<f64> {
    let squares: Vec<f64> = moments(per_session)?
        .iter()
        .map(|m| m.error().powi(2))
        .collect();
    if squares.is_empty() {
        return None;
    }
    if squares.len() == 1 {
        return Some(1.0);
    }
    let k = count(squares.len());
    let largest = Normal::standard().inverse_cdf((k - 0.375) / (k + 0.25));
    let error = (squares.iter().sum::<f64>() / k).sqrt();
    Some((largest * error).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_looks_and_more_sessions_ask_for_more() {
        let one = vec![vec![1.9, 2.1, 2.0, 2.05]];
        let two = vec![one[0].clone(), vec![1.0, 1.1, 0.9, 1.0]];
        let once = |all: &[Vec<f64>]| at_least(all, Looks::Once).unwrap();
        assert!(once(&one) > once(&two), "corrected for the second session");
        assert!(once(&one) > at_least(&one, Looks::UpToFive).unwrap());
        assert!(at_most(&one, Looks::Once) < at_most(&one, Looks::UpToFive));
        assert_eq!(at_most(&one, Looks::Once), at_most(&two, Looks::Once));
    }

    /// By hand: logs of 1.2, 1.5, 1.8 have mean 0.391862 and standard deviation 0.203147; the 95.5%
    /// quantile of t(2) is 3.1037, so that the bounds are exp(0.391862 +- 0.364021).
    #[test]
    fn a_bound_is_students_t_on_the_logarithms_on_one_side() {
        let one = [vec![1.2, 1.5, 1.8]];
        let high = at_most(&one, Looks::Once).unwrap();
        let low = at_least(&one, Looks::Once).unwrap();
        assert!((high - 2.1298).abs() < 2e-3, "{high}");
        assert!((low - 1.0282).abs() < 2e-3, "{low}");
    }

    #[test]
    fn rounds_without_scatter_are_their_own_bounds() {
        let same = [vec![1.5, 1.5], vec![1.2, 1.2]];
        assert_eq!(at_most(&same, Looks::Once), Some(1.5));
        assert_eq!(at_least(&same, Looks::UpToFive), Some(1.5));
        assert_eq!(reads_high_by(&same), Some(1.0));
    }

    #[test]
    fn below_two_rounds_nothing_is_proven() {
        assert_eq!(at_most(&[vec![1.0]], Looks::Once), None);
        assert_eq!(at_least(&[vec![1.0, 1.1], vec![1.0]], Looks::Once), None);
        assert_eq!(at_most(&[], Looks::Once), None);
        assert_eq!(reads_high_by(&[vec![1.0]]), None);
    }

    #[test]
    fn the_largest_of_more_sessions_reads_higher() {
        let session = vec![1.0, 1.2, 0.9, 1.1];
        let of = |k: usize| reads_high_by(&vec![session.clone(); k]).unwrap();
        assert_eq!(of(1), 1.0);
        assert!(of(2) > 1.0 && of(8) > of(2), "{} {}", of(2), of(8));
    }
}
