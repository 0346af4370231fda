//! Progress while a command measures: lines that stay for what happened, and on a terminal live
//! lines for what goes on.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::interval;

use super::console::Console;
use crate::run::{Live, Step};
use flashrig_clock::Stamp;

/// How often the live lines are brought up to date.
const REFRESH: Duration = Duration::from_millis(200);

/// What a command shows of what it measures.
pub trait Progress<W> {
    /// Takes a stored fact; the line that stays for it, when it is worth one.
    fn fact(&mut self, what: &W, now: Stamp) -> Option<String>;

    /// Takes a session's step.
    fn step(&mut self, _id: &str, _step: Step) {}

    /// What goes on now, a line each.
    fn live(&self, now: Stamp) -> Vec<String>;
}

/// Shows what is reported until nobody reports any more.
pub async fn show<W>(
    console: Console,
    mut reported: mpsc::UnboundedReceiver<Live<W>>,
    mut progress: impl Progress<W>,
) {
    let mut refresh = interval(REFRESH);
    loop {
        tokio::select! {
            live = reported.recv() => match live {
                None => break,
                Some(Live::Note(text)) => console.note(&text),
                Some(Live::Fact(what)) => {
                    if let Some(line) = progress.fact(&what, Stamp::now()) {
                        console.note(&line);
                    }
                }
                Some(Live::Session { id, step }) => progress.step(&id, step),
            },
            _ = refresh.tick(), if console.draws() => console.draw(&progress.live(Stamp::now())),
        }
    }
    console.clear();
}
