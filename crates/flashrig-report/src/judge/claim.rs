//! What the rounds prove about the slowdowns of all sessions, and the verdict that follows.
//!
//! A verdict is a claim with evidence. "Pass" says that every session is at or below the first
//! threshold, "fail" that some session is above the second, "warning" that neither holds. Each rests
//! on a one-sided 95% bound; `docs/STATISTICS.md` has the formulas and counts wrong claims. One round
//! proves nothing: its verdict is where the largest figure lies, and the report says so.

use crate::stats::{self, Looks, at_least, at_most, reads_high_by};
use flashrig_record::{AutoRounds, Evidence, Ratio, Thresholds, TimeVerdict};

/// More rounds than this are not worth naming.
const MOST_ROUNDS: usize = 200;

/// Bounds are computed: this share beside a threshold is still at it.
const ROUNDING: f64 = 1e-9;

/// The slowdowns of every session, round by round, and how they may be judged.
#[derive(Clone, Copy, Debug)]
pub struct Slowdowns<'a> {
    /// For each session one ratio for each valid round.
    pub per_session: &'a [Vec<f64>],
    /// How often the verdict is looked at.
    pub looks: Looks,
    /// Whether rounds are missing that may have shown a slowdown.
    pub censored: bool,
    /// The thresholds.
    pub limits: Thresholds,
}

/// A verdict with its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The verdict.
    pub verdict: TimeVerdict,
    /// What it rests on; `None` below two rounds.
    pub evidence: Option<Evidence>,
    /// Rounds in all that would settle it, or make something of it that is inconclusive; `None` when
    /// it is settled or that cannot be told.
    pub rounds_needed: Option<u32>,
}

/// How often the verdict of a run is looked at.
pub fn looks(auto: Option<AutoRounds>) -> Looks {
    match auto {
        None => Looks::Once,
        Some(_) => Looks::UpToFive,
    }
}

/// The session with the largest geometric mean, by its place, and its figure.
pub fn worst(per_session: &[Vec<f64>]) -> Option<(usize, Ratio)> {
    let all = per_session.iter().map(|values| stats::ratio(values));
    let known = all.enumerate().filter(|(_, ratio)| ratio.value.is_some());
    // The first of equal ones stays.
    known.reduce(|worst, other| {
        if other.1.value > worst.1.value {
            other
        } else {
            worst
        }
    })
}

impl Slowdowns<'_> {
    /// The verdict with its evidence.
    pub fn claim(&self) -> Claim {
        let verdict = self.verdict();
        let evidence = self.evidence();
        Claim {
            verdict,
            evidence,
            rounds_needed: evidence.and_then(|_| self.rounds_needed(verdict)),
        }
    }

    /// The verdict alone.
    pub fn verdict(&self) -> TimeVerdict {
        match (self.bounds(), worst(self.per_session)) {
            (Some([low, high]), _) => self.proven((!self.censored).then_some(high), low),
            (None, Some((_, worst))) => {
                let value = worst.value;
                value.map_or(TimeVerdict::Unknown, |value| self.by_figure(value))
            }
            (None, None) => TimeVerdict::Unknown,
        }
    }

    /// Whether more rounds have nothing to add: the verdict is settled, and proven.
    pub fn is_settled(&self) -> bool {
        self.bounds().is_some() && self.verdict().is_settled()
    }

    /// At least and at most.
    fn bounds(&self) -> Option<[f64; 2]> {
        let high = at_most(self.per_session, self.looks)?;
        Some([at_least(self.per_session, self.looks)?, high])
    }

    fn evidence(&self) -> Option<Evidence> {
        let [at_least, at_most] = self.bounds()?;
        Some(Evidence {
            confidence: stats::CONFIDENCE,
            looks: self.looks.most(),
            at_most: (!self.censored).then_some(at_most),
            at_least,
            reads_high_by: reads_high_by(self.per_session)?,
        })
    }

    /// The verdict that bounds prove.
    fn proven(&self, at_most: Option<f64>, at_least: f64) -> TimeVerdict {
        let not_above = |limit: f64| at_most.is_some_and(|high| high <= limit * (1.0 + ROUNDING));
        let above = |limit: f64| at_least > limit * (1.0 + ROUNDING);
        let (pass, fail) = (self.limits.pass, self.limits.fail);
        if not_above(pass) {
            TimeVerdict::Pass
        } else if above(fail) {
            TimeVerdict::Fail
        } else {
            match (not_above(fail), above(pass)) {
                (true, true) => TimeVerdict::Warn,
                (true, false) => TimeVerdict::PassOrWarn,
                (false, true) => TimeVerdict::WarnOrFail,
                (false, false) => TimeVerdict::Inconclusive,
            }
        }
    }

    /// Where a figure lies that nothing proves.
    fn by_figure(&self, value: f64) -> TimeVerdict {
        match value {
            _ if self.censored => TimeVerdict::Inconclusive,
            v if v <= self.limits.pass => TimeVerdict::Pass,
            v if v <= self.limits.fail => TimeVerdict::Warn,
            _ => TimeVerdict::Fail,
        }
    }

    /// Rounds in all after which the verdict would be settled, or at least no longer inconclusive, if
    /// means and scatter stayed as they are.
    fn rounds_needed(&self, verdict: TimeVerdict) -> Option<u32> {
        if verdict.is_settled() || self.censored {
            return None;
        }
        let is_enough = |verdict: TimeVerdict, was: TimeVerdict| match was {
            TimeVerdict::Inconclusive => verdict != TimeVerdict::Inconclusive,
            _ => verdict.is_settled(),
        };
        let n = self.per_session.iter().map(Vec::len).max()?;
        let found = (n + 1..=MOST_ROUNDS).find(|n| {
            let bounds = stats::bounds_after(self.per_session, self.looks, *n);
            bounds.is_some_and(|[low, high]| is_enough(self.proven(Some(high), low), verdict))
        });
        found.and_then(|n| u32::try_from(n).ok())
    }
}

/// Rounds beside the `n` measured that would settle a verdict, of the total needed.
pub fn more_rounds(n: u32, needed: Option<u32>) -> Option<u32> {
    needed.map(|needed| needed.saturating_sub(n).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_record::testing::THRESHOLDS as LIMITS;

    fn claim(per_session: &[Vec<f64>]) -> Claim {
        Slowdowns {
            per_session,
            looks: Looks::Once,
            censored: false,
            limits: LIMITS,
        }
        .claim()
    }

    fn verdict(per_session: &[Vec<f64>]) -> TimeVerdict {
        claim(per_session).verdict
    }

    #[test]
    fn one_round_is_where_its_largest_figure_lies() {
        let of = |value: f64| verdict(&[vec![1.0], vec![value]]);
        assert_eq!(of(1.5), TimeVerdict::Pass);
        assert_eq!(of(1.51), TimeVerdict::Warn);
        assert_eq!(of(2.0), TimeVerdict::Warn);
        assert_eq!(of(2.01), TimeVerdict::Fail);
        assert_eq!(claim(&[vec![1.2]]).evidence, None);
        assert_eq!(verdict(&[vec![], vec![]]), TimeVerdict::Unknown);
    }

    #[test]
    fn bounds_that_clear_a_threshold_claim_and_those_that_do_not_claim_half() {
        let scattered = |middle: f64, by: f64| vec![middle / by, middle, middle * by, middle];
        assert_eq!(verdict(&[scattered(1.2, 1.05)]), TimeVerdict::Pass);
        assert_eq!(verdict(&[scattered(1.45, 1.05)]), TimeVerdict::PassOrWarn);
        assert_eq!(verdict(&[scattered(1.75, 1.03)]), TimeVerdict::Warn);
        assert_eq!(verdict(&[scattered(2.0, 1.05)]), TimeVerdict::WarnOrFail);
        assert_eq!(verdict(&[scattered(2.5, 1.05)]), TimeVerdict::Fail);
        assert_eq!(verdict(&[scattered(1.7, 1.5)]), TimeVerdict::Inconclusive);
    }

    #[test]
    fn half_of_the_rounds_at_1_48_and_half_at_2_09_are_not_a_pass() {
        let nine = vec![1.48, 1.48, 1.48, 1.48, 1.48, 2.09, 2.09, 2.09, 2.09];
        assert_eq!(verdict(&[nine]), TimeVerdict::Warn);
    }

    #[test]
    fn the_worst_is_one_session_s_own_mean_and_not_the_largest_of_each_round() {
        let sessions = [
            vec![1.0, 2.0, 1.0],
            vec![1.0, 1.0, 2.0],
            vec![2.0, 1.0, 1.0],
        ];
        let (index, ratio) = worst(&sessions).unwrap();
        assert_eq!(index, 0);
        assert!((ratio.value.unwrap() - 2f64.powf(1.0 / 3.0)).abs() < 1e-12);
    }

    #[test]
    fn every_session_must_pass_and_one_is_enough_to_fail() {
        let near = |middle: f64| vec![middle * 0.98, middle, middle * 1.02, middle];
        assert_eq!(verdict(&[near(1.1), near(1.2)]), TimeVerdict::Pass);
        assert_eq!(verdict(&[near(1.1), near(2.5)]), TimeVerdict::Fail);
        assert_eq!(verdict(&[near(1.1), near(1.7)]), TimeVerdict::Warn);
    }

    #[test]
    fn where_rounds_are_missing_for_what_they_would_have_shown_nothing_passes() {
        let censored = |values: Vec<f64>| {
            let claim = Slowdowns {
                per_session: &[values],
                looks: Looks::Once,
                censored: true,
                limits: LIMITS,
            };
            claim.claim().verdict
        };
        assert_eq!(
            censored(vec![1.1, 1.12, 1.09, 1.1]),
            TimeVerdict::Inconclusive
        );
        assert_eq!(
            censored(vec![1.8, 1.82, 1.79, 1.8]),
            TimeVerdict::WarnOrFail
        );
        assert_eq!(censored(vec![2.5, 2.52, 2.49]), TimeVerdict::Fail);
        assert_eq!(censored(vec![1.1]), TimeVerdict::Inconclusive);
    }

    #[test]
    fn the_rounds_that_would_settle_it_are_a_total_and_none_are_named_on_the_threshold() {
        let open = claim(&[vec![1.30, 1.60, 1.45, 1.2]]);
        assert_eq!(open.verdict, TimeVerdict::PassOrWarn);
        let needed = open.rounds_needed.unwrap();
        assert!(needed > 4, "{needed}");
        assert_eq!(more_rounds(4, open.rounds_needed), Some(needed - 4));
        let on_the_line = claim(&[vec![1.5 * 0.9, 1.5 / 0.9, 1.5 * 0.9, 1.5 / 0.9]]);
        assert_eq!(on_the_line.rounds_needed, None);
        assert_eq!(claim(&[vec![1.1, 1.1]]).rounds_needed, None, "settled");
    }
}
