//! An answer, before any dialect has worded it.

use super::ask::{Message, Part, Speaker, ToolCall};
use super::tokens::{self, ANSWER_CHARS};

/// A whole answer: what is said, then at most one tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// Text; may be empty when there is a call.
    pub text: String,
    /// Tool call.
    pub call: Option<ToolCall>,
}

/// One generated token, and what it adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A piece of text.
    Text(&'a str),
    /// The tool call begins: its id and name.
    CallStart,
    /// A piece of the tool call's arguments.
    Arguments(&'a str),
}

/// Why generation stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The model ended its turn.
    EndTurn,
    /// The model wants a tool.
    ToolUse,
    /// The output limit was reached.
    Length,
}

/// What follows an answer that must be longer: one token a word.
const FILLER: &str = " and so on, and on, ";

impl Reply {
    /// An answer of text only.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            call: None,
        }
    }
}

/// Bounds of an answer's length in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// Answers without a tool call are made at least so long.
    pub min: u64,
    /// Answers are cut to this.
    pub max: u64,
}

/// An answer cut to its output limit, ready to be sent.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Id of the response.
    pub id: String,
    /// Model name.
    pub model: String,
    /// Seconds since 1970 at which it was made; a label.
    pub created: i64,
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// The text that is sent.
    pub text: String,
    /// The tool call that is sent, with its arguments as far as they are sent.
    pub call: Option<ToolCall>,
    /// Number of tokens, at least 1.
    pub tokens: usize,
    /// Why it stops after the last of them.
    pub stop: Stop,
}

impl Planned {
    /// Brings `reply` to its length.
    pub fn new(
        id: String,
        model: String,
        prompt_tokens: u64,
        reply: Reply,
        length: Length,
    ) -> Self {
        let size = |tokens: u64| usize::try_from(tokens).unwrap_or(usize::MAX);
        let max = size(length.max).max(1);
        let min = size(length.min).min(max);
        let Reply { mut text, mut call } = reply;
        if text.is_empty() && call.is_none() {
            // An answer without a token has no first token; real models say at least something.
            ".".clone_into(&mut text);
        }
        let mut text_tokens = tokens::answer_tokens(&text);
        let mut stop = match &call {
            Some(_) => Stop::ToolUse,
            None => Stop::EndTurn,
        };
        if call.is_none() && text_tokens < min {
            // The text before it fills up its last token.
            let chars = min * ANSWER_CHARS - text.chars().count();
            text.extend(FILLER.chars().cycle().take(chars));
            text_tokens = min;
            // A model that is not let end goes on to the limit.
            if min == max {
                stop = Stop::Length;
            }
        }
        let call_tokens = |call: &ToolCall| 1 + tokens::answer_tokens(&call.arguments);
        let mut count = text_tokens + call.as_ref().map_or(0, call_tokens);
        if count > max {
            (count, stop) = (max, Stop::Length);
            text.truncate(tokens::first_tokens(&text, max).len());
            // The call itself takes a token.
            match max.saturating_sub(text_tokens) {
                0 => call = None,
                left => {
                    if let Some(call) = &mut call {
                        let sent = tokens::first_tokens(&call.arguments, left - 1).len();
                        call.arguments.truncate(sent);
                    }
                }
            }
        }
        Self {
            id,
            model,
            created: jiff::Timestamp::now().as_second(),
            prompt_tokens,
            text,
            call,
            tokens: count,
            stop,
        }
    }

    /// The answer as the message that the next request will hold.
    pub fn as_message(&self) -> Message {
        let mut parts = Vec::new();
        if !self.text.is_empty() {
            parts.push(Part::Text(self.text.clone()));
        }
        parts.extend(self.call.clone().map(Part::Call));
        Message {
            speaker: Speaker::Assistant,
            parts,
        }
    }
}

/// How far an answer has been sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    text: usize,
    call_began: bool,
    arguments: usize,
}

impl Cursor {
    /// The next token.
    pub fn next<'a>(&mut self, planned: &'a Planned) -> Option<Piece<'a>> {
        let rest = &planned.text[self.text..];
        if !rest.is_empty() {
            let piece = tokens::first_tokens(rest, 1);
            self.text += piece.len();
            return Some(Piece::Text(piece));
        }
        let call = planned.call.as_ref()?;
        if !self.call_began {
            self.call_began = true;
            return Some(Piece::CallStart);
        }
        let piece = tokens::first_tokens(&call.arguments[self.arguments..], 1);
        self.arguments += piece.len();
        (!piece.is_empty()).then_some(Piece::Arguments(piece))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: Length = Length {
        min: 0,
        max: u64::MAX,
    };

    fn planned(reply: Reply, min: u64, max: u64) -> Planned {
        Planned::new("i".into(), "m".into(), 1, reply, Length { min, max })
    }

    fn sent(planned: &Planned) -> Vec<Piece<'_>> {
        let mut cursor = Cursor::default();
        std::iter::from_fn(|| cursor.next(planned)).collect()
    }

    fn calling(text: &str, arguments: &str) -> Reply {
        let call = ToolCall {
            id: "c".into(),
            name: "n".into(),
            arguments: arguments.into(),
        };
        Reply {
            text: text.into(),
            call: Some(call),
        }
    }

    #[test]
    fn an_answer_beyond_the_output_limit_is_cut_and_says_so() {
        let planned = planned(Reply::text("a".repeat(100)), 0, 3);
        assert_eq!((planned.tokens, planned.stop), (3, Stop::Length));
        assert_eq!(planned.text, "a".repeat(12));
        assert_eq!(sent(&planned).len(), 3);
    }

    #[test]
    fn an_empty_answer_still_has_a_token() {
        assert_eq!(planned(Reply::text(""), 0, u64::MAX).tokens, 1);
    }

    #[test]
    fn a_call_is_sent_after_the_text_and_cut_where_the_limit_says() {
        let whole = Planned::new("i".into(), "m".into(), 1, calling("look", "{\"a\":1}"), ANY);
        let pieces = [
            Piece::Text("look"),
            Piece::CallStart,
            Piece::Arguments("{\"a\""),
            Piece::Arguments(":1}"),
        ];
        assert_eq!(sent(&whole), pieces);
        assert_eq!((whole.tokens, whole.stop), (4, Stop::ToolUse));
        for (max, expected) in [(3, &pieces[..3]), (2, &pieces[..2]), (1, &pieces[..1])] {
            let cut = planned(calling("look", "{\"a\":1}"), 0, max);
            assert_eq!(sent(&cut), expected);
            assert_eq!((cut.tokens, cut.stop), (expected.len(), Stop::Length));
        }
    }

    #[test]
    fn an_answer_that_must_be_longer_goes_on_to_exactly_its_length() {
        let fixed = planned(Reply::text("QX-48213"), 30, 30);
        assert_eq!((fixed.tokens, fixed.stop), (30, Stop::Length));
        assert!(fixed.text.starts_with("QX-48213 and so on"));
        assert_eq!(sent(&fixed).len(), 30);
        let at_least = planned(Reply::text("ok"), 7, 30);
        assert_eq!((at_least.tokens, at_least.stop), (7, Stop::EndTurn));
        assert_eq!(planned(Reply::text("x".repeat(80)), 7, 30).tokens, 20);
    }
}
