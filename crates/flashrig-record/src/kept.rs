//! What the store needs to know of a record: by which events it comes about.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Event, LoadEvent, LoadRun, LoadWhat, Run, What, apply, apply_load};
use flashrig_clock::Seconds;

/// A record that is kept in a results folder, and the events whose fold it is.
pub trait Kept: Serialize + DeserializeOwned + Clone {
    /// A line of `events.jsonl`.
    type Event: Serialize + DeserializeOwned;
    /// What a line tells.
    type What;
    /// Folders that belong to such a run.
    const FOLDERS: &'static [&'static str];
    /// Whether such a run has requests of its own to keep.
    const REQUESTS: bool = true;

    /// The line for what happened at `at_s`.
    fn event(at_s: Seconds, what: Self::What) -> Self::Event;
    /// When it happened.
    fn at(event: &Self::Event) -> Seconds;
    /// Applies one event. `None` before the run's start.
    fn apply(run: &mut Option<Self>, event: Self::Event);
}

impl Kept for Run {
    type Event = Event;
    type What = What;
    const FOLDERS: &'static [&'static str] = &["sessions"];

    fn event(at_s: Seconds, what: What) -> Event {
        Event { at_s, what }
    }

    fn at(event: &Event) -> Seconds {
        event.at_s
    }

    fn apply(run: &mut Option<Self>, event: Event) {
        apply(run, event);
    }
}

impl Kept for LoadRun {
    type Event = LoadEvent;
    type What = LoadWhat;
    const FOLDERS: &'static [&'static str] = &[];

    fn event(at_s: Seconds, what: LoadWhat) -> LoadEvent {
        LoadEvent { at_s, what }
    }

    fn at(event: &LoadEvent) -> Seconds {
        event.at_s
    }

    fn apply(run: &mut Option<Self>, event: LoadEvent) {
        apply_load(run, event);
    }
}

/// The commands whose record is a [`LoadRun`]; `sweep` keeps a [`super::Sweep`], all others a
/// [`Run`].
pub const LOAD_COMMANDS: [&str; 2] = ["fit", "ttft"];
