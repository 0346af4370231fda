//! The engine: a scheduler that decides what is computed next, and a thread that keeps its time.
//!
//! The thread is its own, with the system's own sleep, since the timers of an async runtime are
//! rounded to a millisecond: at speed 200 that is a fifth of a simulated second.

mod admission;
mod beside;
mod ends;
mod job;
mod running;
mod scheduler;
#[cfg(test)]
mod tests;

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

pub use job::{Event, Incoming, Job, Refusal};
pub use scheduler::{Parts, Scheduler};

use flashrig_clock::Stamp;

/// How often it is looked whether the clients of stalled answers have left.
const LOOK: Duration = Duration::from_millis(20);
/// A pause in which the log can be flushed without making anything late.
const SPARE: Duration = Duration::from_millis(1);

/// Every sender of requests is gone.
struct Gone;

/// Schedules until every sender of requests is gone.
pub fn run(mut scheduler: Scheduler, inbox: &Receiver<Incoming>) {
    while turn(&mut scheduler, inbox).is_ok() {}
    scheduler.flush();
}

fn turn(scheduler: &mut Scheduler, inbox: &Receiver<Incoming>) -> Result<(), Gone> {
    while let Ok(incoming) = inbox.try_recv() {
        scheduler.take(incoming);
    }
    if let Some(deadline) = scheduler.begin(Stamp::now()) {
        wait(scheduler, inbox, deadline)?;
        scheduler.complete(Stamp::now());
        return Ok(());
    }
    scheduler.flush();
    let next = if scheduler.is_idle() {
        inbox.recv().map_err(|_| Gone).map(Some)?
    } else {
        // Only stalled answers hold slots; they end when their client leaves.
        match inbox.recv_timeout(LOOK) {
            Ok(incoming) => Some(incoming),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Err(Gone),
        }
    };
    if let Some(incoming) = next {
        scheduler.take(incoming);
    }
    Ok(())
}

/// Waits for the deadline, taking in what comes meanwhile.
fn wait(
    scheduler: &mut Scheduler,
    inbox: &Receiver<Incoming>,
    deadline: Stamp,
) -> Result<(), Gone> {
    loop {
        let mut ahead = deadline.since(Stamp::now());
        if ahead > SPARE && scheduler.has_unflushed() {
            scheduler.flush();
            ahead = deadline.since(Stamp::now());
        }
        if ahead.is_zero() {
            return Ok(());
        }
        match inbox.recv_timeout(ahead) {
            Ok(incoming) => scheduler.take(incoming),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Gone),
        }
    }
}
