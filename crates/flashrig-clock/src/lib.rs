//! The one clock. Every duration and every stored instant comes from here.
//!
//! The reading is the system's monotonic clock, which all processes of one machine share, so that
//! stamps taken in the supervising helper process, in the gateway and in the embedded server can
//! be subtracted from each other. Wall time is only ever a label.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reading of the monotonic clock, in nanoseconds since an arbitrary origin (usually boot).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Stamp(pub u64);

impl Stamp {
    /// Reads the clock.
    ///
    /// The monotonic clock exists on every supported system; should the reading fail all the
    /// same, zero is returned, which shows as an impossible duration and not as a plausible one.
    pub fn now() -> Self {
        clock_gettime(ClockId::CLOCK_MONOTONIC)
            .map_or(Self(0), |t| Self::from_reading(Duration::from(t)))
    }

    /// The stamp as a time since the clock's origin.
    pub fn reading(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// The stamp of a time since the clock's origin.
    pub fn from_reading(reading: Duration) -> Self {
        Self(u64::try_from(reading.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The time from `earlier` to `self`; zero when `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add<Duration> for Stamp {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

/// Seconds, as they are stored: a JSON number rounded to the microsecond.
///
/// Used both for durations and for instants (seconds since the start of the run).
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Seconds(pub f64);

impl Serialize for Seconds {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64((self.0 * 1e6).round() / 1e6)
    }
}

impl From<Duration> for Seconds {
    fn from(value: Duration) -> Self {
        Self(value.as_secs_f64())
    }
}

/// The origin of a run: the stamp that stored instants count from, and the wall time beside it.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Monotonic reading at the origin.
    pub stamp: Stamp,
    /// Wall time taken together with it; a label only.
    pub wall: jiff::Timestamp,
}

impl Origin {
    /// Takes both readings together.
    pub fn now() -> Self {
        Self {
            stamp: Stamp::now(),
            wall: jiff::Timestamp::now(),
        }
    }

    /// Seconds from the origin to `stamp`; negative when it lies before.
    pub fn at(&self, stamp: Stamp) -> Seconds {
        let nanos = i128::from(stamp.0) - i128::from(self.stamp.0);
        #[expect(
            clippy::cast_precision_loss,
            reason = "a run is far shorter than 2^53 ns"
        )]
        Seconds(nanos as f64 / 1e9)
    }
}
