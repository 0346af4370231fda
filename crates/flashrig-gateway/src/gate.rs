//! The gate: lets a number of generation requests of all sessions into the server at once.
//!
//! Off by default. One gate is shared by every session of an arm. Probes and token counts never
//! come here. A place is held from the permit to the end of the answer, however that comes about,
//! and a client that leaves frees its place, whether it waits or is let in.
//!
//! **Order.** `fifo` takes who came first. `side-first` takes side requests before main ones, so
//! that a title is not kept waiting by somebody's long prompt. `shortest-first` takes the smallest
//! request body. In every order, the requests of one session and one role keep the order in which
//! they came: only the first of them is ever looked at.
//!
//! **Nobody starves.** A request can be overtaken by at most [`MAX_OVERTAKEN`] requests that came
//! after it; whoever has been is next. So who finds `n` requests in line before it is let in after
//! at most `n + MAX_OVERTAKEN` others.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use tokio::sync::oneshot;

use flashrig_record::{GateFact, GateOrder, Role};

/// How many later requests may overtake one that waits.
pub const MAX_OVERTAKEN: u32 = 8;

/// A gate; every session of an arm holds the same one.
pub struct Gate {
    limit: u32,
    order: GateOrder,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    let_in: u32,
    numbers: u64,
    clients: u64,
    /// In order of arrival.
    line: VecDeque<Waiter>,
}

struct Waiter {
    number: u64,
    client: u64,
    role: Role,
    bytes: u64,
    overtaken: u32,
    permit: oneshot::Sender<Permit>,
}

impl Gate {
    /// A gate that lets in at most `limit` requests at once.
    pub fn new(limit: NonZeroU32, order: GateOrder) -> Arc<Self> {
        Arc::new(Self {
            limit: limit.get(),
            order,
            state: Mutex::default(),
        })
    }

    /// A session's (or client's) own way in.
    pub fn client(self: &Arc<Self>) -> GateClient {
        let mut state = self.state();
        state.clients += 1;
        GateClient {
            gate: Arc::clone(self),
            id: state.clients,
        }
    }

    /// Requests that are let in, and those in line.
    pub fn counts(&self) -> (u32, u32) {
        let state = self.state();
        (state.let_in, length(&state.line))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Fills free places from the line.
    fn fill(self: &Arc<Self>) {
        loop {
            let waiter = {
                let mut state = self.state();
                if state.let_in >= self.limit {
                    return;
                }
                let Some(waiter) = state.take_next(self.order) else {
                    return;
                };
                state.let_in += 1;
                waiter
            };
            let permit = Permit {
                gate: Arc::clone(self),
                overtaken: waiter.overtaken,
            };
            // Who left in this very moment gives the permit back, and dropping it frees the place.
            drop(waiter.permit.send(permit));
        }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("limit", &self.limit)
            .field("order", &self.order)
            .finish_non_exhaustive()
    }
}

impl State {
    /// Takes who is next out of the line.
    fn take_next(&mut self, order: GateOrder) -> Option<Waiter> {
        let index = self.next(order)?;
        for passed in self.line.iter_mut().take(index) {
            passed.overtaken += 1;
        }
        self.line.remove(index)
    }

    fn next(&self, order: GateOrder) -> Option<usize> {
        // Who came earlier has been overtaken at least as often, so the first one tells for all.
        if self.line.front()?.overtaken >= MAX_OVERTAKEN {
            return Some(0);
        }
        let mut seen = HashSet::new();
        let mut firsts = self
            .line
            .iter()
            .enumerate()
            .filter(|(_, waiter)| seen.insert((waiter.client, waiter.role)));
        // Of equals the earliest: `min_by_key` gives the first.
        let next = match order {
            GateOrder::Fifo => firsts.next(),
            GateOrder::SideFirst => firsts.min_by_key(|(_, waiter)| waiter.role != Role::Side),
            GateOrder::ShortestFirst => firsts.min_by_key(|(_, waiter)| waiter.bytes),
        };
        next.map(|(index, _)| index)
    }
}

fn length(line: &VecDeque<Waiter>) -> u32 {
    u32::try_from(line.len()).unwrap_or(u32::MAX)
}

/// One session's way into a gate: its requests of one role stay in order.
#[derive(Clone, Debug)]
pub struct GateClient {
    gate: Arc<Gate>,
    id: u64,
}

impl GateClient {
    /// Puts a request of `bytes` in line. Its place counts from this call on.
    pub fn line_up(&self, role: Role, bytes: u64) -> Turn {
        let (sender, receiver) = oneshot::channel();
        let (number, found) = {
            let mut state = self.gate.state();
            let found = GateFact {
                let_in: state.let_in,
                in_line: length(&state.line),
                overtaken: 0,
            };
            state.numbers += 1;
            let number = state.numbers;
            state.line.push_back(Waiter {
                number,
                client: self.id,
                role,
                bytes,
                overtaken: 0,
                permit: sender,
            });
            (number, found)
        };
        self.gate.fill();
        Turn {
            held: found.let_in >= self.gate.limit || found.in_line > 0,
            gate: Arc::clone(&self.gate),
            number,
            found,
            receiver,
        }
    }
}

/// A place in line; dropping it leaves the line.
pub struct Turn {
    gate: Arc<Gate>,
    number: u64,
    found: GateFact,
    held: bool,
    receiver: oneshot::Receiver<Permit>,
}

impl Turn {
    /// What it found at the gate.
    pub fn found(&self) -> GateFact {
        self.found
    }

    /// Whether it had to line up behind others.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Waits until it is let in.
    pub async fn wait(mut self) -> Permit {
        match (&mut self.receiver).await {
            Ok(permit) => permit,
            // Cannot be: a waiter leaves the line with a permit or because this turn is gone.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // A permit that is on its way is dropped with the receiver, and that frees its place.
        let mut state = self.gate.state();
        let number = self.number;
        if let Ok(index) = state.line.binary_search_by_key(&number, |w| w.number) {
            state.line.remove(index);
        }
    }
}

/// A place in the server; dropping it lets the next one in.
pub struct Permit {
    gate: Arc<Gate>,
    overtaken: u32,
}

impl Permit {
    /// How many later requests were let in before this one.
    pub fn overtaken(&self) -> u32 {
        self.overtaken
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        {
            let mut state = self.gate.state();
            state.let_in = state.let_in.saturating_sub(1);
        }
        self.gate.fill();
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
