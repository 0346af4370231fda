//! Recall: facts hidden in long prompts, and questions for them.
//!
//! A fact is a line `Fact K0317: the code is QX-48213.`; the question is the last thing that the
//! user says, `What is the code of fact K0317? …`. The last such line in the prompt counts.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::memmem;

use crate::ask::{Ask, Part, Speaker};

const QUESTION: &str = "What is the code of fact ";
/// The end of the last message in which the question is looked for.
const QUESTION_WITHIN_BYTES: usize = 8 << 10;
const KEY_BYTES: usize = 5;
const CODE_BYTES: usize = 8;
/// Answer to a question for a fact that is not there.
const UNKNOWN: &str = "I do not know.";
/// Questions that stay in mind for those who mix up their sessions: those in flight together.
const IN_MIND: usize = 8;

/// How well facts are recalled.
#[derive(Debug, Default)]
pub struct Recall {
    /// Every so manieth question is answered wrongly.
    pub drop_every: Option<u64>,
    /// Answers come from the prompts of other sessions, when they asked for the same fact.
    pub mixes_sessions: bool,
    asked: AtomicU64,
    in_mind: Mutex<VecDeque<(String, String)>>,
}

impl Recall {
    /// The rules of a server.
    pub fn new(drop_every: Option<u64>, mixes_sessions: bool) -> Self {
        Self {
            drop_every,
            mixes_sessions,
            ..Self::default()
        }
    }

    /// The answer, when the request asks for a fact.
    pub fn answer(&self, ask: &Ask) -> Option<String> {
        let key = asked_for(ask)?;
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let code = find(ask, key);
        let dropped = self.drop_every.is_some_and(|n| number.is_multiple_of(n));
        let code = match code {
            _ if dropped => None,
            Some(own) if self.mixes_sessions => Some(self.mix_up(key, own)),
            other => other.map(str::to_owned),
        };
        Some(code.unwrap_or_else(|| UNKNOWN.to_owned()))
    }

    /// The code that another session knows for `key`, else this one's own.
    fn mix_up(&self, key: &str, own: &str) -> String {
        let mut in_mind = self.in_mind.lock();
        let other = in_mind.iter().rev().find(|(k, c)| k == key && c != own);
        let answer = other.map_or_else(|| own.to_owned(), |(_, code)| code.clone());
        in_mind.push_back((key.to_owned(), own.to_owned()));
        if in_mind.len() > IN_MIND {
            in_mind.pop_front();
        }
        answer
    }
}

/// The key of the fact that the last user message asks for at its end.
fn asked_for(ask: &Ask) -> Option<&str> {
    let last = ask.messages.last().filter(|m| m.speaker == Speaker::User)?;
    let text = last.parts.iter().rev().find_map(|part| {
        if let Part::Text(text) = part {
            Some(text)
        } else {
            None
        }
    })?;
    // The message may hold the whole prompt; the question stands last.
    let end = text.len().saturating_sub(QUESTION_WITHIN_BYTES);
    let at = memmem::rfind(&text.as_bytes()[end..], QUESTION.as_bytes())?;
    let key_at = end + at + QUESTION.len();
    let key = text.get(key_at..key_at + KEY_BYTES)?;
    is_key(key).then_some(key)
}

/// The code of the last line about `key` in what the user and the instructions say.
fn find<'a>(ask: &'a Ask, key: &str) -> Option<&'a str> {
    let needle = format!("Fact {key}: the code is ");
    let finder = memmem::Finder::new(needle.as_bytes());
    let said = ask
        .messages
        .iter()
        .filter(|m| m.speaker != Speaker::Assistant)
        .flat_map(|m| &m.parts)
        .filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Result(result) => Some(result.text.as_str()),
            Part::Call(_) | Part::Other(_) => None,
        });
    let texts: Vec<&str> = std::iter::once(ask.system.as_str()).chain(said).collect();
    texts.into_iter().rev().find_map(|text| {
        // Forwards, since only that way the search goes many bytes at a time. A line that is cut
        // short or garbled is not a fact; one before it may be.
        let codes = finder.find_iter(text.as_bytes()).filter_map(|at| {
            let from = at + needle.len();
            text.get(from..from + CODE_BYTES).filter(|c| is_code(c))
        });
        codes.last()
    })
}

fn is_key(key: &str) -> bool {
    key.strip_prefix('K')
        .is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
}

fn is_code(code: &str) -> bool {
    let bytes = code.as_bytes();
    bytes[..2].iter().all(u8::is_ascii_uppercase)
        && bytes[2] == b'-'
        && bytes[3..].iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::super::tests::plain_ask;
    use super::*;
    use crate::ask::Message;

    fn ask(texts: &[&str]) -> Ask {
        let mut ask = plain_ask("");
        ask.messages = texts
            .iter()
            .map(|text| Message {
                speaker: Speaker::User,
                parts: vec![Part::Text((*text).to_owned())],
            })
            .collect();
        ask
    }

    const ASKED: &str = "What is the code of fact K0317? Answer with the code only.";

    #[test]
    fn the_last_line_about_a_fact_is_its_answer() {
        let recall = Recall::default();
        let facts =
            "words\nFact K0317: the code is QX-48213.\nmore\nFact K0318: the code is AB-00001.\n";
        let answer = |texts: &[&str]| recall.answer(&ask(texts)).unwrap();
        assert_eq!(answer(&[facts, ASKED]), "QX-48213");
        assert_eq!(
            answer(&[facts, "Fact K0317: the code is ZZ-11111.", ASKED]),
            "ZZ-11111"
        );
        assert_eq!(
            answer(&[facts, "Fact K0317: the code is ZZ-1", ASKED]),
            "QX-48213"
        );
        assert_eq!(answer(&["nothing", ASKED]), UNKNOWN);
        assert_eq!(answer(&[&format!("{facts} words → {ASKED}")]), "QX-48213");
    }

    #[test]
    fn what_asks_for_no_fact_is_not_answered_here() {
        let recall = Recall::default();
        for text in [
            "hello",
            "What is the code of fact seven?",
            "What is the code of fact K03",
        ] {
            assert_eq!(recall.answer(&ask(&[text])), None);
        }
        // A question that is not the last message was answered before.
        assert_eq!(recall.answer(&ask(&[ASKED, "thanks"])), None);
    }

    #[test]
    fn every_nth_question_is_dropped_when_told_so() {
        let recall = Recall::new(Some(3), false);
        let right = (0..6).filter(|_| {
            recall
                .answer(&ask(&["Fact K0317: the code is QX-48213.", ASKED]))
                .unwrap()
                == "QX-48213"
        });
        assert_eq!(right.count(), 4);
    }

    #[test]
    fn a_server_that_mixes_up_its_sessions_answers_from_the_other_one_s_prompt() {
        let recall = Recall::new(None, true);
        let first = ask(&["Fact K0317: the code is AA-11111.", ASKED]);
        let second = ask(&["Fact K0317: the code is BB-22222.", ASKED]);
        assert_eq!(recall.answer(&first).unwrap(), "AA-11111");
        assert_eq!(recall.answer(&second).unwrap(), "AA-11111");
        assert_eq!(recall.answer(&first).unwrap(), "BB-22222");
        // Alone it is right again, once the other's questions are long past.
        for _ in 0..IN_MIND {
            recall.answer(&first);
        }
        assert_eq!(recall.answer(&first).unwrap(), "AA-11111");
    }
}
