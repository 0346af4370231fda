//! What a server's log has said so far: its last lines, and the lines that mean something.
//!
//! Whoever reads the log (of a process that flashrig started, or of a file) tells it line by line;
//! whoever wants to know asks here. Memory is bounded however much is logged.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::log::{LogEvent, LogPattern, events};
use crate::clock::Stamp;

/// Lines that are kept for error messages.
const LAST_LINES: usize = 40;
/// Lines that mean something; beyond so many the oldest are dropped.
const TOLD: usize = 100_000;
/// Characters kept of a line.
const LINE_CHARS: usize = 2000;

/// The log of a server. Cheap to clone; all clones are one journal.
#[derive(Clone, Debug, Default)]
pub struct Journal(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    patterns: Vec<LogPattern>,
    last: VecDeque<String>,
    told: VecDeque<Told>,
    settings: BTreeMap<String, (String, String)>,
}

/// A line that means something.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// When it was read.
    pub at: Stamp,
    /// What it tells.
    pub event: LogEvent,
    /// The line itself.
    pub line: String,
}

impl Journal {
    /// A journal that understands lines by these patterns.
    pub fn new(patterns: Vec<LogPattern>) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            patterns,
            ..Inner::default()
        })))
    }

    /// Takes in a line.
    pub fn line(&self, at: Stamp, line: &str) {
        let line: String = line.trim_end().chars().take(LINE_CHARS).collect();
        let mut inner = self.inner();
        for event in events(&inner.patterns, &line) {
            if let LogEvent::Setting { name, value } = &event {
                let told = (value.clone(), line.clone());
                inner.settings.insert(name.clone(), told);
            }
            if inner.told.len() == TOLD {
                inner.told.pop_front();
            }
            let line = line.clone();
            inner.told.push_back(Told { at, event, line });
        }
        if inner.last.len() == LAST_LINES {
            inner.last.pop_front();
        }
        inner.last.push_back(line);
    }

    /// The last lines, at most `count`, oldest first.
    pub fn last_lines(&self, count: usize) -> Vec<String> {
        let inner = self.inner();
        let skip = inner.last.len().saturating_sub(count);
        inner.last.iter().skip(skip).cloned().collect()
    }

    /// What was told from `from` on, up to but without `to`.
    pub fn told_between(&self, from: Stamp, to: Stamp) -> Vec<Told> {
        let inner = self.inner();
        let within = inner.told.iter().filter(|t| from <= t.at && t.at < to);
        within.cloned().collect()
    }

    /// The settings that the log told of, by name: the last value told, and the line.
    pub fn settings(&self) -> BTreeMap<String, (String, String)> {
        self.inner().settings.clone()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
