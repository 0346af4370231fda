//! What `/metrics` and admission control read, and the engine writes.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters that `/metrics` and admission control read.
#[derive(Debug, Default)]
pub struct Counters {
    /// Requests with a slot.
    pub running: AtomicU64,
    /// Requests in line.
    pub waiting: AtomicU64,
    /// Prompt tokens of admitted requests.
    pub prompt_tokens: AtomicU64,
    /// Generated tokens.
    pub generation_tokens: AtomicU64,
    /// Prompt tokens looked up in the prefix cache.
    pub cache_queries: AtomicU64,
    /// Prompt tokens found in it.
    pub cache_hits: AtomicU64,
    /// Generation requests that were refused.
    pub refused: AtomicU64,
}

impl Counters {
    /// Requests in line or with a slot.
    pub fn in_flight(&self) -> u64 {
        self.running.load(Ordering::Relaxed) + self.waiting.load(Ordering::Relaxed)
    }
}
