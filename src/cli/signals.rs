//! Ctrl-C and termination: the first one stops in order, the second at once.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::console::Console;
use super::exit::Exit;

/// Says `message` and asks for a stop when a signal comes. Runs until it is dropped.
///
/// Signals are caught from this call on, not from when the task first runs: whoever learns that a
/// server is ready may stop it at once.
pub fn watch(
    console: Console,
    message: impl Into<String>,
    stop: watch::Sender<bool>,
) -> impl Future<Output = ()> {
    // A hang-up is left as it is, so that `nohup` works; agents end with flashrig in any case.
    let caught = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    );
    watching(caught, console, message.into(), stop)
}

async fn watching(
    caught: (io::Result<Signal>, io::Result<Signal>),
    console: Console,
    message: String,
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
            console.note(&message);
            let _ = stop.send(true);
            first = false;
        } else {
            console.clear();
            // The supervisors end their trees when this process is gone.
            std::process::exit(Exit::Interrupted as i32);
        }
    }
}
