//! What the client itself did over a span of time: whether the figures are the server's.
//!
//! The client was the bottleneck when its own event loop was more than [`LAG_MS`] late at the 99th
//! percentile, or later than [`LAG_SHARE`] of the median request took (on a simulated server at a
//! high speed a whole turn takes milliseconds), or when its process used more than [`CPU_SHARE`]
//! of a processor. Lag is measured in the runtime that the span was begun in.

use std::io;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

use super::Client;
use flashrig_clock::{Seconds, Stamp};
use flashrig_http::LagMeter;
use flashrig_record::{ClientHonesty, RigLag};

/// Milliseconds of lag that may be.
pub const LAG_MS: f64 = 5.0;
/// How often the loop is tried for its lag; a combination may be over in a second.
const LAG_PERIOD: Duration = Duration::from_millis(10);
/// Share of the median request's wall that lag may be.
pub const LAG_SHARE: f64 = 0.05;
/// Share of one processor that the client's process may use.
pub const CPU_SHARE: f64 = 0.9;

/// Measures the client until it is finished.
#[derive(Debug)]
pub struct Meter {
    client: Client,
    lag: LagMeter,
    /// `None` where the process is not the client's alone.
    cpu: Option<Duration>,
    began: Stamp,
}

impl Meter {
    /// Begins a span. `shared` says that an embedded server shares the process, whose CPU time is
    /// then not the client's.
    ///
    /// # Errors
    /// The system gives no socket or no thread.
    pub fn start(client: &Client, shared: bool) -> io::Result<Self> {
        client.shared().span_begins();
        Ok(Self {
            client: client.clone(),
            lag: LagMeter::start(LAG_PERIOD, |_| ())?,
            cpu: if shared { None } else { cpu() },
            began: Stamp::now(),
        })
    }

    /// Ends it.
    pub fn finish(self) -> ClientHonesty {
        let wall = Stamp::now().since(self.began);
        let used = self.cpu.and_then(|before| cpu()?.checked_sub(before));
        let (peak, median_wall_s) = self.client.shared().span_ends();
        let lag = self.lag.take().map(|lag| RigLag {
            p50: lag.p50_ms,
            p99: lag.p99_ms,
            max: lag.max_ms,
        });
        let cpu_share = used
            .filter(|_| !wall.is_zero())
            .map(|used| used.as_secs_f64() / wall.as_secs_f64());
        ClientHonesty {
            lag_ms: lag,
            max_in_flight: Some(peak),
            cpu_s: used.map(Seconds::from),
            cpu_share,
            bottleneck: is_bottleneck(lag.map(|lag| lag.p99), median_wall_s, cpu_share),
        }
    }
}

/// Whether the client was the bottleneck, as far as is known.
fn is_bottleneck(
    lag_p99_ms: Option<f64>,
    median_wall_s: Option<f64>,
    cpu_share: Option<f64>,
) -> bool {
    let bound = median_wall_s.map_or(LAG_MS, |wall| LAG_MS.min(wall * 1e3 * LAG_SHARE));
    lag_p99_ms.is_some_and(|lag| lag > bound) || cpu_share.is_some_and(|share| share > CPU_SHARE)
}

/// CPU time of this process so far, user and system.
fn cpu() -> Option<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    u64::try_from(micros).ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::is_bottleneck;

    #[test]
    fn a_late_loop_or_a_full_processor_make_the_client_the_bottleneck() {
        assert!(!is_bottleneck(Some(4.9), Some(1.0), Some(0.5)));
        assert!(is_bottleneck(Some(5.1), Some(1000.0), Some(0.5)));
        assert!(is_bottleneck(Some(0.1), Some(1.0), Some(0.95)));
    }

    #[test]
    fn lag_is_held_against_how_long_a_request_takes() {
        assert!(is_bottleneck(Some(3.0), Some(0.050), None));
        assert!(!is_bottleneck(Some(2.0), Some(0.050), None));
    }

    #[test]
    fn what_is_unknown_marks_nothing() {
        assert!(!is_bottleneck(None, None, None));
    }
}
