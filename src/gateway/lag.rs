//! How late the gateway's own event loop is: what the instrument adds to every instant it takes.
//!
//! A task sleeps on and on and notes how much later than asked it woke. The timer itself is only
//! good to a millisecond, by an amount that stays the same for a meter that wakes in step; the
//! least lateness seen is therefore the timer's, and taken off.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::clock::Stamp;

/// How often the loop is tried.
const PERIOD: Duration = Duration::from_millis(10);
/// The first wakes only tell what the timer's own part is.
const SETTLING: u32 = 20;
/// Bucket `n` ends at this many microseconds times [`GROWTH`] to the power `n`.
const FIRST_BUCKET_US: f64 = 10.0;
/// Percentiles are good to a tenth.
const GROWTH: f64 = 1.1;
/// The last one ends beyond a minute.
const BUCKETS: usize = 170;

/// How late the event loop was over some time, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lateness {
    /// Half of the time it was no later.
    pub p50_ms: f64,
    /// 99% of the time it was no later.
    pub p99_ms: f64,
    /// It was never later.
    pub max_ms: f64,
}

/// Measures the lag of the runtime it was started in until it is dropped.
#[derive(Debug)]
pub struct LagMeter {
    seen: Arc<Mutex<Seen>>,
    trying: JoinHandle<()>,
}

impl LagMeter {
    /// Starts measuring. `tell` hears of each wake's lateness, in seconds.
    pub fn start(tell: impl Fn(f64) + Send + 'static) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let noting = Arc::clone(&seen);
        let trying = tokio::spawn(async move {
            let mut least = Duration::MAX;
            let mut wakes = 0;
            let mut ticks = interval(PERIOD);
            // Keeps in step with the first tick, so that the timer's part stays the same.
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            loop {
                let due = ticks.tick().await;
                let late = due.elapsed();
                least = least.min(late);
                if wakes < SETTLING {
                    wakes += 1;
                    continue;
                }
                let late = late.saturating_sub(least);
                lock(&noting).note(late);
                tell(late.as_secs_f64());
            }
        });
        Self { seen, trying }
    }

    /// The lag since the last call; `None` when nothing was measured since.
    ///
    /// A loop that stands still cannot say so itself, so a wake that is overdue counts.
    pub fn take(&self) -> Option<Lateness> {
        let mut seen = lock(&self.seen);
        let since = seen.last.map(|last| Stamp::now().since(last));
        let afresh = Seen {
            last: seen.last,
            ..Seen::default()
        };
        let taken = std::mem::replace(&mut *seen, afresh);
        drop(seen);
        taken.summary(since.and_then(|since| since.checked_sub(PERIOD * 2)))
    }
}

impl Drop for LagMeter {
    fn drop(&mut self) {
        self.trying.abort();
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Seen {
    counts: [u32; BUCKETS],
    max: Duration,
    last: Option<Stamp>,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            counts: [0; BUCKETS],
            max: Duration::ZERO,
            last: None,
        }
    }
}

impl Seen {
    fn note(&mut self, late: Duration) {
        let us = late.as_secs_f64() * 1e6;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and cut to the last bucket"
        )]
        let index = ((us / FIRST_BUCKET_US).max(1.0).ln() / GROWTH.ln()).ceil() as usize;
        if let Some(count) = self.counts.get_mut(index.min(BUCKETS - 1)) {
            *count = count.saturating_add(1);
        }
        self.max = self.max.max(late);
        self.last = Some(Stamp::now());
    }

    fn summary(&self, overdue: Option<Duration>) -> Option<Lateness> {
        let all: u64 = self.counts.iter().map(|n| u64::from(*n)).sum();
        if all == 0 && overdue.is_none() {
            return None;
        }
        let max = self.max.max(overdue.unwrap_or_default());
        let max_ms = max.as_secs_f64() * 1e3;
        let at = |share: f64| {
            let mut below = 0;
            for (index, count) in (0i32..).zip(self.counts) {
                below += u64::from(count);
                if below as f64 >= share * all as f64 && below > 0 {
                    return (FIRST_BUCKET_US * GROWTH.powi(index) / 1e3).min(max_ms);
                }
            }
            max_ms
        };
        Some(Lateness {
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            max_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_good_to_a_tenth_and_the_maximum_is_exact() {
        let mut seen = Seen::default();
        for ms in 1..=1000 {
            seen.note(Duration::from_millis(ms));
        }
        let lag = seen.summary(None).unwrap();
        assert!((500.0..=550.0).contains(&lag.p50_ms), "{lag:?}");
        assert!((990.0..=1000.0).contains(&lag.p99_ms), "{lag:?}");
        assert_eq!(lag.max_ms, 1000.0);
    }

    #[test]
    fn nothing_measured_is_unknown_and_never_zero() {
        assert_eq!(Seen::default().summary(None), None);
        let stuck = Seen::default().summary(Some(Duration::from_secs(2)));
        assert_eq!(stuck.map(|lag| lag.max_ms), Some(2000.0));
    }

    /// Waits for `wanted` in what the meter tells.
    async fn told(
        told: &mut tokio::sync::mpsc::UnboundedReceiver<f64>,
        wanted: impl Fn(f64) -> bool,
    ) {
        let waiting = async { while !wanted(told.recv().await.unwrap()) {} };
        let bound = Duration::from_secs(60);
        tokio::time::timeout(bound, waiting).await.unwrap();
    }

    #[tokio::test]
    async fn a_loop_that_is_held_up_shows_it_and_the_next_figure_starts_anew() {
        let (tell, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let meter = LagMeter::start(move |late| {
            let _ = tell.send(late);
        });
        told(&mut heard, |_| true).await;
        // This test's runtime has one thread, so this stops the loop.
        std::thread::sleep(Duration::from_millis(200));
        told(&mut heard, |late| late > 0.15).await;
        let lag = meter.take().unwrap();
        assert!(lag.max_ms > 150.0 && lag.p99_ms <= lag.max_ms, "{lag:?}");
        told(&mut heard, |_| true).await;
        assert!(meter.take().is_some());
    }
}
