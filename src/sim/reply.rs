//! An answer, before any dialect has worded it.

use super::ask::{Message, Part, Speaker, ToolCall};
use super::tokens;

/// A whole answer: what is said, then at most one tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// Text; may be empty when there is a call.
    pub text: String,
    /// Tool call.
    pub call: Option<ToolCall>,
}

/// One generated token, and what it adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A piece of text.
    Text(String),
    /// The tool call begins: its id and name.
    CallStart,
    /// A piece of the tool call's arguments.
    Arguments(String),
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

impl Reply {
    /// An answer of text only.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            call: None,
        }
    }

    /// The tokens of the answer in order; never none.
    pub fn pieces(&self) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = tokens::pieces(&self.text)
            .into_iter()
            .map(Piece::Text)
            .collect();
        if let Some(call) = &self.call {
            pieces.push(Piece::CallStart);
            pieces.extend(
                tokens::pieces(&call.arguments)
                    .into_iter()
                    .map(Piece::Arguments),
            );
        }
        if pieces.is_empty() {
            // An answer without a token has no first token; real models say at least something.
            pieces.push(Piece::Text(".".to_owned()));
        }
        pieces
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

/// An answer cut to its output limit, ready to be sent.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Id of the response.
    pub id: String,
    /// Model name.
    pub model: String,
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// The tool call, for its id and name.
    pub call: Option<ToolCall>,
    /// Tokens in order.
    pub pieces: Vec<Piece>,
    /// Why it stops after the last of them.
    pub stop: Stop,
}

impl Planned {
    /// Cuts `reply` to `limit` tokens.
    pub fn new(id: String, model: String, prompt_tokens: u64, reply: &Reply, limit: u64) -> Self {
        let mut pieces = reply.pieces();
        let natural = if reply.call.is_some() {
            Stop::ToolUse
        } else {
            Stop::EndTurn
        };
        let limit = usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
        let stop = if pieces.len() > limit {
            Stop::Length
        } else {
            natural
        };
        pieces.truncate(limit);
        Self {
            id,
            model,
            prompt_tokens,
            call: reply.call.clone(),
            pieces,
            stop,
        }
    }

    /// The text that is sent, after the cut.
    pub fn sent_text(&self) -> String {
        self.pieces
            .iter()
            .filter_map(|p| {
                if let Piece::Text(t) = p {
                    Some(t.as_str())
                } else {
                    None
                }
            })
            .collect()
    }

    /// The tool call that is sent, with its arguments after the cut.
    pub fn sent_call(&self) -> Option<ToolCall> {
        let call = self
            .call
            .as_ref()
            .filter(|_| self.pieces.contains(&Piece::CallStart))?;
        let arguments = self.pieces.iter().filter_map(|p| {
            if let Piece::Arguments(t) = p {
                Some(t.as_str())
            } else {
                None
            }
        });
        Some(ToolCall {
            arguments: arguments.collect(),
            ..call.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_beyond_the_output_limit_is_cut_and_says_so() {
        let planned = Planned::new("i".into(), "m".into(), 1, &Reply::text("a".repeat(100)), 3);
        assert_eq!((planned.pieces.len(), planned.stop), (3, Stop::Length));
        assert_eq!(planned.sent_text(), "a".repeat(12));
    }

    #[test]
    fn an_empty_answer_still_has_a_token() {
        assert_eq!(Reply::text("").pieces().len(), 1);
    }
}
