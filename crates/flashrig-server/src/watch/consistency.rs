//! One figure from three sources (clients' answers, metrics, log), and whether they agree. Pure.

use std::collections::HashSet;

use crate::log::LogEvent;
use flashrig_record::{Attempt, Disagreement, Outcome, ThreeWays};

/// Beside one token for each answer, what may be rounding.
const ROUNDING: f64 = 0.005;

/// What clients saw of the requests that make the model generate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Answers {
    /// Those whose answers came whole.
    pub whole: u64,
    /// Their cached prompt tokens; `None` unless every one tells.
    pub cached: Option<u64>,
    /// Those that were refused.
    pub refused: u64,
    /// Those of which no whole answer came: the server may have worked on them.
    pub broken: u64,
    /// When the last one ended.
    pub last_end_s: Option<f64>,
}

impl Answers {
    /// Adds them up. What flashrig's gateway answered or refused itself never was the server's.
    pub fn of<'a>(attempts: impl IntoIterator<Item = &'a Attempt>) -> Self {
        let mut all = Self::default();
        let mut cached = Some(0);
        let own = |a: &&Attempt| {
            a.outcome == Outcome::RejectedByGateway || a.answered_by_gateway.is_some()
        };
        let attempts = attempts.into_iter().filter(|a| a.dialect.generates());
        for attempt in attempts.filter(|a| !own(a)) {
            match attempt.outcome {
                Outcome::Complete => {
                    all.whole += 1;
                    cached = cached
                        .zip(attempt.cached_tokens)
                        .map(|(sum, more)| sum + more);
                }
                Outcome::Refused | Outcome::Overloaded => all.refused += 1,
                Outcome::Unreachable => {}
                _ => all.broken += 1,
            }
            let end = attempt.clocks.end_s.0;
            all.last_end_s = Some(all.last_end_s.map_or(end, |last: f64| last.max(end)));
        }
        all.cached = cached.filter(|_| all.whole > 0);
        all
    }
}

/// Whether an attempt was refused by the server while it was to generate.
pub fn is_refusal(attempt: &Attempt) -> bool {
    attempt.dialect.generates() && matches!(attempt.outcome, Outcome::Refused | Outcome::Overloaded)
}

/// What the log told of finished requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Finished {
    /// How many.
    pub requests: u64,
    /// Cached prompt tokens: of the finished requests, or else of those that it says were begun.
    /// `None` unless every line tells, and where there is none.
    pub cached: Option<u64>,
}

impl Finished {
    /// Adds up the lines.
    pub fn of<'e>(events: impl IntoIterator<Item = &'e LogEvent>) -> Self {
        let mut requests = 0;
        let (mut of_finished, mut of_begun) = (Sum::default(), Sum::default());
        let mut begun = HashSet::new();
        for event in events {
            match event {
                LogEvent::Finished { cached_tokens, .. } => {
                    requests += 1;
                    of_finished.add(*cached_tokens);
                }
                LogEvent::Cached {
                    request,
                    cached_tokens,
                } if request.is_none() || begun.insert(request) => of_begun.add(*cached_tokens),
                _ => {}
            }
        }
        Self {
            requests,
            cached: of_finished.known().or(of_begun.known()),
        }
    }
}

/// A sum that is unknown without a figure, or with one that is.
#[derive(Default)]
struct Sum {
    sum: u64,
    known: u64,
    unknown: u64,
}

impl Sum {
    fn add(&mut self, value: Option<u64>) {
        match value {
            Some(value) => {
                self.sum += value;
                self.known += 1;
            }
            None => self.unknown += 1,
        }
    }

    fn known(&self) -> Option<u64> {
        (self.known > 0 && self.unknown == 0).then_some(self.sum)
    }
}

/// Where the sources contradict each other.
pub fn disagreements(
    cached: ThreeWays,
    refused: ThreeWays,
    answers: &Answers,
    finished: Finished,
) -> Vec<Disagreement> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a share of a count of tokens"
    )]
    let rounding = |most: u64| ((most as f64 * ROUNDING) as u64).max(answers.whole);
    let mut all = Vec::new();
    if let Some(by) = apart(cached, answers.broken > 0, rounding) {
        let log_finished = Some(finished.requests);
        all.push(Disagreement::CachedTokens {
            by,
            sources: cached,
            answers: answers.whole,
            log_finished: log_finished.filter(|n| *n != 0 && *n != answers.whole),
        });
    }
    if let Some(by) = apart(refused, false, |_| 0) {
        all.push(Disagreement::Refused {
            by,
            sources: refused,
        });
    }
    all
}

/// How far the sources are apart, when that is more than rounding. The server may have counted more
/// than the answers say where answers broke off.
fn apart(three: ThreeWays, may_exceed: bool, rounding: impl Fn(u64) -> u64) -> Option<u64> {
    let ThreeWays {
        answers,
        metrics,
        log,
    } = three;
    let beyond = |a: u64, b: u64| Some(a.abs_diff(b)).filter(|by| *by > rounding(a.max(b)));
    let of_answers = [metrics, log]
        .into_iter()
        .flatten()
        .filter_map(|server| {
            let answers = answers?;
            beyond(answers, server).filter(|_| !(may_exceed && server > answers))
        })
        .max();
    let of_server = metrics.zip(log).and_then(|(m, l)| beyond(m, l));
    of_answers.max(of_server)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_record::{Dialect, Role};

    fn attempt(end: Outcome, cached: Option<u64>) -> Attempt {
        Attempt {
            outcome: end,
            cached_tokens: cached,
            ..Attempt::begun(Dialect::OpenaiChat, Role::Main)
        }
    }

    fn three(answers: u64, metrics: u64, log: u64) -> ThreeWays {
        ThreeWays {
            answers: Some(answers),
            metrics: Some(metrics),
            log: Some(log),
        }
    }

    fn message(cached: ThreeWays, answers: &Answers, finished: u64) -> Vec<String> {
        let finished = Finished {
            requests: finished,
            cached: cached.log,
        };
        texts(&disagreements(
            cached,
            ThreeWays::default(),
            answers,
            finished,
        ))
    }

    fn texts(all: &[Disagreement]) -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn one_answer_that_does_not_tell_makes_the_sum_unknown() {
        let known = attempt(Outcome::Complete, Some(5));
        let unknown = attempt(Outcome::Complete, None);
        assert_eq!(Answers::of([&known, &known]).cached, Some(10));
        assert_eq!(Answers::of([&known, &unknown]).cached, None);
        let refused = attempt(Outcome::Refused, None);
        let with_a_refusal = Answers::of([&known, &refused]);
        assert_eq!(
            (with_a_refusal.cached, with_a_refusal.refused),
            (Some(5), 1)
        );
        assert_eq!(Answers::of([&refused]).cached, None);
    }

    #[test]
    fn rounding_is_no_disagreement_and_more_is_named_with_its_sources() {
        let answers = Answers {
            whole: 4,
            ..Answers::default()
        };
        assert!(message(three(10_000, 10_004, 9_960), &answers, 4).is_empty());
        assert_eq!(
            message(three(10_000, 2_000, 10_000), &answers, 4),
            [
                "cached prompt tokens differ by 8,000: clients' answers 10,000, the server's \
                 metrics 2,000, its log 10,000"
            ]
        );
        let lines = message(three(10_000, 10_000, 7_500), &answers, 3);
        assert!(
            lines[0].ends_with("its log tells of 3 finished requests, and clients had 4 answers")
        );
    }

    #[test]
    fn a_log_that_tells_of_a_prompt_batch_by_batch_is_taken_at_its_first_word() {
        let begun = |request: &str, cached_tokens| LogEvent::Cached {
            request: Some(request.to_owned()),
            cached_tokens: Some(cached_tokens),
        };
        let finished = LogEvent::Finished {
            prompt_tokens: None,
            cached_tokens: None,
            generated_tokens: None,
            tokens: Some(2063),
        };
        let log = [begun("34", 24), begun("34", 536), begun("56", 25), finished];
        let reported = Finished::of(&log);
        assert_eq!((reported.requests, reported.cached), (1, Some(49)));
        assert_eq!(Finished::of(&log[3..]).cached, None);
    }

    #[test]
    fn where_answers_broke_off_the_server_may_have_counted_more_but_not_less() {
        let answers = Answers {
            whole: 1,
            broken: 1,
            ..Answers::default()
        };
        assert!(message(three(100, 500, 500), &answers, 2).is_empty());
        assert_eq!(message(three(500, 100, 500), &answers, 2).len(), 1);
    }

    #[test]
    fn refusals_are_counted_exactly_and_an_unknown_source_contradicts_nobody() {
        let refused = ThreeWays {
            metrics: None,
            ..three(1, 0, 2)
        };
        let none = Answers::default();
        let message = disagreements(ThreeWays::default(), refused, &none, Finished::default());
        assert_eq!(
            texts(&message),
            ["refused requests differ by 1: clients' answers 1, its log 2"]
        );
        let silent = ThreeWays {
            answers: Some(3),
            ..ThreeWays::default()
        };
        assert!(disagreements(silent, silent, &none, Finished::default()).is_empty());
    }
}
