//! How tokens leave, and how requests end: complete, by a fault, or because the client left.

use std::sync::atomic::Ordering;

use super::job::Event;
use super::running::Running;
use super::scheduler::Scheduler;
use crate::faults::StreamFaultKind;
use crate::server_log::Served;
use crate::truth::{Truth, TruthEnd};
use flashrig_clock::Stamp;

impl Scheduler {
    /// Frees the slots and places of clients that left; whether any slot was freed.
    pub(super) fn drop_gone(&mut self, at: Stamp) -> bool {
        if self.parts.timing.table().keep_slot_after_leave {
            return false;
        }
        let (counters, log) = (&self.parts.counters, &mut self.parts.log);
        let mut end = |request, at, tokens| {
            let end = TruthEnd::ClientLeft;
            log.write(&Truth::Finished {
                request,
                at,
                tokens,
                end,
            });
            log.flush();
        };
        self.waiting.retain(|job| {
            let gone = job.events.is_closed();
            if gone {
                counters.waiting.fetch_sub(1, Ordering::Relaxed);
                end(job.request, at.max(job.arrived), 0);
            }
            !gone
        });
        let before = self.running.len();
        for gone in self.running.extract_if(.., |r| r.job.events.is_closed()) {
            counters.running.fetch_sub(1, Ordering::Relaxed);
            end(gone.job.request, at, gone.sent);
        }
        before > self.running.len()
    }

    /// Sends the next token of a sequence, unless its fault is due.
    pub(super) fn send_token(&mut self, index: usize) {
        let slot = &mut self.running[index];
        if let Some(fault) = slot.job.fault
            && slot.sent >= fault.after_tokens
        {
            // The other kinds are ended by `sweep`, which frees the slot too.
            slot.stalled = fault.kind == StreamFaultKind::Stall;
            return;
        }
        slot.sent += 1;
        self.parts
            .counters
            .generation_tokens
            .fetch_add(1, Ordering::Relaxed);
        let _ = slot.job.events.send(Event::Token);
    }

    /// Takes finished and broken sequences out of their slots.
    pub(super) fn sweep(&mut self) {
        if !self.running.iter().any(Running::is_over) {
            return;
        }
        let mut over: Vec<Running> = self.running.extract_if(.., |r| r.is_over()).collect();
        for over in &mut over {
            // A client may send its next turn the moment it sees the end: that must not find
            // the memory of this one taken.
            over.job.memory = None;
            self.parts.counters.running.fetch_sub(1, Ordering::Relaxed);
            let broken = over.is_broken();
            let (request, at, tokens) = (over.job.request, self.now, over.sent);
            let end = if broken {
                TruthEnd::Fault
            } else {
                TruthEnd::Complete
            };
            // The logs first: whoever has seen the end can read it there.
            self.parts.log.write(&Truth::Finished {
                request,
                at,
                tokens,
                end,
            });
            self.parts.server_log.served(&Served {
                prompt_tokens: over.job.prompt_tokens,
                cached_tokens: over.cached_tokens,
                tokens,
                streamed: over.job.streamed,
                prefill_s: over.prefill_time().as_secs_f64() * self.parts.speed,
                decode_s: over.decode_time(at).as_secs_f64() * self.parts.speed,
                broken,
            });
        }
        self.parts.log.flush();
        for over in over {
            match over.job.fault {
                Some(fault) if over.is_broken() => {
                    let _ = over.job.events.send(Event::Broken(fault.kind));
                }
                _ => {
                    let _ = over.job.events.send(Event::Finished);
                    if !over.job.uncached {
                        self.cache.insert(over.slot, &over.job.chain);
                        self.report_memory();
                    }
                }
            }
        }
    }
}
