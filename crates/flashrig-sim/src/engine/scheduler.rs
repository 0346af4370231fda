//! The step scheduler: decides what is computed next and when it ends, without waiting for it.
//!
//! Time is the scheduler's own: every piece of work ends at an absolute deadline computed from
//! the one before, so that late timers make single tokens late but never the whole. An idle
//! scheduler begins at the arrival of the next request. It knows token counts and block hashes
//! only; what the tokens say is none of its business.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::job::{Incoming, Job, Refusal};
use super::running::Running;
use crate::cache::Cache;
use crate::counters::Counters;
use crate::memory::Memory;
use crate::noise::Noise;
use crate::profile::{PrefillOrder, Timing};
use crate::server_log::ServerLog;
use crate::truth::{Truth, TruthLog};
use flashrig_clock::Stamp;

/// What a scheduler is made of.
pub struct Parts {
    /// Durations.
    pub timing: Timing,
    /// All durations are divided by this.
    pub speed: f64,
    /// Each request makes everything slower by this share.
    pub slower_each_request: f64,
    /// Seed of the noise.
    pub seed: u64,
    /// What `/metrics` reads.
    pub counters: Arc<Counters>,
    /// Learns what the cache holds.
    pub memory: Arc<Memory>,
    /// The truth.
    pub log: TruthLog,
    /// What a real server would log.
    pub server_log: ServerLog,
}

/// A piece of work that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// The prompt of the sequence at `index` is read up to token `to`.
    Chunk { index: usize, to: u64 },
    /// The prompt of the sequence at `index` is read, beside everything else.
    Ready { index: usize },
    /// One token for every sequence.
    Decode,
}

/// The scheduler.
pub struct Scheduler {
    pub(super) parts: Parts,
    pub(super) noise: Noise,
    pub(super) cache: Cache,
    pub(super) waiting: VecDeque<Job>,
    pub(super) running: Vec<Running>,
    pub(super) admitted: u64,
    /// The end of the last piece of work.
    pub(super) now: Stamp,
    pub(super) work: Option<(Work, Stamp)>,
    /// The end of the step that goes on while prompts are read beside it.
    pub(super) step_end: Option<Stamp>,
    /// When all slots were last taken.
    pub(super) full_until: Stamp,
    /// The sequence whose prompt is read to its end before another's.
    pub(super) reading: Option<u64>,
    /// Time that decoding may have before the next chunk; in seconds, may be overdrawn.
    pub(super) decode_credit: f64,
    pub(super) decode_is_next: bool,
    pub(super) chunks: u64,
}

impl Scheduler {
    /// An idle scheduler at `now`.
    pub fn new(parts: Parts, now: Stamp) -> Self {
        Self {
            noise: Noise::new(parts.seed, parts.timing.table().noise),
            cache: Cache::new(parts.timing.table()),
            parts,
            waiting: VecDeque::new(),
            running: Vec::new(),
            admitted: 0,
            now,
            work: None,
            step_end: None,
            full_until: now,
            reading: None,
            decode_credit: 0.0,
            decode_is_next: false,
            chunks: 0,
        }
    }

    /// Whether no request is in line or has a slot.
    pub fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    /// Takes in a request, or the news of a refused one.
    pub fn take(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Job(job) => {
                self.parts.log.write(&Truth::Queued {
                    request: job.request,
                    at: job.arrived,
                    prompt_tokens: job.prompt_tokens,
                    planned_tokens: job.output_tokens,
                });
                // Long prompts take longer to be looked at than short ones that came after them.
                let place = self.waiting.partition_point(|w| w.arrived <= job.arrived);
                self.waiting.insert(place, *job);
            }
            Incoming::Refusal(Refusal {
                at,
                reason,
                prompt_tokens,
            }) => self.parts.log.write(&Truth::Refused {
                at,
                reason,
                prompt_tokens,
            }),
        }
    }

    /// Begins the next piece of work, and says when it ends; `None` when there is nothing to do.
    /// `wall` is the time outside, which matters to a scheduler that computes nothing.
    pub fn begin(&mut self, wall: Stamp) -> Option<Stamp> {
        let computing = self.computes();
        let at = if computing {
            self.now
        } else {
            self.now.max(wall)
        };
        let freed = self.drop_gone(at);
        if freed && !computing {
            self.now = at;
        }
        if !self.running.iter().any(Running::decodes) {
            // Whoever was in it has left.
            self.step_end = None;
        }
        if !self.computes()
            && let Some(next) = self.waiting.front()
        {
            // The scheduler's clock lags behind the arrival; it catches up and admits it.
            self.now = self.now.max(next.arrived);
        }
        self.admit();
        let (work, deadline) = if self.parts.timing.table().prefill_beside {
            self.choose_beside()?
        } else {
            let (work, duration) = self.choose()?;
            (work, self.after(duration))
        };
        self.work = Some((work, deadline));
        Some(deadline)
    }

    /// The scheduler's clock after so much work.
    pub(super) fn after(&mut self, duration: Duration) -> Stamp {
        let slower = self.parts.slower_each_request;
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
        let growth = 1.0 + slower * self.admitted.saturating_sub(1) as f64;
        self.now
            + self
                .noise
                .apply(duration)
                .mul_f64(growth / self.parts.speed)
    }

    /// Ends the piece of work that was begun, at its deadline; `wall` says how late that is.
    pub fn complete(&mut self, wall: Stamp) {
        let Some((work, deadline)) = self.work.take() else {
            return;
        };
        self.now = deadline;
        match work {
            Work::Chunk { index, to } => self.chunk_read(index, to),
            Work::Ready { index } => {
                let to = self.running[index].job.prompt_tokens;
                self.chunk_read(index, to);
            }
            Work::Decode => self.step_done(wall),
        }
        self.sweep();
    }

    /// Whether something is in the log, but not in its file.
    pub fn has_unflushed(&self) -> bool {
        self.parts.log.is_unflushed()
    }

    /// Brings the log to its file.
    pub fn flush(&mut self) {
        self.parts.log.flush();
    }

    fn computes(&self) -> bool {
        self.running.iter().any(|r| r.reads() || r.decodes())
    }

    /// What is computed next, and for how long.
    fn choose(&mut self) -> Option<(Work, Duration)> {
        let decodes = self.running.iter().any(Running::decodes);
        let unread = self.next_to_read();
        if unread.is_none() || !decodes {
            // What was not used is not saved up for those who come later.
            self.decode_credit = 0.0;
        }
        let decode_first = decodes && (self.decode_is_next || self.decode_credit > 0.0);
        match unread {
            Some(index) if !decode_first => Some(self.chunk(index, decodes)),
            _ if decodes => Some(self.step()),
            _ => None,
        }
    }

    /// The sequence whose prompt is read next.
    fn next_to_read(&self) -> Option<usize> {
        let table = self.parts.timing.table();
        let unread = || self.running.iter().enumerate().filter(|(_, r)| r.reads());
        if table.prefill_interleave {
            return unread().min_by_key(|(_, r)| r.last_chunk).map(|(i, _)| i);
        }
        let begun = unread().find(|(_, r)| Some(r.job.request) == self.reading);
        let next = || match table.prefill_order {
            PrefillOrder::Fifo => unread().next(),
            PrefillOrder::ShortestFirst => unread().min_by_key(|(_, r)| r.unread_tokens()),
        };
        begun.or_else(next).map(|(index, _)| index)
    }

    fn chunk(&mut self, index: usize, decodes: bool) -> (Work, Duration) {
        let table = self.parts.timing.table();
        let (share, interleaves) = (table.prefill_decode_share, table.prefill_interleave);
        let chunk = u64::from(table.prefill_chunk_tokens);
        let slot = &mut self.running[index];
        let from = slot.read_tokens;
        let to = (from + chunk).min(slot.job.prompt_tokens);
        let mut duration = self.parts.timing.prefill(from, to);
        if slot.prefill_started.is_none() {
            slot.prefill_started = Some(self.now);
            duration += slot.before_prefill;
            self.parts.log.write(&Truth::PrefillStart {
                request: slot.job.request,
                at: self.now,
            });
        }
        self.chunks += 1;
        slot.last_chunk = self.chunks;
        self.reading = Some(slot.job.request);
        self.decode_is_next = interleaves;
        if decodes && share > 0.0 {
            self.decode_credit += duration.as_secs_f64() * share / (1.0 - share);
        }
        (Work::Chunk { index, to }, duration)
    }

    pub(super) fn step(&mut self) -> (Work, Duration) {
        let (mut batch, mut context) = (0u32, 0u64);
        for decoding in self.running.iter_mut().filter(|r| r.decodes()) {
            decoding.in_step = true;
            batch += 1;
            context += decoding.context();
        }
        #[expect(clippy::cast_precision_loss, reason = "contexts are far below 2^53")]
        let mean = context as f64 / f64::from(batch.max(1));
        let duration = self.parts.timing.decode_step(batch, mean);
        self.decode_is_next = false;
        self.decode_credit -= duration.as_secs_f64();
        (Work::Decode, duration)
    }

    fn chunk_read(&mut self, index: usize, to: u64) {
        let at = self.now;
        let Some(slot) = self.running.get_mut(index) else {
            return;
        };
        slot.read_tokens = to;
        if slot.reads() {
            return;
        }
        slot.prefill_ended = Some(at);
        let request = slot.job.request;
        self.reading = None;
        self.parts.log.write(&Truth::PrefillEnd { request, at });
        self.send_token(index);
        // The token first: its client does not wait for the cache.
        let slot = &self.running[index];
        if !slot.job.uncached {
            self.cache.insert(slot.slot, slot.job.prompt_chain());
            self.report_memory();
        }
    }

    /// One token for every sequence that was there when the step began.
    fn step_done(&mut self, wall: Stamp) {
        self.step_end = None;
        let mut requests = Vec::new();
        for index in 0..self.running.len() {
            if std::mem::take(&mut self.running[index].in_step) {
                if self.parts.log.is_on() {
                    requests.push(self.running[index].job.request);
                }
                self.send_token(index);
            }
        }
        let late_ns = u64::try_from(wall.since(self.now).as_nanos()).unwrap_or(u64::MAX);
        let at = self.now;
        self.parts.log.write(&Truth::Step {
            at,
            late_ns,
            requests,
        });
    }

    pub(super) fn report_memory(&self) {
        let block = u64::from(self.parts.timing.table().cache_block_tokens);
        self.parts
            .memory
            .cache_holds(self.cache.ram_blocks() * block);
    }
}
