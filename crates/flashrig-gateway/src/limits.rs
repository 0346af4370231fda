//! Bounds of what a listener takes.

use std::time::Duration;

/// Bounds of what a session takes.
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
    /// answered 408. A connection without a begun head may rest for ever.
    pub head_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 64 * 1024 * 1024,
            head_bytes: 64 * 1024,
            time_limit: None,
            prompt_tokens: None,
            head_time: Duration::from_secs(30),
        }
    }
}
