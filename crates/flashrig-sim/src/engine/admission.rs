//! Who gets a slot, and what it finds in the cache.

use std::sync::atomic::Ordering;

use super::job::{Event, Job};
use super::running::Running;
use super::scheduler::Scheduler;
use crate::cache::Hit;
use crate::truth::Truth;

impl Scheduler {
    /// Gives free slots to those in line, first come first served.
    pub(super) fn admit(&mut self) {
        let slots = self.parts.timing.table().max_concurrent as usize;
        while self.running.len() < slots
            && self.waiting.front().is_some_and(|j| j.arrived <= self.now)
            && let Some(job) = self.waiting.pop_front()
        {
            let mut taken = vec![false; slots];
            for running in &self.running {
                taken[running.slot] = true;
            }
            let free = (0..slots).filter(|slot| !taken[*slot]);
            let slot = self
                .cache
                .best_slot(job.prompt_chain(), free)
                .unwrap_or_default();
            self.start(job, slot);
        }
        if self.running.len() == slots {
            self.full_until = self.now;
        }
    }

    fn start(&mut self, job: Job, slot: usize) {
        let timing = &self.parts.timing;
        let block = u64::from(timing.table().cache_block_tokens);
        let hit = if job.uncached {
            Hit::default()
        } else {
            self.cache.hit(slot, job.prompt_chain())
        };
        let (ram, disk) = (hit.ram_blocks * block, hit.disk_blocks * block);
        // The last token is always computed: without it there is nothing to predict from.
        let cached_tokens = (ram + disk).min(job.prompt_tokens.saturating_sub(1));
        let mut before = timing.request_overhead() + timing.restore(ram, disk);
        self.admitted += 1;
        if self.admitted == 1 {
            before += timing.first_request_cost();
        }
        let counters = &self.parts.counters;
        counters.waiting.fetch_sub(1, Ordering::Relaxed);
        counters.running.fetch_add(1, Ordering::Relaxed);
        for (counter, tokens) in [
            (&counters.prompt_tokens, job.prompt_tokens),
            (&counters.cache_queries, job.prompt_tokens),
            (&counters.cache_hits, cached_tokens),
        ] {
            counter.fetch_add(tokens, Ordering::Relaxed);
        }
        self.parts.log.write(&Truth::Admitted {
            request: job.request,
            at: self.now,
            cached_tokens,
            disk_tokens: disk.min(cached_tokens),
        });
        let _ = job.events.send(Event::Admitted { cached_tokens });
        let running = Running::new(job, slot, cached_tokens, before);
        self.running.push(running);
        if self.parts.timing.table().prefill_beside {
            self.read_beside(self.running.len() - 1);
        }
    }
}
