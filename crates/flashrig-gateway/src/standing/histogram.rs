//! Histograms of durations in the buckets that Prometheus reads.
//!
//! Own code, because the buckets are fixed by what is published: `hdrhistogram` keeps other ones,
//! and `prometheus-client` writes OpenMetrics, in which counters and the end of the text are
//! written otherwise than in the text format 0.0.4 that `/metrics` promises.

/// Bucket ends for the time to the first token, in seconds: vLLM's, so that both can be laid over
/// each other, up to the longest prefills.
pub const TTFT: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1280.0, 2560.0,
];
/// Bucket ends for the time between tokens, in seconds.
pub const ITL: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5,
    5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
];
/// Bucket ends for the event loop's lag, in seconds.
pub const LAG: &[f64] = &[
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0,
];

/// Counts of durations by bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    ends: &'static [f64],
    /// One more than there are ends: beyond the last.
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    /// With buckets up to `ends`, which ascend.
    pub fn new(ends: &'static [f64]) -> Self {
        Self {
            ends,
            counts: vec![0; ends.len() + 1],
            sum: 0.0,
        }
    }

    /// Counts a duration, in seconds.
    pub fn record(&mut self, seconds: f64) {
        self.record_many(seconds, 1);
    }

    /// Counts `times` durations of the same length, in seconds.
    pub fn record_many(&mut self, seconds: f64, times: u64) {
        let index = self.ends.partition_point(|end| *end < seconds);
        if let Some(count) = self.counts.get_mut(index) {
            *count += times;
        }
        #[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
        let times = times as f64;
        self.sum += seconds * times;
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Their sum in seconds.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// For each bucket its end and how many durations were no longer; the last end is infinite.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let ends = self.ends.iter().copied().chain([f64::INFINITY]);
        let mut below = 0;
        ends.zip(&self.counts).map(move |(end, count)| {
            below += count;
            (end, below)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_in_its_bucket_and_all_longer_ones() {
        let mut histogram = Histogram::new(&[1.0, 2.0]);
        histogram.record(1.0);
        histogram.record_many(1.5, 2);
        histogram.record(9.0);
        let buckets: Vec<_> = histogram.cumulative().collect();
        assert_eq!(buckets, [(1.0, 1), (2.0, 3), (f64::INFINITY, 4)]);
        assert_eq!((histogram.count(), histogram.sum()), (4, 13.0));
    }

    #[test]
    fn bucket_ends_ascend_and_those_for_the_first_token_reach_2560_seconds() {
        for ends in [TTFT, ITL, LAG] {
            assert!(ends.is_sorted_by(|a, b| a < b));
        }
        assert_eq!(TTFT.last(), Some(&2560.0));
    }
}
