//! Prompts put together from filler, facts and questions.

use super::filler::{self, Fact, LINE_WORDS};
use super::sizing::Parts;

/// Filler lines beside each question: about a hundred tokens, as a tool's short answer.
pub(super) const QUESTION_LINES: u64 = 7;

/// What ends a first prompt. It asks for something that has no end, so that the answer is as long
/// as was asked for also where a server does not take the fields that make it so.
const COUNT: &[u8] = b"These were notes. Now count upwards from one in words, one number a line, \
                       and do not stop.";

/// What a prompt is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipe {
    /// Seed of what is alike in all sessions of a run.
    pub(super) seed: u64,
    /// Seed of what is unlike for each.
    pub(super) salt: u64,
    /// Whether all prompts begin alike.
    pub(super) shared_prefix: bool,
    /// Facts in it.
    pub(super) facts: u32,
}

impl Recipe {
    /// The seed of the filler.
    fn text(&self) -> u64 {
        if self.shared_prefix {
            filler::mix(self.seed)
        } else {
            filler::mix(self.seed ^ filler::mix(self.salt))
        }
    }

    /// Fact `number`. Prompts that begin alike have the same facts.
    pub(super) fn fact(&self, number: u32) -> Fact {
        let salt = if self.shared_prefix { 0 } else { self.salt };
        filler::fact(self.seed, salt, number)
    }

    /// The fact that warm turn `index`, from 1, asks for: every one once, in an order that is the
    /// same for all sessions.
    pub(super) fn asked(&self, index: u32) -> Fact {
        let facts = self.facts.max(1);
        // Steps that have no common divisor with the number of facts meet every one.
        let step = (0..facts)
            .map(|n| facts / 2 + 1 + n)
            .find(|step| divisor(*step, facts) == 1)
            .unwrap_or(1);
        let start = (filler::mix(self.seed) % u64::from(facts)) as u32;
        let place = (u64::from(start) + u64::from(index) * u64::from(step)) % u64::from(facts);
        self.fact(place as u32)
    }

    /// Appends the first prompt: filler with facts at even distances, and what to do.
    pub(super) fn first(&self, parts: Parts, out: &mut Vec<u8>) {
        let seed = self.text();
        let mut reported = 0;
        for number in 0..parts.lines {
            while reported < self.facts && number >= depth(reported, self.facts, parts.lines) {
                self.fact(reported).report(out);
                reported += 1;
            }
            // All but the last line are alike where prompts begin alike.
            let own = self.shared_prefix && number + 1 == parts.lines;
            let seed = if own { filler::mix(self.salt) } else { seed };
            filler::line(seed, number, LINE_WORDS, out);
        }
        for number in reported..self.facts {
            self.fact(number).report(out);
        }
        if let Some(words) = parts.words {
            filler::line(seed, parts.lines, words, out);
        }
        out.extend_from_slice(COUNT);
    }

    /// Appends the prompt of warm turn `index`, from 1, with so many lines of filler.
    pub(super) fn question(&self, index: u32, lines: u64, out: &mut Vec<u8>) {
        let seed = filler::mix(self.text() ^ u64::from(index));
        for number in 0..lines {
            filler::line(seed, number, LINE_WORDS, out);
        }
        self.asked(index).ask(out);
    }
}

/// The line before which fact `number` of `facts` stands.
fn depth(number: u32, facts: u32, lines: u64) -> u64 {
    (2 * u64::from(number) + 1) * lines / (2 * u64::from(facts))
}

fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn recipe(salt: u64, shared_prefix: bool) -> Recipe {
        Recipe {
            seed: 11,
            salt,
            shared_prefix,
            facts: 13,
        }
    }

    fn first(recipe: Recipe, lines: u64) -> String {
        let mut out = Vec::new();
        let words = Some(3);
        recipe.first(Parts { lines, words }, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn common(a: &str, b: &str) -> usize {
        a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count()
    }

    #[test]
    fn facts_stand_at_even_depths_from_near_the_start_to_near_the_end() {
        let text = first(recipe(1, false), 1300);
        let depths: Vec<f64> = (0..13)
            .map(|n| {
                let mut line = Vec::new();
                recipe(1, false).fact(n).report(&mut line);
                let line = String::from_utf8(line).unwrap();
                text.find(&line).expect("a fact is missing") as f64 / text.len() as f64
            })
            .collect();
        for (n, depth) in depths.iter().enumerate() {
            let even = (n as f64 + 0.5) / 13.0;
            assert!(
                (depth - even).abs() < 0.01,
                "fact {n} at {depth}, not {even}"
            );
        }
    }

    #[test]
    fn a_prompt_too_short_for_its_facts_holds_them_all_the_same() {
        assert_eq!(
            first(recipe(1, false), 0).matches("the code is").count(),
            13
        );
        assert_eq!(
            first(recipe(1, false), 5).matches("the code is").count(),
            13
        );
    }

    #[test]
    fn prompts_of_two_sessions_part_in_their_first_line() {
        let (a, b) = (first(recipe(1, false), 50), first(recipe(2, false), 50));
        assert!(common(&a, &b) < 74, "{} bytes in common", common(&a, &b));
        assert_eq!(a, first(recipe(1, false), 50));
        assert_eq!(a.len(), b.len());
    }

    #[test]
    fn a_shared_prefix_reaches_to_the_last_line_and_no_further() {
        let (a, b) = (first(recipe(1, true), 50), first(recipe(2, true), 50));
        assert_ne!(a, b);
        let share = common(&a, &b) as f64 / a.len() as f64;
        assert!(share > 0.9, "{share}");
    }

    #[test]
    fn every_fact_is_asked_for_once_and_in_the_same_order_by_all_sessions() {
        for facts in [1, 2, 3, 4, 6, 12, 13, 30] {
            let with = |salt| Recipe {
                facts,
                ..recipe(salt, false)
            };
            let keys =
                |salt| -> Vec<String> { (1..=facts).map(|n| with(salt).asked(n).key).collect() };
            assert_eq!(keys(1), keys(2));
            let unlike: HashSet<String> = keys(1).into_iter().collect();
            assert_eq!(unlike.len(), facts as usize, "{facts} facts");
        }
    }
}
