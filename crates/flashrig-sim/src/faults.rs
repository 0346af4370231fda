//! Faults on request: the ways in which servers misbehave, for tests of what must notice them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What goes wrong, if anything. The default is nothing. Requests are counted from 1 in order of
/// arrival, token counts and other side routes left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// Refuse requests that would make more than this many queued or running.
    pub overload_above: Option<u64>,
    /// Requests after this many are accepted, but never get a token; all else goes on.
    pub stall_after_requests: Option<u64>,
    /// From this request on nothing is found in the cache, and nothing stored.
    pub uncached_from_request: Option<u64>,
    /// With each request everything takes longer by this share of its first duration.
    pub slower_each_request: f64,
    /// Requests of these shapes are refused.
    pub refused_shapes: Vec<RefusedShape>,
    /// Every so manieth question for a fact is answered with not knowing it.
    pub drop_fact_every: Option<u64>,
    /// A question for a fact is answered from the prompt of another session that asked for the
    /// same one a moment ago.
    pub answer_from_other_session: bool,
    /// Faults of single answers.
    pub streams: Vec<StreamFault>,
}

/// A shape of requests that some server refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RefusedShape {
    /// A message of the role `system`, wherever it stands.
    SystemInMessages,
    /// A message of the role `system` after the first message.
    SystemNotFirst,
    /// Tools are offered.
    Tools,
    /// A stream is asked for.
    Streaming,
    /// `ignore_eos` or `min_tokens`.
    FixedLength,
}

/// One answer that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamFault {
    /// Which generation request, counted from 1 in order of arrival.
    pub request: u64,
    /// After how many tokens.
    #[serde(default)]
    pub after_tokens: u32,
    /// What happens then.
    pub kind: StreamFaultKind,
}

/// How an answer goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamFaultKind {
    /// The connection is closed in the middle.
    Truncate,
    /// Nothing more comes, and the slot stays taken until the client leaves.
    Stall,
    /// An error event is sent after the 200.
    Error,
}

impl Faults {
    /// These faults, and those of `other` where these say nothing.
    pub(super) fn or(mut self, other: &Self) -> Self {
        self.overload_above = self.overload_above.or(other.overload_above);
        self.stall_after_requests = self.stall_after_requests.or(other.stall_after_requests);
        self.uncached_from_request = self.uncached_from_request.or(other.uncached_from_request);
        if self.slower_each_request == 0.0 {
            self.slower_each_request = other.slower_each_request;
        }
        self.refused_shapes.extend(&other.refused_shapes);
        self.drop_fact_every = self.drop_fact_every.or(other.drop_fact_every);
        self.answer_from_other_session |= other.answer_from_other_session;
        self.streams.extend(&other.streams);
        self
    }

    /// The fault of request number `request`.
    pub(super) fn of(&self, request: u64) -> Option<StreamFault> {
        let single = self.streams.iter().copied();
        let stall = self.stall_after_requests.filter(|after| request > *after);
        single
            .filter(|fault| fault.request == request)
            .chain(stall.map(|_| StreamFault {
                request,
                after_tokens: 0,
                kind: StreamFaultKind::Stall,
            }))
            .next()
    }

    /// Whether the cache fails for request number `request`.
    pub(super) fn uncached(&self, request: u64) -> bool {
        self.uncached_from_request
            .is_some_and(|from| request >= from)
    }
}
