//! The longest prompt that a session may send, if there is a limit, and how long a prompt is taken
//! to be.
//!
//! Asking the server to count would load the very thing that is measured, and not every server
//! can. So the length is an estimate: the request's bytes over the bytes per token that this
//! session's answered requests have shown, by the server's own usage; before the first, four.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// Bytes of request per token of prompt, before the server has told any.
const BYTES_PER_TOKEN: u64 = 4;

/// A session's limit, if it has one, and what it has learnt.
#[derive(Debug)]
pub(super) struct PromptCap {
    limit: Option<u64>,
    seen: Mutex<Seen>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    bytes: u64,
    tokens: u64,
}

impl PromptCap {
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self {
            limit,
            seen: Mutex::default(),
        }
    }

    /// One where somebody needs it: there is a limit, or token counts are answered.
    pub(super) fn when_needed(limit: Option<u64>, answers_probes: bool) -> Option<Arc<Self>> {
        (limit.is_some() || answers_probes).then(|| Arc::new(Self::new(limit)))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock()
    }

    /// Learns from an answered request. Larger prompts weigh more.
    pub(super) fn learn(&self, bytes: u64, tokens: u64) {
        if bytes > 0 && tokens > 0 {
            let mut seen = self.seen();
            seen.bytes = seen.bytes.saturating_add(bytes);
            seen.tokens = seen.tokens.saturating_add(tokens);
        }
    }

    /// The estimated tokens and the limit, when a request of `bytes` is above it.
    pub(super) fn exceeded(&self, bytes: u64) -> Option<(u64, u64)> {
        let limit = self.limit?;
        let tokens = self.estimate(bytes);
        (tokens > limit).then_some((tokens, limit))
    }

    /// The tokens of a request of `bytes`.
    pub(super) fn estimate(&self, bytes: u64) -> u64 {
        let seen = *self.seen();
        let (per_bytes, per_tokens) = match seen.bytes {
            0 => (BYTES_PER_TOKEN, 1),
            known => (known, seen.tokens),
        };
        let tokens = u128::from(bytes) * u128::from(per_tokens);
        u64::try_from(tokens.div_ceil(u128::from(per_bytes))).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_bytes_are_a_token_until_the_server_has_told_better() {
        let cap = PromptCap::new(Some(100));
        assert_eq!(cap.exceeded(400), None);
        assert_eq!(cap.exceeded(401), Some((101, 100)));
        cap.learn(5000, 1000);
        assert_eq!(cap.exceeded(500), None);
        assert_eq!(cap.exceeded(505), Some((101, 100)));
    }

    #[test]
    fn without_a_limit_nothing_is_above_it_and_lengths_are_estimated_all_the_same() {
        let cap = PromptCap::new(None);
        assert_eq!((cap.exceeded(u64::MAX), cap.estimate(10)), (None, 3));
    }

    #[test]
    fn a_usage_of_nothing_teaches_nothing() {
        let cap = PromptCap::new(Some(10));
        cap.learn(0, 0);
        cap.learn(5000, 0);
        assert_eq!(cap.exceeded(44), Some((11, 10)));
    }
}
