//! What is known of a response so far, whatever its dialect.

use std::time::Duration;

use serde_json::Value;

use super::text;
use super::tools::Calls;

use crate::{ErrorDetail, Oddity, ToolCall};

/// More missing fields than this tell nothing new.
const MISSING_KEPT: usize = 16;

/// Gaps between content events that are kept: 18 hours of a token each second, in 256 KiB.
const GAPS_KEPT: usize = 64 * 1024;

/// Bytes kept of each kind of text, where any is kept.
const GENERATED_KEPT: usize = 256 * 1024;

/// Characters kept of the name of a model.
const MODEL_CHARS: usize = 200;

/// The kind of generated content in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text that the user sees.
    Visible,
    /// Reasoning or tool arguments.
    Hidden,
}

/// What was generated, as far as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    /// What the user sees.
    pub visible: String,
    /// Reasoning.
    pub hidden: String,
}

impl Generated {
    fn add(to: &mut String, text: &str) {
        if to.len() + text.len() <= GENERATED_KEPT {
            to.push_str(text);
        }
    }
}

/// Facts of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// When the first generated token of any kind came.
    pub first_token: Option<Duration>,
    /// When the first visible text came.
    pub first_text: Option<Duration>,
    /// When the last generated token came.
    pub last_token: Option<Duration>,
    /// Frames that carried generated tokens.
    pub content_events: u64,
    /// The longest time between two of them.
    pub longest_gap: Option<Duration>,
    /// Microseconds from each content event to the next.
    pub event_gaps_us: Vec<u32>,
    /// There were more than are kept.
    pub event_gaps_cut: bool,
    /// Prompt tokens, cached ones included, from the usage.
    pub input_tokens: Option<u64>,
    /// Prompt tokens that came from the server's cache, from the usage.
    pub cached_tokens: Option<u64>,
    /// Generated tokens, reasoning included, from the usage.
    pub output_tokens: Option<u64>,
    /// Those of them that are reasoning.
    pub reasoning_tokens: Option<u64>,
    /// The model that says it answers.
    pub model: Option<String>,
    /// How long the server says that prefill took.
    pub server_prompt: Option<Duration>,
    /// How long the server says that decoding took.
    pub server_decode: Option<Duration>,
    /// Why the model stopped, as the server put it.
    pub stop_reason: Option<String>,
    /// Fields that the protocol requires and the stream lacks.
    pub missing_fields: Vec<String>,
    /// Tool calls, put together from their fragments.
    pub tool_calls: Vec<ToolCall>,
    /// What the server said went wrong.
    pub error: Option<ErrorDetail>,
    /// The dialect's end mark was seen.
    pub ended: bool,
    /// What was generated, where that is kept.
    pub generated: Option<Generated>,
    /// When a tool call was first named.
    named: Option<Duration>,
    /// The tool calls so far, and everything odd.
    pub(crate) calls: Calls,
    /// The end of the visible text, for markup that is cut into pieces.
    tail: String,
    /// The visible text has the markup of a tool call.
    has_markup: bool,
}

/// What models write for a tool call where their server does not read it.
const MARKUP: [&str; 5] = [
    "<tool_call>",
    "<function=",
    "[TOOL_CALLS]",
    "<|tool_call",
    "<|python_tag|>",
];
/// The longest markup, less one.
const TAIL: usize = 14;

impl Facts {
    /// A frame with generated tokens arrived.
    pub fn content(&mut self, at: Duration, content: Content) {
        self.content_events += 1;
        self.first_token.get_or_insert(at);
        if content == Content::Visible {
            self.first_text.get_or_insert(at);
        }
        if let Some(last) = self.last_token {
            self.longest_gap = self.longest_gap.max(Some(at.saturating_sub(last)));
            self.gap(last, at);
        }
        self.last_token = Some(at);
    }

    /// An object of the answer names the model that answers.
    pub(crate) fn answered_by(&mut self, answer: &Value) {
        if self.model.is_none() {
            self.model = text(answer, "model").map(|name| name.chars().take(MODEL_CHARS).collect());
        }
    }

    /// Text was generated that the user sees.
    pub(crate) fn says(&mut self, text: &str) {
        if !self.has_markup {
            self.tail.push_str(text);
            self.has_markup = MARKUP.iter().any(|mark| self.tail.contains(mark));
            let mut cut = self.tail.len().saturating_sub(TAIL);
            while !self.tail.is_char_boundary(cut) {
                cut += 1;
            }
            self.tail.drain(..cut);
        }
        if let Some(said) = &mut self.generated {
            Generated::add(&mut said.visible, text);
        }
    }

    /// Reasoning was generated.
    pub(crate) fn thinks(&mut self, text: &str) {
        if let Some(said) = &mut self.generated {
            Generated::add(&mut said.hidden, text);
        }
    }

    /// Keeps a gap as the difference of two rounded instants, so that rounding does not add up.
    fn gap(&mut self, last: Duration, at: Duration) {
        if self.event_gaps_us.len() == GAPS_KEPT {
            self.event_gaps_cut = true;
            return;
        }
        let first = self.first_token.unwrap_or(last);
        let micros = |at: Duration| at.saturating_sub(first).as_micros();
        let gap = micros(at).saturating_sub(micros(last));
        self.event_gaps_us
            .push(u32::try_from(gap).unwrap_or(u32::MAX));
    }

    /// Everything odd about the answer, each kind once.
    pub fn oddities(&self) -> &[Oddity] {
        &self.calls.oddities
    }

    /// A frame named a tool, without arguments yet.
    ///
    /// Not a token while arguments may follow. For a call that never gets any, and with no other
    /// content, it is the only sign of when generation began.
    pub(crate) fn tool_named(&mut self, at: Duration) {
        self.named.get_or_insert(at);
    }

    /// A required field is not there.
    pub(crate) fn missing(&mut self, field: &str) {
        if self.missing_fields.len() < MISSING_KEPT
            && !self.missing_fields.iter().any(|known| known == field)
        {
            self.missing_fields.push(field.to_owned());
        }
    }

    /// Leaves no instant of any token.
    pub(crate) fn forget_token_times(&mut self) {
        self.first_token = None;
        self.first_text = None;
        self.last_token = None;
        self.longest_gap = None;
        self.event_gaps_us = Vec::new();
        self.event_gaps_cut = false;
        self.content_events = 0;
        self.named = None;
    }

    /// The response is over.
    pub(crate) fn settle(&mut self) {
        self.tool_calls = self.calls.settle(self.ended);
        if self.first_token.is_none()
            && let Some(named) = self.named.take()
        {
            self.content(named, Content::Hidden);
        }
        self.doubt();
    }

    /// Holds what the answer says against what came.
    fn doubt(&mut self) {
        if self.ended && self.output_tokens.is_some_and(|n| n < self.content_events) {
            self.calls.odd(Oddity::UsageLeavesTokensOut);
        }
        if self.has_markup && self.tool_calls.is_empty() {
            self.calls.odd(Oddity::ToolCallAsText);
        }
        let says_none = matches!(self.stop_reason.as_deref(), Some("stop" | "end_turn"));
        if says_none && !self.tool_calls.is_empty() {
            self.calls.odd(Oddity::StopContradictsToolCalls);
        }
    }
}

/// A figure that a later report replaces, but not by a zero that only means "not said here".
pub(crate) fn replace(known: &mut Option<u64>, reported: Option<u64>) {
    match (reported, &known) {
        (None, _) | (Some(0), Some(_)) => {}
        (Some(value), _) => *known = Some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_us(us: u64) -> Duration {
        Duration::from_nanos(us * 1000)
    }

    #[test]
    fn the_gaps_of_all_events_give_back_their_arrivals_and_the_longest_stall() {
        let mut facts = Facts::default();
        for ns in [5_000_400_u64, 5_000_900, 5_001_700, 9_000_000, 9_000_400] {
            facts.content(Duration::from_nanos(ns), Content::Hidden);
        }
        assert_eq!(facts.event_gaps_us, [0, 1, 3998, 1], "no rounding adds up");
        assert_eq!(
            facts.longest_gap,
            Some(at_us(9000).saturating_sub(Duration::from_nanos(5_001_700)))
        );
    }

    #[test]
    fn the_gaps_kept_are_bounded_and_the_cut_is_told() {
        let mut facts = Facts::default();
        for us in 0..=GAPS_KEPT as u64 {
            facts.content(at_us(us), Content::Hidden);
        }
        assert!(!facts.event_gaps_cut);
        facts.content(at_us(u64::from(u32::MAX)), Content::Hidden);
        assert!(facts.event_gaps_cut && facts.event_gaps_us.len() == GAPS_KEPT);
    }
}
