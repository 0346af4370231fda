//! Reaps every child of the helper, and says when none is left.

use std::process;
use std::sync::mpsc::Sender;
use std::thread;

use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};

use super::Event;
use crate::usage::ExitStatus;
use flashrig_clock::Stamp;

/// Starts reaping. Call it when the first child is there: it ends with the last one.
///
/// Where orphans are adopted, a helper without children is a helper without descendants: the
/// kernel hands on the children of a dying process before its death can be seen.
pub(super) fn start(events: Sender<Event>) {
    thread::spawn(move || {
        loop {
            let reaped = wait(WaitOptions::empty());
            // Nothing may come between the return and the reading: this stops the agent's clock.
            let stamp = Stamp::now();
            let event = match reaped {
                Ok(Some((pid, status))) => {
                    let pid = u32::try_from(pid.as_raw_nonzero().get()).unwrap_or_default();
                    let status = match (status.exit_status(), status.terminating_signal()) {
                        (Some(code), _) => ExitStatus::Exited(code),
                        (None, Some(signal)) => ExitStatus::Signalled(signal),
                        (None, None) => continue,
                    };
                    Event::Reaped { pid, status, stamp }
                }
                Ok(None) | Err(Errno::INTR) => continue,
                Err(Errno::CHILD) => {
                    let _ = events.send(Event::Childless);
                    return;
                }
                // Any other error is not one that waiting can have; ending the helper ends the tree.
                Err(_) => process::abort(),
            };
            if events.send(event).is_err() {
                return;
            }
        }
    });
}
