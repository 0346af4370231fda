//! Durations of the simulated server's work, in its own time.

use std::sync::Arc;
use std::time::Duration;

use super::decode::DecodeTable;
use super::table::SimTable;
use super::{ProfileError, check, not_negative};

/// A `[sim]` table whose values have been checked.
#[derive(Clone, Debug)]
pub struct Timing {
    table: Arc<SimTable>,
    decode: Arc<DecodeTable>,
}

impl TryFrom<&SimTable> for Timing {
    type Error = ProfileError;

    fn try_from(table: &SimTable) -> Result<Self, ProfileError> {
        check_numbers(table)?;
        check_memory(table)?;
        check_faults(table)?;
        Ok(Self {
            table: Arc::new(table.clone()),
            decode: Arc::new(DecodeTable::new(&table.decode)?),
        })
    }
}

fn check_numbers(table: &SimTable) -> Result<(), ProfileError> {
    let above_0 = [
        ("max_concurrent", f64::from(table.max_concurrent)),
        ("prefill_s_per_token", table.prefill_s_per_token),
        (
            "prefill_chunk_tokens",
            f64::from(table.prefill_chunk_tokens),
        ),
        ("cache_block_tokens", f64::from(table.cache_block_tokens)),
    ];
    for (field, value) in above_0 {
        check(
            value > 0.0 && value.is_finite(),
            field,
            value,
            "it must be above 0",
        )?;
    }
    let from_0 = [
        (
            "prefill_s_per_token_squared",
            table.prefill_s_per_token_squared,
        ),
        ("request_overhead_ms", table.request_overhead_ms),
        ("first_request_cost_ms", table.first_request_cost_ms),
        ("restore_ms", table.restore_ms),
        ("restore_ram_s_per_token", table.restore_ram_s_per_token),
        ("restore_disk_s_per_token", table.restore_disk_s_per_token),
    ];
    for (field, value) in from_0 {
        check(not_negative(value), field, value, "it must not be negative")?;
    }
    let share = table.prefill_decode_share;
    check(
        (0.0..=0.9).contains(&share),
        "prefill_decode_share",
        share,
        "it must be between 0 and 0.9",
    )?;
    check(
        !(table.prefill_interleave && share > 0.0),
        "prefill_interleave",
        true,
        "with prefill_decode_share there are two rules for the same thing; choose one",
    )?;
    let ordered = table.prefill_interleave
        || share > 0.0
        || table.prefill_order != super::table::PrefillOrder::Fifo;
    check(
        !(table.prefill_beside && ordered),
        "prefill_beside",
        true,
        "then no prompt waits for another: leave out prefill_order, _decode_share and _interleave",
    )?;
    check(
        (0.0..=0.5).contains(&table.noise),
        "noise",
        table.noise,
        "it must be between 0 and 0.5",
    )
}

fn check_memory(table: &SimTable) -> Result<(), ProfileError> {
    let caches = usize::from(table.cache_tokens.is_some())
        + usize::from(table.cache_ram.is_some())
        + usize::from(table.cache_per_slot);
    check(
        caches == 1,
        "cache_tokens",
        format!("one of {caches} kinds of cache"),
        "exactly one of cache_tokens, cache_ram and cache_per_slot must be there",
    )?;
    let per_token = table.kv_bytes_per_token;
    let needs_size = table.cache_ram.is_some() || table.cache_disk.0 > 0 || table.memory.is_some();
    check(
        per_token > 0 || !needs_size,
        "kv_bytes_per_token",
        per_token,
        "it must be above 0 where memory, cache_ram or cache_disk are given",
    )?;
    check(
        matches!(table.kv_bits, 4 | 8 | 16),
        "kv_bits",
        table.kv_bits,
        "it must be 4, 8 or 16",
    )?;
    if let Some(memory) = table.memory {
        let fixed = [
            table.weights,
            table.cache_ram.unwrap_or_default(),
            table.memory_margin,
        ];
        let fixed: u64 = fixed.iter().map(|size| size.0).sum();
        check(
            fixed < memory.0,
            "memory",
            memory,
            "weights, cache_ram and memory_margin must leave something of it",
        )?;
    }
    check(
        table.quantised_miss_every != Some(0),
        "quantised_miss_every",
        0,
        "it must be above 0",
    )
}

fn check_faults(table: &SimTable) -> Result<(), ProfileError> {
    let faults = &table.faults;
    check(
        faults.drop_fact_every != Some(0),
        "faults.drop_fact_every",
        0,
        "it must be above 0",
    )?;
    check(
        not_negative(faults.slower_each_request),
        "faults.slower_each_request",
        faults.slower_each_request,
        "it must not be negative",
    )?;
    check(
        faults.uncached_from_request != Some(0),
        "faults.uncached_from_request",
        0,
        "requests are counted from 1",
    )?;
    check(
        faults.streams.iter().all(|stream| stream.request > 0),
        "faults.streams.request",
        0,
        "requests are counted from 1",
    )
}

fn milliseconds(ms: f64) -> Duration {
    Duration::from_secs_f64(ms / 1e3)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "token counts are far below 2^53"
)]
fn float(tokens: u64) -> f64 {
    tokens as f64
}

impl Timing {
    /// The values.
    pub fn table(&self) -> &SimTable {
        &self.table
    }

    /// Time to prefill the tokens from `from` to `to` of a prompt.
    pub fn prefill(&self, from: u64, to: u64) -> Duration {
        let (p, q) = (float(from), float(to.max(from)));
        let linear = self.table.prefill_s_per_token * (q - p);
        let squared = self.table.prefill_s_per_token_squared * (q * q - p * p);
        Duration::from_secs_f64(linear + squared)
    }

    /// Time of a decode step with `batch` sequences whose mean context is `context` tokens.
    pub fn decode_step(&self, batch: u32, context: f64) -> Duration {
        milliseconds(self.decode.step_ms(f64::from(batch), context))
    }

    /// What each request costs before its prefill.
    pub fn request_overhead(&self) -> Duration {
        milliseconds(self.table.request_overhead_ms)
    }

    /// What the very first request costs besides.
    pub fn first_request_cost(&self) -> Duration {
        milliseconds(self.table.first_request_cost_ms)
    }

    /// The cost of taking this many tokens out of the cache.
    pub fn restore(&self, ram_tokens: u64, disk_tokens: u64) -> Duration {
        if ram_tokens + disk_tokens == 0 {
            return Duration::ZERO;
        }
        let tokens = float(ram_tokens) * self.table.restore_ram_s_per_token
            + float(disk_tokens) * self.table.restore_disk_s_per_token;
        milliseconds(self.table.restore_ms) + Duration::from_secs_f64(tokens)
    }
}
