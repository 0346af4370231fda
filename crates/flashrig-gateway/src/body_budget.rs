//! How many bytes of request bodies are held at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is left for request bodies. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct BodyBudget(Arc<AtomicU64>);

/// A request's part of the budget; dropping it gives it back.
#[derive(Debug)]
pub(super) struct HeldBytes {
    budget: BodyBudget,
    bytes: u64,
}

impl BodyBudget {
    /// A budget of `limit` bytes; `None` is as good as none.
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self(Arc::new(AtomicU64::new(limit.unwrap_or(u64::MAX))))
    }

    /// A request that holds nothing yet.
    pub(super) fn request(&self) -> HeldBytes {
        HeldBytes {
            budget: self.clone(),
            bytes: 0,
        }
    }
}

impl HeldBytes {
    /// Takes `bytes` more; `false` when they are not there.
    pub(super) fn take(&mut self, bytes: u64) -> bool {
        let left = &self.budget.0;
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(bytes)
        });
        if taken.is_ok() {
            self.bytes += bytes;
        }
        taken.is_ok()
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.budget.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_takes_no_more_than_is_left_and_gives_back_what_it_took() {
        let budget = BodyBudget::new(Some(10));
        let (mut one, mut other) = (budget.request(), budget.request());
        assert!(one.take(4) && one.take(4) && other.take(2));
        assert!(!other.take(1));
        drop(one);
        assert!(other.take(8) && !other.take(1));
    }
}
