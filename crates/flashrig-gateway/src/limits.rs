//! Bounds of what a listener takes. Every figure is in this file.

use std::time::Duration;

/// The largest request body, in bytes.
const BODY_BYTES: u64 = 64 * 1024 * 1024;
/// The largest head, in bytes. hyper has a status of its own for an URI that is longer than this,
/// which a head of this size cannot hold.
const HEAD_BYTES: usize = 65_534;
/// From the first byte of a request's head to its last.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// For the rest of a body that nobody wants, so that the refusal arrives and is not lost in a reset.
const DISCARD_TIME: Duration = Duration::from_secs(10);
/// Standing listener: from the end of a request's head to the end of its body. 64 MiB arrive in it
/// at 4.5 Mbit/s.
const BODY_TIME: Duration = Duration::from_secs(120);
/// Standing listener: request bodies that are held at a time, in bytes.
const HELD_BODY_BYTES: u64 = 1024 * 1024 * 1024;
/// Standing listener: connections at a time on which no request was authenticated yet.
const UNAUTHENTICATED: usize = 128;
/// Standing listener: how long such a connection is kept.
const UNAUTHENTICATED_TIME: Duration = Duration::from_secs(30);

/// Bounds of what a listener takes. The default is that of a session, whose one client runs on this
/// machine.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The largest request body, in bytes; larger ones are answered 413.
    pub body_bytes: u64,
    /// The largest request head, in bytes; larger ones are answered 431.
    pub head_bytes: usize,
    /// How long the server may be silent: while connecting, before the response head, and between
    /// two reads of the body. `None`, the default, is no limit, and there is no other on what a
    /// server takes.
    pub time_limit: Option<Duration>,
    /// The longest prompt, in tokens as estimated from the request's bytes; longer ones are
    /// answered 400 in the client's dialect. `None`, the default, is no limit.
    pub prompt_tokens: Option<u64>,
    /// How long a request's head may take from its first byte to its last; slower ones are
    /// answered 408. An authenticated connection without a begun head may rest for ever.
    pub head_time: Duration,
    /// How long a request's body may take from the end of its head; slower ones are answered 408.
    /// `None`, the default, is no limit.
    pub body_time: Option<Duration>,
    /// How long the rest of a refused request's body is read to nowhere.
    pub discard_time: Duration,
    /// How many bytes of request bodies are held at a time; requests above that are answered 503.
    /// A body is held until the server's response begins. `None`, the default, is no limit.
    pub held_body_bytes: Option<u64>,
    /// Bounds of connections that are not authenticated. `None`, the default, is no limit.
    pub unauthenticated: Option<Unauthenticated>,
}

/// Bounds of connections on which no request was authenticated yet. Where a listener has no
/// tokens, every request is that the listener does not refuse for its origin.
#[derive(Clone, Copy, Debug)]
pub struct Unauthenticated {
    /// How many there may be at a time; further ones are answered 503 and closed.
    pub connections: usize,
    /// How long one is kept; it is closed then, after the request that it is in.
    pub time: Duration,
}

impl Limits {
    /// Bounds of a standing listener, whose clients may be anybody.
    pub fn standing() -> Self {
        Self {
            body_time: Some(BODY_TIME),
            held_body_bytes: Some(HELD_BODY_BYTES),
            unauthenticated: Some(Unauthenticated {
                connections: UNAUTHENTICATED,
                time: UNAUTHENTICATED_TIME,
            }),
            ..Self::default()
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: BODY_BYTES,
            head_bytes: HEAD_BYTES,
            time_limit: None,
            prompt_tokens: None,
            head_time: HEAD_TIME,
            body_time: None,
            discard_time: DISCARD_TIME,
            held_body_bytes: None,
            unauthenticated: None,
        }
    }
}
