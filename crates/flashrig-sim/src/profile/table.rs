//! The `[sim]` table of a server profile, as written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ByteSize;
use crate::faults::Faults;

/// The `[sim]` table of a server profile, as written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimTable {
    /// Sequences that run at once; further requests wait in line.
    pub max_concurrent: u32,
    /// Whether the context is divided among the slots, as llama.cpp does it: a request may then
    /// use `context / max_concurrent` tokens.
    #[serde(default)]
    pub context_per_slot: bool,

    /// Seconds of prefill per prompt token: the linear term.
    pub prefill_s_per_token: f64,
    /// Seconds of prefill per squared prompt token: the quadratic term.
    #[serde(default)]
    pub prefill_s_per_token_squared: f64,
    /// Tokens prefilled in one go.
    #[serde(default = "default_chunk")]
    pub prefill_chunk_tokens: u32,
    /// Share of the time that decode steps get while a prompt is read, 0 to 0.9. At 0 a prefill
    /// holds up all decoding; at `s` it takes `1 / (1 - s)` as long while others decode.
    #[serde(default)]
    pub prefill_decode_share: f64,
    /// Which of several unread prompts is read first.
    #[serde(default)]
    pub prefill_order: PrefillOrder,
    /// Whether unread prompts take turns chunk by chunk, with a decode step after each chunk, as
    /// llama.cpp does it. Without, a prefill that began is finished before the next begins.
    #[serde(default)]
    pub prefill_interleave: bool,
    /// Whether prompts are read beside decoding and beside each other, as if each request had a
    /// machine of its own for it. Then order, share and interleaving mean nothing and must be
    /// left out.
    #[serde(default)]
    pub prefill_beside: bool,
    /// Milliseconds that each request costs before its prefill.
    #[serde(default)]
    pub request_overhead_ms: f64,
    /// Milliseconds that the very first request costs besides.
    #[serde(default)]
    pub first_request_cost_ms: f64,

    /// Duration of a decode step by the number of sequences in it and their mean context,
    /// ascending in both; interpolated between the points. Beyond the largest batch it goes on
    /// along the last two points, beyond the longest context too; below the shortest context it
    /// is that of the shortest.
    pub decode: Vec<DecodePoint>,
    /// Relative size of the seeded noise on every duration, 0 to 0.5.
    #[serde(default)]
    pub noise: f64,

    /// Size of the prefix cache in tokens; 0 switches it off. Instead of it: `cache_ram`.
    #[serde(default)]
    pub cache_tokens: Option<u64>,
    /// RAM that the prefix cache may use, which is then not there for requests; needs
    /// `kv_bytes_per_token`.
    #[serde(default)]
    pub cache_ram: Option<ByteSize>,
    /// Disk that the prefix cache may use for what it has no RAM for.
    #[serde(default)]
    pub cache_disk: ByteSize,
    /// Tokens per block of the prefix cache.
    #[serde(default = "default_block")]
    pub cache_block_tokens: u32,
    /// Whether each slot keeps the last prompt it read, and nothing else is cached, as llama.cpp
    /// does it. Then `cache_tokens` and `cache_ram` must be absent.
    #[serde(default)]
    pub cache_per_slot: bool,
    /// Milliseconds that it costs to take up anything cached.
    #[serde(default)]
    pub restore_ms: f64,
    /// Seconds per token taken from the cache in RAM.
    #[serde(default)]
    pub restore_ram_s_per_token: f64,
    /// Seconds per token taken from the cache on disk.
    #[serde(default)]
    pub restore_disk_s_per_token: f64,

    /// Memory of the machine; without it nothing is refused for lack of memory.
    #[serde(default)]
    pub memory: Option<ByteSize>,
    /// Memory of the model's weights.
    #[serde(default)]
    pub weights: ByteSize,
    /// Memory of the keys and values of a token at 16 bits.
    #[serde(default)]
    pub kv_bytes_per_token: u64,
    /// Bits of keys and values: 4, 8 or 16.
    #[serde(default = "default_kv_bits")]
    pub kv_bits: u32,
    /// Memory that reading a prompt takes for the time of the request, per prompt token; that of
    /// the longest prompt in flight counts.
    #[serde(default)]
    pub working_bytes_per_token: u64,
    /// Memory that is kept free.
    #[serde(default)]
    pub memory_margin: ByteSize,
    /// How a request is refused for which there is no memory.
    #[serde(default)]
    pub memory_refusal: MemoryRefusal,
    /// With fewer than 16 bits, every so manieth question is answered wrongly.
    #[serde(default)]
    pub quantised_miss_every: Option<u64>,

    /// Whether a request runs on to its end when its client has left.
    #[serde(default)]
    pub keep_slot_after_leave: bool,
    /// What goes wrong on purpose.
    #[serde(default)]
    pub faults: Faults,
}

/// Which of several unread prompts is read first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrefillOrder {
    /// The one that came first.
    #[default]
    Fifo,
    /// The one with the fewest tokens to read.
    ShortestFirst,
}

/// How a request is refused for which there is no memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryRefusal {
    /// 400, with needed and available memory.
    #[default]
    BadRequest,
    /// 503, `out_of_memory`.
    Unavailable,
}

/// One point of the decode table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecodePoint {
    /// Mean context of the sequences in tokens; left out when it makes no difference.
    #[serde(default)]
    pub context: u64,
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

const fn default_kv_bits() -> u32 {
    16
}
