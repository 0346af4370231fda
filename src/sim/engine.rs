//! The step scheduler: decides when each token comes. One task, no parallelism, no drift.
//!
//! Time is the scheduler's own: every step ends at an absolute deadline computed from the one
//! before, so that late timers make single tokens late but never the whole. It knows token counts
//! and block hashes only; what the tokens say is none of its business.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::cache::PrefixCache;
use super::counters::Counters;
use super::faults::{StreamFault, StreamFaultKind};
use super::noise::Noise;
use super::profile::Timing;
use super::truth::{Truth, TruthEnd, TruthLog};
use crate::clock::Stamp;

/// What a request hears from the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It has a slot; so many prompt tokens were cached.
    Admitted {
        /// Prompt tokens that need no prefill.
        cached_tokens: u64,
    },
    /// The next token is due.
    Token,
    /// That was the last token.
    Finished,
    /// A configured fault ends the answer.
    Broken(StreamFaultKind),
}

/// A request as the engine sees it.
#[derive(Debug)]
pub struct Job {
    /// Counts requests from 1.
    pub request: u64,
    /// When it arrived.
    pub arrived: Stamp,
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Block hashes of the prompt.
    pub prompt_chain: Vec<u64>,
    /// Block hashes of prompt and answer, for the next turn's cache.
    pub whole_chain: Vec<u64>,
    /// Tokens to generate, at least 1.
    pub output_tokens: u32,
    /// What goes wrong with it.
    pub fault: Option<StreamFault>,
    /// Where its events go; closed when the client left.
    pub events: UnboundedSender<Event>,
}

/// A request with a slot.
#[derive(Debug)]
struct Running {
    job: Job,
    /// Prompt tokens that are read; equal to the prompt's size once it decodes.
    read_tokens: u64,
    prefill_started: bool,
    sent: u32,
    stalled: bool,
}

impl Running {
    fn reads(&self) -> bool {
        self.read_tokens < self.job.prompt_tokens
    }
    fn decodes(&self) -> bool {
        !self.reads() && !self.stalled
    }
}

/// The scheduler.
pub struct Engine {
    timing: Timing,
    speed: f64,
    noise: Noise,
    inbox: UnboundedReceiver<Job>,
    counters: Arc<Counters>,
    log: TruthLog,
    cache: PrefixCache,
    waiting: VecDeque<Job>,
    running: Vec<Running>,
    /// The scheduler's clock: the end of the last step.
    now: Stamp,
}

impl Engine {
    /// An idle engine.
    pub fn new(
        timing: Timing,
        speed: f64,
        seed: u64,
        inbox: UnboundedReceiver<Job>,
        counters: Arc<Counters>,
        log: TruthLog,
    ) -> Self {
        let noise = Noise::new(seed, timing.table().noise);
        let cache = PrefixCache::new(timing.cache_blocks());
        let (waiting, running, now) = (VecDeque::new(), Vec::new(), Stamp::now());
        Self {
            timing,
            speed,
            noise,
            inbox,
            counters,
            log,
            cache,
            waiting,
            running,
            now,
        }
    }

    /// Schedules until every sender of jobs is gone.
    pub async fn run(mut self) {
        loop {
            while let Ok(job) = self.inbox.try_recv() {
                self.queue(job);
            }
            self.drop_gone();
            self.admit();
            if self.running.iter().any(Running::reads) {
                self.prefill_chunk().await;
            } else if self.running.iter().any(Running::decodes) {
                self.decode_step().await;
            } else if !self.rest().await {
                return;
            }
        }
    }

    /// Nothing to compute: waits for a request. False when none can come any more.
    async fn rest(&mut self) -> bool {
        if self.running.is_empty()
            && let Some(next) = self.waiting.front()
        {
            // The scheduler's clock lags behind the arrival; it catches up and admits it.
            self.now = self.now.max(next.arrived);
            return true;
        }
        if self.running.is_empty() {
            match self.inbox.recv().await {
                Some(job) => self.queue(job),
                None => return false,
            }
        } else {
            // Only stalled answers hold slots; they end when their client leaves.
            let pause = tokio::time::sleep(Duration::from_millis(20));
            tokio::select! {
                job = self.inbox.recv() => match job {
                    Some(job) => self.queue(job),
                    None => return false,
                },
                () = pause => {}
            }
            self.now = self.now.max(Stamp::now());
        }
        if let Some(next) = self.waiting.front() {
            self.now = self.now.max(next.arrived);
        }
        true
    }

    fn queue(&mut self, job: Job) {
        self.log.write(&Truth::Queued {
            request: job.request,
            at: job.arrived,
            prompt_tokens: job.prompt_tokens,
            planned_tokens: job.output_tokens,
        });
        self.waiting.push_back(job);
    }

    /// Frees the slots and places of clients that left.
    fn drop_gone(&mut self) {
        let at = self.now;
        for gone in self.running.extract_if(.., |r| r.job.events.is_closed()) {
            self.counters.running.fetch_sub(1, Ordering::Relaxed);
            let (request, tokens, end) = (gone.job.request, gone.sent, TruthEnd::ClientLeft);
            self.log.write(&Truth::Finished {
                request,
                at,
                tokens,
                end,
            });
        }
        let (counters, log) = (&self.counters, &mut self.log);
        self.waiting.retain(|job| {
            let gone = job.events.is_closed();
            if gone {
                counters.waiting.fetch_sub(1, Ordering::Relaxed);
                let (request, at, end) = (job.request, at.max(job.arrived), TruthEnd::ClientLeft);
                log.write(&Truth::Finished {
                    request,
                    at,
                    tokens: 0,
                    end,
                });
            }
            !gone
        });
    }

    /// Gives free slots to those in line, first come first served.
    fn admit(&mut self) {
        let slots = self.timing.table().max_concurrent as usize;
        while self.running.len() < slots {
            if self
                .waiting
                .front()
                .is_none_or(|job| job.arrived > self.now)
            {
                break;
            }
            let Some(job) = self.waiting.pop_front() else {
                break;
            };
            let block = u64::from(self.timing.table().cache_block_tokens);
            let hits = self.cache.hit(&job.prompt_chain) as u64;
            // The last token is always computed: without it there is nothing to predict from.
            let cached_tokens = (hits * block).min(job.prompt_tokens.saturating_sub(1));
            self.counters.waiting.fetch_sub(1, Ordering::Relaxed);
            self.counters.running.fetch_add(1, Ordering::Relaxed);
            self.counters
                .prompt_tokens
                .fetch_add(job.prompt_tokens, Ordering::Relaxed);
            self.counters
                .cache_queries
                .fetch_add(job.prompt_tokens, Ordering::Relaxed);
            self.counters
                .cache_hits
                .fetch_add(cached_tokens, Ordering::Relaxed);
            self.log.write(&Truth::Admitted {
                request: job.request,
                at: self.now,
                cached_tokens,
            });
            let _ = job.events.send(Event::Admitted { cached_tokens });
            let read_tokens = cached_tokens;
            self.running.push(Running {
                job,
                read_tokens,
                prefill_started: false,
                sent: 0,
                stalled: false,
            });
        }
    }

    /// Reads one chunk of the oldest unread prompt. Decoding stands still meanwhile.
    async fn prefill_chunk(&mut self) {
        let Some(index) = self.running.iter().position(Running::reads) else {
            return;
        };
        let slot = &mut self.running[index];
        let chunk = u64::from(self.timing.table().prefill_chunk_tokens);
        let from = slot.read_tokens;
        let to = (from + chunk).min(slot.job.prompt_tokens);
        let mut duration = self.timing.prefill(from, to);
        if !slot.prefill_started {
            slot.prefill_started = true;
            duration += self.timing.request_overhead();
            self.log.write(&Truth::PrefillStart {
                request: slot.job.request,
                at: self.now,
            });
        }
        self.advance(duration).await;
        let slot = &mut self.running[index];
        slot.read_tokens = to;
        if !slot.reads() {
            let request = slot.job.request;
            self.cache.insert(&slot.job.prompt_chain);
            self.log.write(&Truth::PrefillEnd {
                request,
                at: self.now,
            });
            self.send_token(index);
            self.sweep();
        }
    }

    /// One token for every sequence.
    async fn decode_step(&mut self) {
        let batch = self.running.iter().filter(|r| r.decodes()).count();
        let step = self
            .timing
            .decode_step(u32::try_from(batch).unwrap_or(u32::MAX));
        self.advance(step).await;
        if self.log.is_on() {
            let requests = self
                .running
                .iter()
                .filter(|r| r.decodes())
                .map(|r| r.job.request)
                .collect();
            let late = Stamp::now().since(self.now).as_nanos();
            let late_ns = u64::try_from(late).unwrap_or(u64::MAX);
            self.log.write(&Truth::Step {
                at: self.now,
                late_ns,
                requests,
            });
        }
        for index in 0..self.running.len() {
            if self.running[index].decodes() {
                self.send_token(index);
            }
        }
        self.sweep();
    }

    /// Sends the next token of a sequence, unless its fault is due.
    fn send_token(&mut self, index: usize) {
        let slot = &mut self.running[index];
        if let Some(fault) = slot.job.fault
            && slot.sent >= fault.after_tokens
        {
            // The other kinds are ended by `sweep`, which frees the slot too.
            slot.stalled = fault.kind == StreamFaultKind::Stall;
            return;
        }
        slot.sent += 1;
        self.counters
            .generation_tokens
            .fetch_add(1, Ordering::Relaxed);
        let _ = slot.job.events.send(Event::Token);
    }

    /// Takes finished and broken sequences out of their slots.
    fn sweep(&mut self) {
        let is_broken = |r: &Running| {
            !r.stalled
                && r.job
                    .fault
                    .is_some_and(|f| r.sent >= f.after_tokens && f.kind != StreamFaultKind::Stall)
        };
        let is_over =
            |r: &mut Running| !r.reads() && (r.sent >= r.job.output_tokens || is_broken(r));
        for over in self.running.extract_if(.., is_over) {
            self.counters.running.fetch_sub(1, Ordering::Relaxed);
            let (request, at, tokens) = (over.job.request, self.now, over.sent);
            let end = if is_broken(&over) {
                TruthEnd::Fault
            } else {
                TruthEnd::Complete
            };
            // The log first: whoever has seen the end can read it there.
            self.log.write(&Truth::Finished {
                request,
                at,
                tokens,
                end,
            });
            match (end, over.job.fault) {
                (TruthEnd::Fault, Some(fault)) => {
                    let _ = over.job.events.send(Event::Broken(fault.kind));
                }
                _ => {
                    self.cache.insert(&over.job.whole_chain);
                    let _ = over.job.events.send(Event::Finished);
                }
            }
        }
    }

    /// Moves the scheduler's clock on and waits for it.
    async fn advance(&mut self, duration: Duration) {
        let scaled = self.noise.apply(duration).div_f64(self.speed);
        self.now = self.now + scaled;
        let ahead = self.now.since(Stamp::now());
        if ahead.is_zero() {
            // Behind schedule: no sleep, but the connections must get their turn.
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(ahead).await;
        }
    }
}
