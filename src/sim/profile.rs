//! How fast the simulated server is: the `[sim]` table as written, and its validated form.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `[sim]` table of a server profile, as written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimTable {
    /// Sequences that run at once; further requests wait in line.
    pub max_concurrent: u32,
    /// Seconds of prefill per prompt token: the linear term.
    pub prefill_s_per_token: f64,
    /// Seconds of prefill per squared prompt token: the quadratic term.
    #[serde(default)]
    pub prefill_s_per_token_squared: f64,
    /// Tokens prefilled in one go.
    #[serde(default = "default_chunk")]
    pub prefill_chunk_tokens: u32,
    /// Milliseconds that each request costs before its prefill.
    #[serde(default)]
    pub request_overhead_ms: f64,
    /// Duration of a decode step by the number of sequences in it, ascending. Between two points
    /// it is interpolated, beyond the last one extrapolated along the last two.
    pub decode: Vec<DecodePoint>,
    /// Relative size of the seeded noise on every duration, 0 to 0.5.
    #[serde(default)]
    pub noise: f64,
    /// Size of the prefix cache in tokens; 0 switches it off.
    pub cache_tokens: u64,
    /// Tokens per block of the prefix cache.
    #[serde(default = "default_block")]
    pub cache_block_tokens: u32,
}

/// One point of the decode table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecodePoint {
    /// Sequences in the step.
    pub batch: u32,
    /// Duration of the step in milliseconds; every sequence gets one token.
    pub step_ms: f64,
}

const fn default_chunk() -> u32 {
    2048
}

const fn default_block() -> u32 {
    64
}

/// A value of the `[sim]` table that cannot be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("sim.{field} is {value}, but {rule}")]
pub struct ProfileError {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// What would be right.
    pub rule: &'static str,
}

/// A validated profile.
#[derive(Clone, Debug)]
pub struct SimProfile {
    /// Profile name, as `GET /version` tells it.
    pub name: String,
    /// The one model name that is served.
    pub model: String,
    /// Context size in tokens.
    pub context: u64,
    /// Timing.
    pub timing: Timing,
}

impl SimProfile {
    /// Validates a profile.
    ///
    /// # Errors
    /// The first value that cannot be, with its rule.
    pub fn new(
        name: impl Into<String>,
        model: impl Into<String>,
        context: u64,
        table: &SimTable,
    ) -> Result<Self, ProfileError> {
        let timing = Timing::try_from(table)?;
        Ok(Self {
            name: name.into(),
            model: model.into(),
            context,
            timing,
        })
    }
}

/// A `[sim]` table whose values have been checked.
#[derive(Clone, Debug)]
pub struct Timing(SimTable);

fn check(
    ok: bool,
    field: &'static str,
    value: impl ToString,
    rule: &'static str,
) -> Result<(), ProfileError> {
    if ok {
        Ok(())
    } else {
        Err(ProfileError {
            field,
            value: value.to_string(),
            rule,
        })
    }
}

/// Written so that a NaN fails.
fn not_negative(value: f64) -> bool {
    value >= 0.0 && value.is_finite()
}

impl TryFrom<&SimTable> for Timing {
    type Error = ProfileError;

    fn try_from(table: &SimTable) -> Result<Self, ProfileError> {
        check(
            table.max_concurrent > 0,
            "max_concurrent",
            table.max_concurrent,
            "at least one sequence must run",
        )?;
        let linear = table.prefill_s_per_token;
        check(
            linear > 0.0 && linear.is_finite(),
            "prefill_s_per_token",
            linear,
            "it must be above 0",
        )?;
        let squared = table.prefill_s_per_token_squared;
        check(
            not_negative(squared),
            "prefill_s_per_token_squared",
            squared,
            "it must not be negative",
        )?;
        let chunk = table.prefill_chunk_tokens;
        check(
            chunk > 0,
            "prefill_chunk_tokens",
            chunk,
            "it must be above 0",
        )?;
        let overhead = table.request_overhead_ms;
        check(
            not_negative(overhead),
            "request_overhead_ms",
            overhead,
            "it must not be negative",
        )?;
        let block = table.cache_block_tokens;
        check(block > 0, "cache_block_tokens", block, "it must be above 0")?;
        check(
            (0.0..=0.5).contains(&table.noise),
            "noise",
            table.noise,
            "it must be between 0 and 0.5",
        )?;
        check(
            !table.decode.is_empty(),
            "decode",
            "empty",
            "it needs at least the point of batch 1",
        )?;
        let mut before = DecodePoint {
            batch: 0,
            step_ms: 0.0,
        };
        for point in &table.decode {
            check(
                point.batch > before.batch,
                "decode.batch",
                point.batch,
                "batches must ascend from 1",
            )?;
            let step = point.step_ms;
            check(
                step > 0.0 && step.is_finite(),
                "decode.step_ms",
                step,
                "it must be above 0",
            )?;
            check(
                step >= before.step_ms,
                "decode.step_ms",
                step,
                "a larger batch cannot have a shorter step",
            )?;
            before = *point;
        }
        check(
            table.decode[0].batch == 1,
            "decode.batch",
            table.decode[0].batch,
            "the first point must be batch 1",
        )?;
        Ok(Self(table.clone()))
    }
}

impl Timing {
    /// The values.
    pub fn table(&self) -> &SimTable {
        &self.0
    }

    /// Time to prefill the tokens from `from` to `to` of a prompt.
    pub fn prefill(&self, from: u64, to: u64) -> Duration {
        #[expect(
            clippy::cast_precision_loss,
            reason = "token counts are far below 2^53"
        )]
        let (p, q) = (from as f64, to.max(from) as f64);
        let linear = self.0.prefill_s_per_token * (q - p);
        let squared = self.0.prefill_s_per_token_squared * (q * q - p * p);
        Duration::from_secs_f64(linear + squared)
    }

    /// Time of a decode step with `batch` sequences.
    pub fn decode_step(&self, batch: u32) -> Duration {
        let table = &self.0.decode;
        let after = table.partition_point(|point| point.batch < batch);
        let (low, high) = match (table.get(after), after) {
            (Some(point), 0) => (*point, *point),
            (Some(point), _) => (table[after - 1], *point),
            // Beyond the table: along the last two points, or the origin when there is one.
            (None, 1) => (
                DecodePoint {
                    batch: 0,
                    step_ms: table[0].step_ms,
                },
                table[0],
            ),
            (None, _) => (table[after - 2], table[after - 1]),
        };
        let width = f64::from(high.batch) - f64::from(low.batch);
        let slope = if width > 0.0 {
            (high.step_ms - low.step_ms) / width
        } else {
            0.0
        };
        let step_ms = low.step_ms + slope * (f64::from(batch) - f64::from(low.batch));
        Duration::from_secs_f64(step_ms / 1e3)
    }

    /// What each request costs before its prefill.
    pub fn request_overhead(&self) -> Duration {
        Duration::from_secs_f64(self.0.request_overhead_ms / 1e3)
    }

    /// Size of the prefix cache in blocks.
    pub fn cache_blocks(&self) -> usize {
        usize::try_from(self.0.cache_tokens / u64::from(self.0.cache_block_tokens))
            .unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> SimTable {
        toml::from_str(
            "max_concurrent = 4\nprefill_s_per_token = 1e-4\nprefill_s_per_token_squared = 1e-9\n\
             cache_tokens = 1000\n\
             decode = [{ batch = 1, step_ms = 10.0 }, { batch = 2, step_ms = 16.0 }, { batch = 4, step_ms = 30.0 }]",
        )
        .unwrap()
    }

    #[test]
    fn decode_steps_are_interpolated_between_points_and_extrapolated_beyond() {
        let timing = Timing::try_from(&table()).unwrap();
        let step = |n| timing.decode_step(n).as_micros();
        assert_eq!(
            [step(1), step(2), step(3), step(4), step(6)],
            [10_000, 16_000, 23_000, 30_000, 44_000]
        );
    }

    #[test]
    fn a_table_of_one_point_batches_for_free() {
        let mut table = table();
        table.decode.truncate(1);
        assert_eq!(
            Timing::try_from(&table).unwrap().decode_step(8).as_millis(),
            10
        );
    }

    #[test]
    fn prefill_in_chunks_takes_as_long_as_at_once() {
        let timing = Timing::try_from(&table()).unwrap();
        let chunks = timing.prefill(0, 3000) + timing.prefill(3000, 10_000);
        assert!((chunks.as_secs_f64() - timing.prefill(0, 10_000).as_secs_f64()).abs() < 1e-6);
        assert!((chunks.as_secs_f64() - 1.1).abs() < 1e-6);
    }

    #[test]
    fn values_that_cannot_be_are_refused_with_field_and_rule() {
        for (spoil, field) in [
            (
                (|t| t.max_concurrent = 0) as fn(&mut SimTable),
                "max_concurrent",
            ),
            (|t| t.prefill_s_per_token = 0.0, "prefill_s_per_token"),
            (|t| t.prefill_s_per_token = f64::NAN, "prefill_s_per_token"),
            (|t| t.noise = 0.9, "noise"),
            (|t| t.decode.clear(), "decode"),
            (|t| t.decode[0].batch = 2, "decode.batch"),
            (|t| t.decode[2].step_ms = 1.0, "decode.step_ms"),
            (|t| t.cache_block_tokens = 0, "cache_block_tokens"),
        ] {
            let mut table = table();
            spoil(&mut table);
            assert_eq!(Timing::try_from(&table).unwrap_err().field, field);
        }
    }

    #[test]
    fn an_unknown_field_is_refused() {
        assert!(
            toml::from_str::<SimTable>("max_concurent = 1")
                .unwrap_err()
                .to_string()
                .contains("max_concurent")
        );
    }
}
