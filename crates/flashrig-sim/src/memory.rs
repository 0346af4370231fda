//! The memory model: what requests need, what there is, and who is refused for lack of it.
//!
//! A request reserves the keys and values of its prompt and answer from its arrival to its end.
//! The working set is that of the longest prompt in flight, since prompts are read one at a time.
//! The RAM of the prefix cache is set apart whether it is used or not, as real servers do it.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::cache;
use super::profile::SimTable;

/// What is in use, shared by all who answer requests.
#[derive(Debug)]
pub struct Memory {
    /// What requests may use; `None` without a limit.
    for_requests: Option<u64>,
    weights: u64,
    kv_per_token: u64,
    working_per_token: u64,
    margin: u64,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    kv: u64,
    /// Working sets of requests in flight, and how many have each.
    working: BTreeMap<u64, u32>,
    cache: u64,
    peak: u64,
}

impl Used {
    fn longest(&self) -> u64 {
        self.working.last_key_value().map_or(0, |(bytes, _)| *bytes)
    }
}

/// A request for which there is no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Bytes that it needs.
    pub needed: u64,
    /// Bytes that there are.
    pub available: u64,
}

/// The memory of a request; given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    memory: Arc<Memory>,
    kv: u64,
    working: u64,
}

/// Bytes in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InUse {
    /// Now.
    pub now: u64,
    /// At most since the start.
    pub peak: u64,
}

impl Memory {
    /// The memory that the table describes.
    pub fn new(table: &SimTable) -> Self {
        let weights = table.weights.0;
        let set_apart = weights + table.cache_ram.map_or(0, |size| size.0);
        Self {
            for_requests: table.memory.map(|all| all.0.saturating_sub(set_apart)),
            weights,
            kv_per_token: cache::kv_bytes(table),
            working_per_token: table.working_bytes_per_token,
            margin: table.memory_margin.0,
            used: Mutex::default(),
        }
    }

    /// Whether the profile says anything about memory.
    pub fn is_known(&self) -> bool {
        self.weights > 0 || self.kv_per_token > 0
    }

    /// Takes the memory of a request.
    ///
    /// # Errors
    /// There is not enough.
    pub fn reserve(
        self: &Arc<Self>,
        prompt_tokens: u64,
        output_tokens: u64,
    ) -> Result<Reservation, Shortage> {
        let kv = (prompt_tokens + output_tokens) * self.kv_per_token;
        let working = prompt_tokens * self.working_per_token;
        let mut used = self.used.lock();
        if let Some(all) = self.for_requests {
            let needed = kv + working.max(used.longest()) + self.margin;
            let available = all.saturating_sub(used.kv);
            if needed > available {
                return Err(Shortage { needed, available });
            }
        }
        used.kv += kv;
        *used.working.entry(working).or_default() += 1;
        self.note_peak(&mut used);
        let memory = Arc::clone(self);
        Ok(Reservation {
            memory,
            kv,
            working,
        })
    }

    /// The cache holds this many tokens now.
    pub fn cache_holds(&self, tokens: u64) {
        let mut used = self.used.lock();
        used.cache = tokens * self.kv_per_token;
        self.note_peak(&mut used);
    }

    /// What is in use.
    pub fn in_use(&self) -> InUse {
        let used = self.used.lock();
        InUse {
            now: self.sum(&used),
            peak: used.peak.max(self.weights),
        }
    }

    fn sum(&self, used: &Used) -> u64 {
        self.weights + used.cache + used.kv + used.longest()
    }

    fn note_peak(&self, used: &mut Used) {
        used.peak = used.peak.max(self.sum(used));
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let memory = &self.memory;
        let mut used = memory.used.lock();
        used.kv = used.kv.saturating_sub(self.kv);
        if let Some(count) = used.working.get_mut(&self.working) {
            *count -= 1;
            if *count == 0 {
                used.working.remove(&self.working);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(kv_bits: u32) -> Arc<Memory> {
        let text = format!(
            "max_concurrent = 4\nprefill_s_per_token = 1.0\ndecode = [{{ batch = 1, step_ms = 1.0 }}]\n\
             memory = 1000\nweights = 300\ncache_ram = 200\nkv_bytes_per_token = 2\nkv_bits = {kv_bits}\n\
             working_bytes_per_token = 1\nmemory_margin = 10"
        );
        Arc::new(Memory::new(&toml::from_str(&text).unwrap()))
    }

    #[test]
    fn a_request_is_refused_when_keys_values_working_set_and_margin_do_not_fit() {
        let memory = memory(16);
        // 500 for requests: 240 + 100 + 10 are needed, then 260 are left.
        let first = memory.reserve(100, 20).unwrap();
        assert_eq!(
            memory.reserve(100, 20).unwrap_err(),
            Shortage {
                needed: 350,
                available: 260
            }
        );
        // A short one needs the working set of the long one that is read.
        let short = memory.reserve(10, 10).unwrap();
        drop(first);
        drop(short);
        memory.reserve(100, 20).unwrap();
        let InUse { now, peak } = memory.in_use();
        assert_eq!((now, peak), (300, 300 + 240 + 40 + 100));
    }

    #[test]
    fn half_the_bits_take_half_the_memory() {
        let memory = memory(8);
        let first = memory.reserve(100, 20).unwrap();
        memory.reserve(100, 20).unwrap();
        drop(first);
        memory.cache_holds(50);
        assert_eq!(memory.in_use().now, 300 + 50);
    }
}
