//! How far the answer to a request in flight has come.

use std::sync::atomic::{AtomicU64, Ordering};

use flashrig_clock::Stamp;

/// How far the answer to a request has come. It is updated with every read from the server and can
/// be looked at whenever somebody wants to know, so that no message is sent for a token.
#[derive(Debug)]
pub struct RequestProgress {
    arrived: Stamp,
    first: AtomicU64,
    last: AtomicU64,
    /// Written after the instants: where it is not 0, they are there.
    content_events: AtomicU64,
}

/// Progress at one moment, after the first generated token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generated {
    /// When the first generated token was read from the server's socket.
    pub first: Stamp,
    /// When the latest content event was read.
    pub last: Stamp,
    /// Content events so far. Most servers put one token into each, but not all.
    pub content_events: u64,
}

impl RequestProgress {
    /// Of a request whose head was read at `arrived`.
    pub fn new(arrived: Stamp) -> Self {
        Self {
            arrived,
            first: AtomicU64::new(0),
            last: AtomicU64::new(0),
            content_events: AtomicU64::new(0),
        }
    }

    /// When the request's head was read.
    pub fn arrived(&self) -> Stamp {
        self.arrived
    }

    /// What was generated so far; `None` before the first token.
    pub fn generated(&self) -> Option<Generated> {
        let content_events = self.content_events.load(Ordering::Acquire);
        (content_events > 0).then(|| Generated {
            first: Stamp(self.first.load(Ordering::Relaxed)),
            last: Stamp(self.last.load(Ordering::Relaxed)),
            content_events,
        })
    }

    /// Takes in a read that brought the count of content events to `content_events`.
    pub fn record(&self, content_events: u64, at: Stamp) {
        if self.content_events.load(Ordering::Relaxed) == 0 {
            self.first.store(at.0, Ordering::Relaxed);
        }
        self.last.store(at.0, Ordering::Relaxed);
        self.content_events.store(content_events, Ordering::Release);
    }
}

impl Generated {
    /// Content events per second since the first one, `None` in its first 0.2 s.
    pub fn events_per_s(&self, now: Stamp) -> Option<f64> {
        let seconds = now.since(self.first).as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
        let events = self.content_events.saturating_sub(1) as f64;
        (seconds >= 0.2).then(|| events / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_generated_before_the_first_read_and_the_rate_is_of_what_came_after_the_first() {
        let at = |ms: u64| Stamp(ms * 1_000_000);
        let progress = RequestProgress::new(at(0));
        assert_eq!(progress.generated(), None);
        progress.record(1, at(1000));
        assert_eq!(progress.generated().unwrap().events_per_s(at(1100)), None);
        progress.record(39, at(2000));
        let generated = progress.generated().unwrap();
        assert_eq!((generated.first, generated.last), (at(1000), at(2000)));
        assert_eq!(generated.events_per_s(at(2000)), Some(38.0));
    }
}
