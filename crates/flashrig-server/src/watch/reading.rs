//! One look at a server's metrics, and what many of them tell of a span of time.

use flashrig_record::{Metric, MetricFound};

/// What the metrics said at one time. What they do not tell is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    pub running: Option<f64>,
    pub waiting: Option<f64>,
    pub prompt_tokens: Option<u64>,
    pub generated_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
    pub refused: Option<u64>,
    pub memory_bytes: Option<u64>,
    /// The most of it since the server's start.
    pub peak_bytes: Option<u64>,
}

/// What its processes use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    pub rss_bytes: Option<u64>,
    /// Since its start.
    pub cpu_s: Option<f64>,
}

impl Reading {
    /// `None` when the page tells nothing that is known here: such a page is no sample.
    pub fn of(found: &[MetricFound]) -> Option<Self> {
        if found.is_empty() {
            return None;
        }
        let value = |metric| {
            let one = found.iter().find(|found| found.metric == metric)?;
            Some(one.value).filter(|value| *value >= 0.0)
        };
        let count = |metric| value(metric).map(whole);
        Some(Self {
            running: value(Metric::Running),
            waiting: value(Metric::Waiting),
            prompt_tokens: count(Metric::PromptTokens),
            generated_tokens: count(Metric::GeneratedTokens),
            cached_tokens: count(Metric::CacheHits),
            refused: count(Metric::Refused),
            memory_bytes: count(Metric::MemoryBytes),
            peak_bytes: count(Metric::MemoryPeakBytes),
        })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and negative values were left out"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// When a look is taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// The span begins.
    Begin,
    /// Its time has come.
    Between,
    /// The span ends.
    End,
}

/// Many looks, in order, folded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fold {
    pub samples: u32,
    pub max_running: Option<f64>,
    pub max_waiting: Option<f64>,
    pub most_memory: Option<u64>,
    pub peak_rss_bytes: Option<u64>,
    prompt: Counter,
    generated: Counter,
    cached: Counter,
    refused: Counter,
    peak: Counter,
    cpu: Counter,
}

/// A counter over a span: told at both ends, and never smaller than before. A server that was
/// started again counts anew, and how much it had counted by then is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counter {
    first: Option<f64>,
    last: Option<f64>,
    went_back: bool,
}

impl Counter {
    fn take(&mut self, value: Option<f64>, is_first: bool) {
        if is_first {
            self.first = value;
        }
        let smaller = value.zip(self.last).is_some_and(|(now, last)| now < last);
        self.went_back |= smaller;
        self.last = value.or(self.last);
    }

    fn growth(&self) -> Option<f64> {
        let (first, last) = self.first.zip(self.last)?;
        (!self.went_back).then_some(last - first)
    }
}

impl Fold {
    /// Takes in a look. The first one must be that at the beginning of the span; when there was
    /// none then, an empty one.
    ///
    /// At both ends the server is idle: only the looks between them tell how busy it was.
    pub fn take(&mut self, reading: Option<Reading>, usage: Usage, when: When) {
        let is_first = when == When::Begin;
        #[expect(clippy::cast_precision_loss, reason = "counters stay below 2^53")]
        let float = |value: Option<u64>| value.map(|value| value as f64);
        self.samples += u32::from(reading.is_some());
        let reported = reading.unwrap_or_default();
        if when == When::Between {
            self.max_running = larger(self.max_running, reported.running);
            self.max_waiting = larger(self.max_waiting, reported.waiting);
        }
        self.most_memory = self.most_memory.max(reported.memory_bytes);
        self.peak_rss_bytes = self.peak_rss_bytes.max(usage.rss_bytes);
        self.prompt.take(float(reported.prompt_tokens), is_first);
        self.generated
            .take(float(reported.generated_tokens), is_first);
        self.cached.take(float(reported.cached_tokens), is_first);
        self.refused.take(float(reported.refused), is_first);
        self.peak.take(float(reported.peak_bytes), is_first);
        self.cpu.take(usage.cpu_s, is_first);
    }

    /// What counters counted from the first look to the last one. Without an answer at the end
    /// (`is_whole` false) it is not known what came after the last look.
    pub fn counted(&self, is_whole: bool) -> Counted {
        let growth = |counter: &Counter| counter.growth().filter(|_| is_whole).map(whole);
        Counted {
            prompt_tokens: growth(&self.prompt),
            generated_tokens: growth(&self.generated),
            cached_tokens: growth(&self.cached),
            refused: growth(&self.refused),
            cpu_s: self.cpu.growth(),
        }
    }

    /// The most memory that was told. A server that keeps its peak tells of this span only where
    /// the peak rose.
    pub fn peak_memory_bytes(&self) -> Option<u64> {
        let rose = self.peak.growth().is_some_and(|growth| growth > 0.0);
        let peak = self.peak.last.filter(|_| rose).map(whole);
        self.most_memory.max(peak)
    }
}

fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (one, other) => one.or(other),
    }
}

/// What counters counted over a span.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    pub prompt_tokens: Option<u64>,
    pub generated_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
    pub refused: Option<u64>,
    pub cpu_s: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(running: f64, prompt: u64, peak: u64) -> Option<Reading> {
        Some(Reading {
            running: Some(running),
            prompt_tokens: Some(prompt),
            memory_bytes: Some(7),
            peak_bytes: Some(peak),
            ..Reading::default()
        })
    }

    fn fold(readings: &[Option<Reading>]) -> Fold {
        let mut fold = Fold::default();
        for (index, reading) in readings.iter().enumerate() {
            let when = match index {
                0 => When::Begin,
                last if last + 1 == readings.len() => When::End,
                _ => When::Between,
            };
            fold.take(*reading, Usage::default(), when);
        }
        fold
    }

    #[test]
    fn counters_are_the_last_less_the_first_and_gauges_their_largest() {
        let fold = fold(&[
            reported(0.0, 10, 9),
            reported(3.0, 12, 9),
            reported(1.0, 15, 9),
        ]);
        assert_eq!((fold.samples, fold.max_running), (3, Some(3.0)));
        assert_eq!(fold.max_waiting, None);
        let counted = fold.counted(true);
        assert_eq!(counted.prompt_tokens, Some(5));
        assert_eq!(counted.cached_tokens, None);
        assert_eq!(fold.peak_memory_bytes(), Some(7), "the peak did not rise");
    }

    #[test]
    fn how_busy_it_was_is_unknown_when_it_was_looked_at_only_at_both_ends() {
        let fold = fold(&[reported(0.0, 10, 9), reported(0.0, 15, 9)]);
        assert_eq!(fold.max_running, None);
        assert_eq!(fold.counted(true).prompt_tokens, Some(5));
    }

    #[test]
    fn a_counter_that_went_back_tells_nothing_though_it_ends_higher() {
        let fold = fold(&[
            reported(0.0, 10, 9),
            reported(1.0, 2, 9),
            reported(0.0, 50, 9),
        ]);
        assert_eq!(fold.counted(true).prompt_tokens, None);
    }

    #[test]
    fn a_page_that_did_not_answer_is_no_sample_and_no_zero() {
        let looks = [reported(0.0, 10, 9), None, reported(0.0, 14, 30)];
        let fold_of = fold(&looks);
        assert_eq!(fold_of.samples, 2);
        assert_eq!(fold_of.counted(true).prompt_tokens, Some(4));
        assert_eq!(fold_of.peak_memory_bytes(), Some(30), "the peak rose");
        let without_the_first = fold(&[None, reported(0.0, 10, 9), reported(0.0, 14, 9)]);
        assert_eq!(without_the_first.counted(true).prompt_tokens, None);
        assert_eq!(fold(&looks).counted(false).prompt_tokens, None);
    }

    #[test]
    fn a_negative_figure_is_left_out_and_a_page_without_known_names_is_no_reading() {
        let found = |value| {
            let name = "n".to_owned();
            let metric = Metric::MemoryBytes;
            vec![MetricFound {
                metric,
                name,
                value,
            }]
        };
        assert_eq!(Reading::of(&found(-1.0)).unwrap().memory_bytes, None);
        assert_eq!(Reading::of(&found(1.5e3)).unwrap().memory_bytes, Some(1500));
        assert_eq!(Reading::of(&[]), None);
    }
}
