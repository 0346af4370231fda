//! What the store needs to know of a record: by which events it comes about.

use super::{Event, LoadEvent, LoadRun, LoadWhat, Run, What, apply, apply_load};
use flashrig_clock::Seconds;

/// A record that is kept in a results folder, and the events whose fold it is.
pub trait Kept: Clone {
    /// A line of `events.jsonl`.
    type Event;
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

    /// Reads a record.
    ///
    /// # Errors
    /// It is not JSON, or not such a record.
    fn from_json(text: &str) -> serde_json::Result<Self>;
    /// Reads an event.
    ///
    /// # Errors
    /// It is not JSON, or not such an event.
    fn event_from_json(line: &str) -> serde_json::Result<Self::Event>;
    /// The record as JSON, indented.
    ///
    /// # Errors
    /// A value in it has no form in JSON.
    fn to_json(&self) -> serde_json::Result<String>;
    /// The event as JSON, on one line.
    ///
    /// # Errors
    /// A value in it has no form in JSON.
    fn event_to_json(event: &Self::Event) -> serde_json::Result<String>;
}

/// The four conversions. They are written out for each record and not left to functions that are
/// generic over it: so they are compiled once, in this crate, and not again in each that uses one.
macro_rules! as_json {
    () => {
        fn from_json(text: &str) -> serde_json::Result<Self> {
            serde_json::from_str(text)
        }

        fn event_from_json(line: &str) -> serde_json::Result<Self::Event> {
            serde_json::from_str(line)
        }

        fn to_json(&self) -> serde_json::Result<String> {
            serde_json::to_string_pretty(self)
        }

        fn event_to_json(event: &Self::Event) -> serde_json::Result<String> {
            serde_json::to_string(event)
        }
    };
}
pub(crate) use as_json;

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

    as_json!();
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

    as_json!();
}

/// The commands whose record is a [`LoadRun`]; `sweep` keeps a [`super::Sweep`], all others a
/// [`Run`].
pub const LOAD_COMMANDS: [&str; 2] = ["fit", "ttft"];
