//! How late the process's own event loop is: what the instrument adds to every instant it takes.
//!
//! A thread puts an instant into a local socket again and again, and a task of the runtime reads it
//! there, as every byte of a request or an answer is read. The time between is the lag. A timer
//! within the runtime would not do: those are only good to a millisecond or two.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream as Writing;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream as Reading;
use tokio::task::JoinHandle;

use flashrig_clock::Stamp;

/// Bucket `n` ends at this many microseconds times [`GROWTH`] to the power `n`.
const FIRST_BUCKET_US: f64 = 1.0;
/// Percentiles are good to a tenth.
const GROWTH: f64 = 1.1;
/// The last one ends beyond a minute.
const BUCKETS: usize = 190;

/// How late the event loop was over some time, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lateness {
    /// Half of the time it was at most this late.
    pub p50_ms: f64,
    /// 99% of the time it was at most this late.
    pub p99_ms: f64,
    /// It was never later than this.
    pub max_ms: f64,
}

/// Measures the lag of the runtime it was started in until it is dropped.
#[derive(Debug)]
pub struct LagMeter {
    seen: Arc<Mutex<Seen>>,
    reading: JoinHandle<()>,
}

impl LagMeter {
    /// Starts measuring, a reading every `period`: each costs some 0.1 ms of CPU. `report` is called
    /// with the lateness of each, in seconds.
    ///
    /// # Errors
    /// The system gives no socket or no thread.
    pub fn start(period: Duration, report: impl Fn(f64) + Send + 'static) -> io::Result<Self> {
        let (writing, reading) = Writing::pair()?;
        reading.set_nonblocking(true)?;
        let mut reading = Reading::from_std(reading)?;
        std::thread::Builder::new()
            .name("lag".to_owned())
            .spawn(move || write_stamps(writing, period))?;
        let seen = Arc::new(Mutex::new(Seen::default()));
        let noting = Arc::clone(&seen);
        let reading = tokio::spawn(async move {
            while let Ok(stamp) = reading.read_u64().await {
                let late = Stamp::now().since(Stamp(stamp));
                noting.lock().note(late);
                report(late.as_secs_f64());
            }
        });
        Ok(Self { seen, reading })
    }

    /// The lag since the last call; `None` when nothing was measured since.
    pub fn take(&self) -> Option<Lateness> {
        std::mem::take(&mut *self.seen.lock()).summary()
    }
}

impl Drop for LagMeter {
    fn drop(&mut self) {
        // Its socket closes, which ends the thread.
        self.reading.abort();
    }
}

/// A loop that stands still finds the instants of that time when it goes on, so every part of the
/// time counts alike.
fn write_stamps(mut to: Writing, period: Duration) {
    loop {
        std::thread::sleep(period);
        if to.write_all(&Stamp::now().0.to_be_bytes()).is_err() {
            return;
        }
    }
}

#[derive(Debug)]
struct Seen {
    counts: [u32; BUCKETS],
    max: Duration,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            counts: [0; BUCKETS],
            max: Duration::ZERO,
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
    }

    fn summary(&self) -> Option<Lateness> {
        let all: u64 = self.counts.iter().map(|n| u64::from(*n)).sum();
        if all == 0 {
            return None;
        }
        let max_ms = self.max.as_secs_f64() * 1e3;
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
        let lag = seen.summary().unwrap();
        assert!((500.0..=550.0).contains(&lag.p50_ms), "{lag:?}");
        assert!((990.0..=1000.0).contains(&lag.p99_ms), "{lag:?}");
        assert_eq!(lag.max_ms, 1000.0);
    }

    #[test]
    fn nothing_measured_is_unknown_and_never_zero() {
        assert_eq!(Seen::default().summary(), None);
    }

    /// Waits for `wanted` in what the meter reports.
    async fn reported(
        reported: &mut tokio::sync::mpsc::UnboundedReceiver<f64>,
        wanted: impl Fn(f64) -> bool,
    ) {
        let waiting = async { while !wanted(reported.recv().await.unwrap()) {} };
        let bound = Duration::from_secs(60);
        tokio::time::timeout(bound, waiting).await.unwrap();
    }

    #[tokio::test]
    async fn a_loop_that_is_held_up_shows_it_and_the_next_figure_starts_anew() {
        let (report, mut received) = tokio::sync::mpsc::unbounded_channel();
        let meter = LagMeter::start(Duration::from_millis(10), move |late| {
            let _ = report.send(late);
        })
        .unwrap();
        reported(&mut received, |_| true).await;
        // This test's runtime has one thread, so this stops the loop.
        std::thread::sleep(Duration::from_millis(200));
        reported(&mut received, |late| late > 0.15).await;
        let lag = meter.take().unwrap();
        assert!(lag.max_ms > 150.0 && lag.p99_ms <= lag.max_ms, "{lag:?}");
        while received.try_recv().is_ok() {}
        reported(&mut received, |_| true).await;
        assert!(meter.take().is_some());
    }
}
