//! How many lines make a prompt of so many tokens, by what the server counted.

use std::collections::HashMap;

use super::filler::LINE_WORDS;
use flashrig_record::Calibration;

/// The parts of a prompt's text, beside its facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    /// Whole lines.
    pub(super) lines: u64,
    /// Words of one more line; `None` for none.
    pub(super) words: Option<u32>,
}

/// What makes prompts alike in size.
pub(super) type Shape = (u64, u32);

/// What the first prompt of a shape was off, learnt once from the server's count of it: how many
/// tokens more or fewer the next ones are to be built for.
#[derive(Debug, Default)]
pub(super) struct Corrections(HashMap<Shape, f64>);

impl Corrections {
    /// Tokens to be added to a prompt of this shape; `None` while nothing is known.
    pub(super) fn of(&self, shape: Shape) -> Option<f64> {
        self.0.get(&shape).copied()
    }

    /// The server counted `counted` tokens for a prompt of this shape that was not corrected yet.
    pub(super) fn learn(&mut self, shape: Shape, counted: u64) {
        let off = shape.0 as f64 - counted as f64;
        self.0.entry(shape).or_insert(off);
    }
}

/// The parts that bring a prompt with `facts` facts to `tokens` tokens; `None` when the facts and
/// the envelope alone are more.
pub(super) fn parts(calibration: &Calibration, tokens: f64, facts: u32) -> Option<Parts> {
    let fixed = calibration.envelope_tokens + calibration.tokens_per_fact * f64::from(facts);
    let room = tokens - fixed;
    if room < 0.0 || calibration.tokens_per_line <= 0.0 {
        return None;
    }
    let lines = (room / calibration.tokens_per_line).floor();
    let left = room - lines * calibration.tokens_per_line;
    // A line of no words, then one word after the other.
    let word = calibration.tokens_per_word;
    let bare = calibration.tokens_per_line - word * f64::from(LINE_WORDS);
    let words = ((left - bare) / word).round();
    let nearer = left > bare / 2.0 && words.is_finite();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "neither negative nor larger than a prompt"
    )]
    Some(Parts {
        lines: lines as u64,
        words: nearer.then_some(words.max(0.0) as u32),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration() -> Calibration {
        Calibration {
            tokens_per_line: 14.0,
            tokens_per_word: 1.0,
            envelope_tokens: 40.0,
            tokens_per_fact: 16.0,
            tokens_per_question: 120.0,
            fixed_output: true,
        }
    }

    fn size(parts: Parts, facts: u32) -> f64 {
        let c = calibration();
        let line = parts.words.map_or(0.0, |words| 2.0 + f64::from(words));
        c.envelope_tokens
            + c.tokens_per_fact * f64::from(facts)
            + c.tokens_per_line * parts.lines as f64
            + line
    }

    #[test]
    fn a_prompt_comes_to_the_tokens_asked_for_whatever_they_are() {
        for tokens in 400..500 {
            for facts in [0, 1, 13] {
                let parts = parts(&calibration(), f64::from(tokens), facts).unwrap();
                let off = size(parts, facts) - f64::from(tokens);
                assert!(off.abs() <= 1.0, "{tokens} with {facts}: off by {off}");
            }
        }
    }

    #[test]
    fn a_prompt_that_its_facts_alone_exceed_cannot_be() {
        assert_eq!(parts(&calibration(), 100.0, 13), None);
        assert_eq!(parts(&calibration(), 39.0, 0), None);
        assert!(parts(&calibration(), 40.0, 0).is_some());
    }

    #[test]
    fn a_shape_is_corrected_once_by_what_the_server_counted() {
        let mut corrections = Corrections::default();
        assert_eq!(corrections.of((1000, 13)), None);
        corrections.learn((1000, 13), 1010);
        corrections.learn((1000, 13), 1000);
        assert_eq!(corrections.of((1000, 13)), Some(-10.0));
        assert_eq!(corrections.of((1000, 5)), None, "other facts, other sizes");
    }
}
