//! How many rounds are run: a fixed number, or as many as the time verdict needs. Pure.

use std::time::Duration;

use super::Refused;
use flashrig_record::AutoRounds;

/// The verdict is not looked at before so many rounds: both orders of the arms, twice.
const AT_LEAST: u32 = 4;
/// No more rounds than this are run.
const AT_MOST: u32 = 12;

/// What was typed as `--rounds`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundsAsked {
    /// So many.
    Fixed(u32),
    /// Until the time verdict is settled.
    Auto,
}

/// Reads `--rounds`.
///
/// # Errors
/// Neither a whole number of at least 1 nor `auto`.
pub fn parse_rounds(text: &str) -> Result<RoundsAsked, String> {
    if text == "auto" {
        return Ok(RoundsAsked::Auto);
    }
    match text.parse() {
        Ok(n @ 1..=1000) => Ok(RoundsAsked::Fixed(n)),
        _ => Err("give a whole number from 1 to 1000, or auto".to_owned()),
    }
}

/// How many rounds are run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounds {
    /// The most.
    pub most: u32,
    /// Whether and how they end sooner.
    pub auto: Option<AutoRounds>,
}

impl Rounds {
    /// `fixed` rounds, or what was asked for. A limit of time asks for `auto`.
    ///
    /// # Errors
    /// A limit of time for a fixed number of rounds.
    pub fn new(
        asked: Option<RoundsAsked>,
        max_time: Option<Duration>,
        default: RoundsAsked,
    ) -> Result<Self, Refused> {
        match (asked, max_time) {
            (Some(RoundsAsked::Fixed(n)), Some(_)) => Err(Refused(format!(
                "--max-time limits rounds that go on until the verdict is settled; leave it out, or \
                 leave --rounds {n} out"
            ))),
            (None, Some(_)) | (Some(RoundsAsked::Auto), _) => Ok(Self::auto(max_time)),
            (Some(fixed), None) => Ok(Self::of(fixed)),
            (None, None) => Ok(Self::of(default)),
        }
    }

    /// As a record has them.
    pub fn stored(most: u32, auto: Option<AutoRounds>) -> Self {
        Self { most, auto }
    }

    fn of(asked: RoundsAsked) -> Self {
        match asked {
            RoundsAsked::Auto => Self::auto(None),
            RoundsAsked::Fixed(most) => Self { most, auto: None },
        }
    }

    fn auto(max_time: Option<Duration>) -> Self {
        Self {
            most: AT_MOST,
            auto: Some(AutoRounds {
                at_least: AT_LEAST,
                max_time_s: max_time.map(Into::into),
            }),
        }
    }

    /// Whether the verdict is looked at after a round: only where every order of two arms came
    /// equally often.
    pub fn looks_after(&self, round: u32) -> bool {
        self.auto
            .is_some_and(|auto| round >= auto.at_least && round.is_multiple_of(2))
    }

    /// Whether no round begins any more, so long after the first one began.
    pub fn is_over(&self, elapsed: Duration) -> bool {
        let limit = self.auto.and_then(|auto| auto.max_time_s);
        limit.is_some_and(|limit| elapsed.as_secs_f64() >= limit.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_is_looked_at_five_times_after_balanced_rounds() {
        let rounds = Rounds::new(Some(RoundsAsked::Auto), None, RoundsAsked::Fixed(1)).unwrap();
        let looks: Vec<u32> = (1..=rounds.most)
            .filter(|n| rounds.looks_after(*n))
            .collect();
        assert_eq!(looks, [4, 6, 8, 10, 12]);
        let fixed = Rounds::new(None, None, RoundsAsked::Fixed(8)).unwrap();
        assert!((1..=8).all(|n| !fixed.looks_after(n)));
    }

    #[test]
    fn a_limit_of_time_asks_for_auto_and_goes_with_no_fixed_number() {
        let limit = Some(Duration::from_secs(60));
        let rounds = Rounds::new(None, limit, RoundsAsked::Fixed(1)).unwrap();
        assert_eq!(rounds.most, 12);
        assert!(!rounds.is_over(Duration::from_secs(59)));
        assert!(rounds.is_over(Duration::from_secs(60)));
        assert!(Rounds::new(Some(RoundsAsked::Fixed(3)), limit, RoundsAsked::Auto).is_err());
    }

    #[test]
    fn rounds_are_a_number_or_auto() {
        assert_eq!(parse_rounds("auto"), Ok(RoundsAsked::Auto));
        assert_eq!(parse_rounds("3"), Ok(RoundsAsked::Fixed(3)));
        for wrong in ["0", "1001", "many", "-1", "1.5"] {
            assert!(parse_rounds(wrong).is_err(), "{wrong}");
        }
    }
}
