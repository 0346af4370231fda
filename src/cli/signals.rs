//! Ctrl-C and termination: the first one stops in order, the second at once.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::exit::Exit;

/// Expresses the wish to stop when a signal comes, and tells of it. Runs until it is dropped.
///
/// Signals are caught from this call on, not from when the task first runs: whoever is told that a
/// server is ready may stop it at once.
pub fn watch(report: impl Fn(&str), stop: watch::Sender<bool>) -> impl Future<Output = ()> {
    // A hang-up is left as it is, so that `nohup` works; agents end with flashrig in any case.
    let caught = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    );
    watching(caught, report, stop)
}

async fn watching(
    caught: (io::Result<Signal>, io::Result<Signal>),
    report: impl Fn(&str),
    stop: watch::Sender<bool>,
) {
    let (Ok(mut interrupt), Ok(mut terminate)) = caught else {
        std::future::pending::<()>().await;
        return;
    };
    let mut first = true;
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        if first {
            report(
                "stopping: ending the agents, keeping what was finished (again to stop at once)",
            );
            let _ = stop.send(true);
            first = false;
        } else {
            // The supervisors end their trees when this process is gone.
            std::process::exit(Exit::Interrupted as i32);
        }
    }
}
