//! `/metrics`: Prometheus text under the names that vLLM and mlx-serve gave them, and under a
//! name of our own where there is none.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use super::counters::Counters;
use super::memory::Memory;

/// All metrics of a server. Memory is left out where the profile says nothing about it.
pub fn text(model: &str, counters: &Counters, memory: &Memory) -> String {
    let read = |value: &AtomicU64| value.load(Ordering::Relaxed);
    let mut lines = vec![
        (
            "vllm:num_requests_running",
            "gauge",
            "Requests that hold a slot.",
            read(&counters.running),
        ),
        (
            "vllm:num_requests_waiting",
            "gauge",
            "Requests in line.",
            read(&counters.waiting),
        ),
        (
            "vllm:prompt_tokens_total",
            "counter",
            "Prompt tokens, cached ones included.",
            read(&counters.prompt_tokens),
        ),
        (
            "vllm:generation_tokens_total",
            "counter",
            "Generated tokens.",
            read(&counters.generation_tokens),
        ),
        (
            "vllm:prefix_cache_queries_total",
            "counter",
            "Prompt tokens looked up.",
            read(&counters.cache_queries),
        ),
        (
            "vllm:prefix_cache_hits_total",
            "counter",
            "Prompt tokens found in the cache.",
            read(&counters.cache_hits),
        ),
        (
            "flashrig_sim:requests_refused_total",
            "counter",
            "Generation requests that were refused.",
            read(&counters.refused),
        ),
    ];
    if memory.is_known() {
        let in_use = memory.in_use();
        lines.extend([
            (
                "mlx_serve:mlx_active_bytes",
                "gauge",
                "Memory in use: weights, cache, keys and values, working set.",
                in_use.now,
            ),
            (
                "flashrig_sim:memory_peak_bytes",
                "gauge",
                "The most of it so far.",
                in_use.peak,
            ),
        ]);
    }
    let mut out = String::new();
    for (name, kind, help, value) in lines {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        let _ = writeln!(out, "{name}{{model_name=\"{model}\"}} {value}");
    }
    out
}
