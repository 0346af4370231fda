//! Ctrl-C and termination: the first one stops in order, the second at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::exit::Exit;

/// Expresses the wish to stop when a signal comes, and tells of it. Runs until it is dropped.
pub async fn watch(tell: impl Fn(&str), stop: watch::Sender<bool>) {
    // A hang-up is left as it is, so that `nohup` works; agents end with flashrig in any case.
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
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
            tell("stopping: ending the agents, keeping what was finished (again to stop at once)");
            let _ = stop.send(true);
            first = false;
        } else {
            // The supervisors end their trees when this process is gone.
            std::process::exit(Exit::Interrupted as i32);
        }
    }
}
