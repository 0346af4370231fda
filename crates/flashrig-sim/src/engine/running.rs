//! A request with a slot.

use std::time::Duration;

use super::job::Job;
use crate::faults::StreamFaultKind;
use flashrig_clock::Stamp;

/// A request with a slot.
#[derive(Debug)]
pub struct Running {
    pub job: Job,
    pub slot: usize,
    pub cached_tokens: u64,
    /// Prompt tokens that are read; equal to the prompt's size once it decodes.
    pub read_tokens: u64,
    /// What is to be done before its prefill: set-up, and restoring what was cached.
    pub before_prefill: Duration,
    pub prefill_started: Option<Stamp>,
    pub prefill_ended: Option<Stamp>,
    /// When its prompt is read, if that goes on beside everything else.
    pub ready_at: Stamp,
    /// When it last had its turn among unread prompts; 0 before the first.
    pub last_chunk: u64,
    pub sent: u32,
    pub stalled: bool,
    /// Whether it took part in the step that ends now.
    pub in_step: bool,
}

impl Running {
    pub fn new(job: Job, slot: usize, cached_tokens: u64, before_prefill: Duration) -> Self {
        // One that never gives a token is not even read: its server's generation is dead.
        let stalled = job
            .fault
            .is_some_and(|f| f.kind == StreamFaultKind::Stall && f.after_tokens == 0);
        Self {
            job,
            slot,
            cached_tokens,
            read_tokens: cached_tokens,
            before_prefill,
            prefill_started: None,
            prefill_ended: None,
            ready_at: Stamp(0),
            last_chunk: 0,
            sent: 0,
            stalled,
            in_step: false,
        }
    }

    pub fn reads(&self) -> bool {
        !self.stalled && self.unread_tokens() > 0
    }

    pub fn decodes(&self) -> bool {
        !self.stalled && self.unread_tokens() == 0
    }

    pub fn unread_tokens(&self) -> u64 {
        self.job.prompt_tokens - self.read_tokens
    }

    /// Tokens whose keys and values a decode step reads.
    pub fn context(&self) -> u64 {
        self.job.prompt_tokens + u64::from(self.sent)
    }

    /// Whether its fault has come and ends it.
    pub fn is_broken(&self) -> bool {
        let fault = self.job.fault;
        self.decodes()
            && fault
                .is_some_and(|f| f.kind != StreamFaultKind::Stall && self.sent >= f.after_tokens)
    }

    pub fn is_over(&self) -> bool {
        self.decodes() && self.sent >= self.job.output_tokens || self.is_broken()
    }

    /// From the beginning of its prefill to the first token.
    pub fn prefill_time(&self) -> Duration {
        match (self.prefill_started, self.prefill_ended) {
            (Some(from), Some(to)) => to.since(from),
            _ => Duration::ZERO,
        }
    }

    /// From the first token to `end`.
    pub fn decode_time(&self, end: Stamp) -> Duration {
        self.prefill_ended
            .map_or(Duration::ZERO, |from| end.since(from))
    }
}
