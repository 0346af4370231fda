//! The scheduler in a time of its own: requests arrive, work begins and ends, and nothing waits
//! for a clock. A second here is a simulated second.

mod behaviour;
mod published;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::counters::Counters;
use crate::faults::StreamFault;
use crate::memory::Memory;
use crate::profile::SimProfile;
use crate::server_log::ServerLog;
use crate::truth::TruthLog;
use flashrig_testkit::profile::simulated;

const START: Stamp = Stamp(1_000_000_000_000);

/// A built-in profile with some of its values replaced.
fn profile(name: &str, changes: &[&str]) -> SimProfile {
    let found = simulated(name, changes);
    let table = found.table.try_into().unwrap();
    SimProfile::new(name, found.model, found.context, &table).unwrap()
}

/// A request as the tests ask for it.
#[derive(Clone, Debug)]
struct Order {
    prompt_tokens: u64,
    output_tokens: u32,
    /// Whose prompt it is; those of one session begin alike.
    session: u64,
    fault: Option<StreamFault>,
}

/// What became of a request, in seconds since the start.
#[derive(Clone, Debug, Default)]
struct Outcome {
    arrived: f64,
    cached: u64,
    tokens: Vec<f64>,
    finished: Option<f64>,
}

impl Outcome {
    fn first_token(&self) -> f64 {
        self.tokens[0] - self.arrived
    }
    fn total(&self) -> f64 {
        self.tokens[self.tokens.len() - 1] - self.arrived
    }
}

/// A server without a clock.
struct Bench {
    scheduler: Scheduler,
    memory: Arc<Memory>,
    block: u64,
    received: Vec<Option<UnboundedReceiver<Event>>>,
    outcomes: Vec<Outcome>,
    /// Requests to come, by time.
    coming: Vec<(Stamp, usize, Order)>,
    now: Stamp,
}

impl Bench {
    fn new(profile: &SimProfile) -> Self {
        let table = profile.timing.table();
        let memory = Arc::new(Memory::new(table));
        let parts = Parts {
            timing: profile.timing.clone(),
            speed: 1.0,
            slower_each_request: table.faults.slower_each_request,
            seed: 1,
            counters: Arc::new(Counters::default()),
            memory: Arc::clone(&memory),
            log: TruthLog::create(None).unwrap(),
            server_log: ServerLog::default(),
        };
        Self {
            scheduler: Scheduler::new(parts, START),
            memory,
            block: u64::from(table.cache_block_tokens),
            received: Vec::new(),
            outcomes: Vec::new(),
            coming: Vec::new(),
            now: START,
        }
    }

    /// A request that arrives `at` seconds after the start; returns its number from 0.
    fn order(&mut self, at: f64, order: Order) -> usize {
        let number = self.outcomes.len();
        self.outcomes.push(Outcome {
            arrived: at,
            ..Outcome::default()
        });
        self.received.push(None);
        self.coming
            .push((START + Duration::from_secs_f64(at), number, order));
        self.coming.sort_by_key(|(at, number, _)| (*at, *number));
        number
    }

    fn ask(&mut self, at: f64, session: u64, prompt_tokens: u64, output_tokens: u32) -> usize {
        self.order(
            at,
            Order {
                prompt_tokens,
                output_tokens,
                session,
                fault: None,
            },
        )
    }

    fn job(&mut self, at: Stamp, number: usize, order: &Order) -> Job {
        let (events, received) = unbounded_channel();
        self.received[number] = Some(received);
        let blocks = |tokens: u64| tokens / self.block;
        let whole = blocks(order.prompt_tokens + u64::from(order.output_tokens));
        let memory = self
            .memory
            .reserve(order.prompt_tokens, u64::from(order.output_tokens))
            .unwrap();
        Job {
            request: number as u64 + 1,
            arrived: at,
            prompt_tokens: order.prompt_tokens,
            chain: (0..whole).map(|b| order.session << 32 | b).collect(),
            prompt_blocks: blocks(order.prompt_tokens) as usize,
            output_tokens: order.output_tokens,
            fault: order.fault,
            uncached: false,
            streamed: true,
            memory: Some(memory),
            events,
        }
    }

    /// One piece of work; false when nothing is left to do or to come.
    fn turn(&mut self) -> bool {
        self.take_until(self.now);
        let deadline = match self.scheduler.begin(self.now) {
            Some(deadline) => deadline,
            None => match self.coming.first() {
                Some((at, ..)) => {
                    self.now = *at;
                    return true;
                }
                None => return false,
            },
        };
        self.take_until(deadline);
        self.now = deadline;
        self.scheduler.complete(deadline);
        self.listen();
        true
    }

    fn take_until(&mut self, until: Stamp) {
        while self.coming.first().is_some_and(|(at, ..)| *at <= until) {
            let (at, number, order) = self.coming.remove(0);
            let job = self.job(at, number, &order);
            self.scheduler.take(Incoming::Job(Box::new(job)));
        }
    }

    fn listen(&mut self) {
        let at = self.now.since(START).as_secs_f64();
        for (outcome, received) in self.outcomes.iter_mut().zip(&mut self.received) {
            while let Some(Ok(event)) = received.as_mut().map(UnboundedReceiver::try_recv) {
                match event {
                    Event::Admitted { cached_tokens } => outcome.cached = cached_tokens,
                    Event::Token => outcome.tokens.push(at),
                    Event::Finished | Event::Broken(_) => outcome.finished = Some(at),
                }
            }
        }
    }

    /// The client of a request leaves.
    fn leave(&mut self, number: usize) {
        self.received[number] = None;
    }

    fn run(&mut self) {
        while self.turn() {}
    }

    /// Goes on until a request has this many tokens.
    fn run_to(&mut self, number: usize, tokens: usize) {
        while self.outcomes[number].tokens.len() < tokens && self.turn() {}
    }
}
