//! Prompts that are read beside decoding and beside each other, each in a time of its own.

use super::running::Running;
use super::scheduler::{Scheduler, Work};
use crate::truth::Truth;
use flashrig_clock::Stamp;

impl Scheduler {
    /// Begins to read a prompt beside everything else, from its arrival if there was a slot then.
    pub(super) fn read_beside(&mut self, index: usize) {
        let slot = &self.running[index];
        if slot.stalled {
            return;
        }
        let at = slot.job.arrived.max(self.full_until).min(self.now);
        let reading = self
            .parts
            .timing
            .prefill(slot.read_tokens, slot.job.prompt_tokens);
        let all = slot.before_prefill + reading;
        let took = self.after(all).since(self.now);
        let slot = &mut self.running[index];
        let request = slot.job.request;
        slot.prefill_started = Some(at);
        slot.ready_at = at + took;
        self.parts.log.write(&Truth::PrefillStart { request, at });
    }

    /// What ends next of all that goes on side by side.
    pub(super) fn choose_beside(&mut self) -> Option<(Work, Stamp)> {
        if self.step_end.is_none() && self.running.iter().any(Running::decodes) {
            let (_, duration) = self.step();
            self.step_end = Some(self.after(duration));
        }
        let unread = self.running.iter().enumerate().filter(|(_, r)| r.reads());
        let ready = unread.min_by_key(|(_, r)| r.ready_at);
        match (self.step_end, ready) {
            (Some(end), Some((index, r))) if r.ready_at < end => {
                Some((Work::Ready { index }, r.ready_at.max(self.now)))
            }
            (Some(end), _) => Some((Work::Decode, end)),
            (None, Some((index, r))) => Some((Work::Ready { index }, r.ready_at.max(self.now))),
            (None, None) => None,
        }
    }
}
