//! Noise on durations, reproducible from a seed.

use std::time::Duration;

/// Seeded noise (splitmix64), so that two runs of the same requests are timed the same.
pub struct Noise {
    state: u64,
    size: f64,
}

impl Noise {
    /// Noise of relative size `size`; zero is none.
    pub fn new(seed: u64, size: f64) -> Self {
        Self { state: seed, size }
    }

    /// The duration as it turns out this time.
    pub fn apply(&mut self, duration: Duration) -> Duration {
        if self.size == 0.0 {
            return duration;
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        #[expect(clippy::cast_precision_loss, reason = "53 random bits fit a double")]
        let unit = (z >> 11) as f64 / (1u64 << 53) as f64;
        duration.mul_f64(1.0 + self.size * (2.0 * unit - 1.0))
    }
}
