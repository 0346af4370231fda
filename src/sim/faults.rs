//! Faults on request: the ways in which servers misbehave, for tests of what must notice them.

/// What goes wrong, if anything. The default is nothing.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Refuse requests that would make more than this many queued or running.
    pub overload_above: Option<u64>,
    /// Faults of single answers.
    pub streams: Vec<StreamFault>,
}

/// One answer that goes wrong.
#[derive(Clone, Copy, Debug)]
pub struct StreamFault {
    /// Which generation request, counted from 1 in order of arrival.
    pub request: u64,
    /// After how many tokens.
    pub after_tokens: u32,
    /// What happens then.
    pub kind: StreamFaultKind,
}

/// How an answer goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFaultKind {
    /// The connection is closed in the middle.
    Truncate,
    /// Nothing more comes, and the slot stays taken until the client leaves.
    Stall,
    /// An error event is sent after the 200.
    Error,
}

impl Faults {
    /// The fault of request number `request`.
    pub(super) fn of(&self, request: u64) -> Option<StreamFault> {
        self.streams
            .iter()
            .copied()
            .find(|fault| fault.request == request)
    }
}
