//! What is known of a response so far, whatever its dialect.

use std::time::Duration;

use crate::clock::Stamp;
use crate::records::AttemptError;

/// More missing fields than this tell nothing new.
const MISSING_KEPT: usize = 16;

/// The kind of generated content in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Content {
    /// Text that the user sees.
    Visible,
    /// Reasoning or tool arguments.
    Hidden,
}

/// Facts of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::gateway) struct Facts {
    pub(in crate::gateway) first_token: Option<Stamp>,
    pub(in crate::gateway) first_text: Option<Stamp>,
    pub(in crate::gateway) last_token: Option<Stamp>,
    pub(in crate::gateway) content_events: u64,
    pub(in crate::gateway) longest_gap: Option<Duration>,
    pub(in crate::gateway) input_tokens: Option<u64>,
    pub(in crate::gateway) cached_tokens: Option<u64>,
    pub(in crate::gateway) output_tokens: Option<u64>,
    pub(in crate::gateway) stop_reason: Option<String>,
    pub(in crate::gateway) missing_fields: Vec<String>,
    pub(in crate::gateway) error: Option<AttemptError>,
    /// The dialect's end mark was seen.
    pub(in crate::gateway) ended: bool,
    /// When a tool call was first named.
    named: Option<Stamp>,
}

impl Facts {
    /// A frame with generated tokens arrived.
    pub(in crate::gateway) fn content(&mut self, at: Stamp, content: Content) {
        self.content_events += 1;
        self.first_token.get_or_insert(at);
        if content == Content::Visible {
            self.first_text.get_or_insert(at);
        }
        if let Some(last) = self.last_token {
            self.longest_gap = self.longest_gap.max(Some(at.since(last)));
        }
        self.last_token = Some(at);
    }

    /// A frame named a tool, without arguments yet.
    ///
    /// Not a token while arguments may follow. For a call that never gets any, and with no other
    /// content, it is the only sign of when generation began.
    pub(super) fn tool_named(&mut self, at: Stamp) {
        self.named.get_or_insert(at);
    }

    /// A required field is not there.
    pub(super) fn missing(&mut self, field: &str) {
        if self.missing_fields.len() < MISSING_KEPT
            && !self.missing_fields.iter().any(|known| known == field)
        {
            self.missing_fields.push(field.to_owned());
        }
    }

    /// Leaves no instant of any token.
    pub(super) fn forget_token_times(&mut self) {
        self.first_token = None;
        self.first_text = None;
        self.last_token = None;
        self.longest_gap = None;
        self.content_events = 0;
        self.named = None;
    }

    /// The response is over.
    pub(super) fn settle(&mut self) {
        if self.first_token.is_none()
            && let Some(named) = self.named.take()
        {
            self.content(named, Content::Hidden);
        }
    }
}

/// A figure that a later report replaces, but not by a zero that only means "not said here".
pub(super) fn replace(known: &mut Option<u64>, reported: Option<u64>) {
    match (reported, &known) {
        (None, _) | (Some(0), Some(_)) => {}
        (Some(value), _) => *known = Some(value),
    }
}
