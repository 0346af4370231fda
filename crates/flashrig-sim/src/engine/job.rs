//! What the scheduler is given, and what it answers with.

use tokio::sync::mpsc::UnboundedSender;

use crate::faults::{StreamFault, StreamFaultKind};
use crate::memory::Reservation;
use flashrig_clock::Stamp;

/// What the engine reports to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It has a slot; this many prompt tokens were cached.
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
    /// When its body had been read.
    pub arrived: Stamp,
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Block hashes of prompt and answer, for the next turn's cache.
    pub chain: Vec<u64>,
    /// How many of them are the prompt's.
    pub prompt_blocks: usize,
    /// Tokens to generate, at least 1.
    pub output_tokens: u32,
    /// What goes wrong with it.
    pub fault: Option<StreamFault>,
    /// Whether the cache fails for it.
    pub uncached: bool,
    /// Whether it is streamed; for the server's log only.
    pub streamed: bool,
    /// Its memory, given back at its end, before its client sees that.
    pub memory: Option<Reservation>,
    /// Where its events go; closed when the client left.
    pub events: UnboundedSender<Event>,
}

impl Job {
    /// Block hashes of the prompt.
    pub fn prompt_chain(&self) -> &[u64] {
        &self.chain[..self.prompt_blocks]
    }
}

/// A refused request, for the logs.
#[derive(Debug)]
pub struct Refusal {
    /// When its body had been read.
    pub at: Stamp,
    /// The error text that the client got.
    pub reason: String,
    /// Tokens of its prompt, when they were counted.
    pub prompt_tokens: Option<u64>,
}

/// What comes in.
#[derive(Debug)]
pub enum Incoming {
    /// A request to serve.
    Job(Box<Job>),
    /// One that was refused.
    Refusal(Refusal),
}
