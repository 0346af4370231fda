//! What observers get while a session runs. Cheap: one small value per event, nothing allocated
//! for a token.

use std::sync::Arc;

use bytes::Bytes;

use super::progress::RequestProgress;
use flashrig_clock::Stamp;
use flashrig_record::{Attempt, Dialect, Role};

/// Something that happened at the gateway, as it happens.
#[derive(Clone, Debug)]
pub enum GatewayEvent {
    /// A request was read whole and waits at the gate.
    Held {
        /// The attempt's number within the session.
        number: u32,
        /// Its provisional role.
        role: Role,
        /// How far its answer has come.
        progress: Arc<RequestProgress>,
        /// When.
        at: Stamp,
    },
    /// A request was read whole and goes to the server.
    Started {
        /// The attempt's number within the session.
        number: u32,
        /// HTTP method.
        method: String,
        /// Path without query.
        path: String,
        /// Protocol.
        dialect: Dialect,
        /// Its provisional role; it may be settled otherwise at the session's end.
        role: Role,
        /// How far its answer has come.
        progress: Arc<RequestProgress>,
        /// Whether it asks for its answer as a stream.
        stream: bool,
        /// The body as the client sent it, before any nonce.
        body: Bytes,
        /// When.
        at: Stamp,
    },
    /// Bytes of an answer pass to the client. Cheap to hold; who keeps many should copy them, as
    /// they share the buffer that they were read into.
    Answer {
        /// The attempt's number.
        number: u32,
        /// The bytes, as the server sent them.
        bytes: Bytes,
        /// Whether they are compressed.
        encoded: bool,
    },
    /// The first generated token of an attempt passed.
    FirstToken {
        /// The attempt's number.
        number: u32,
        /// When it was read from the server's socket.
        at: Stamp,
    },
    /// More generated content passed; at most one event per read from the server.
    Content {
        /// The attempt's number.
        number: u32,
        /// Content events of this attempt so far.
        content_events: u64,
        /// When they were read from the server's socket.
        at: Stamp,
    },
    /// An attempt ended, however it did. Sent exactly once per attempt.
    Finished(Box<Attempt>),
}

/// Observes a session. It is called from the forwarding path, so it must not block. Whoever only
/// shows progress reads [`RequestProgress`] instead of passing on [`GatewayEvent::Content`].
pub trait Observer: Send + Sync + 'static {
    /// Takes one event.
    fn event(&self, event: GatewayEvent);
}

impl<F> Observer for F
where
    F: Fn(GatewayEvent) + Send + Sync + 'static,
{
    fn event(&self, event: GatewayEvent) {
        self(event);
    }
}

/// A snapshot of what a session is doing, for watchdogs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Requests whose head was read and which have not ended.
    pub in_flight: u32,
    /// Attempts so far, ended ones included.
    pub attempts: u32,
    /// When an attempt last began or ended; the session's opening before the first.
    pub last_change: Stamp,
    /// When the head of the latest attempt was read.
    pub last_begun: Option<Stamp>,
    /// When the first request carrying the session's token arrived.
    pub first_request: Option<Stamp>,
    /// When the first generation request (not a probe) arrived.
    pub first_generation: Option<Stamp>,
}
