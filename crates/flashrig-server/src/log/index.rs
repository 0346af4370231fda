//! What a server's log has said so far: its last lines, and the lines that mean something.
//!
//! Whoever reads the log (of a process that flashrig started, or of a file) tells it line by line;
//! whoever wants to know asks here. Memory is bounded however much is logged, and taking in a line
//! never waits for a disk.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use regex::Regex;

use super::pattern::{LogEvent, LogEventKind, LogPattern, LogReader};
use super::tailer::{FollowError, Follower, LineSink, follow};
use super::writer::{Keeping, LogWriter, keep};
use flashrig_clock::{Origin, Stamp};
use flashrig_http::Redactor;

/// Lines that are kept for error messages.
const LAST_LINES: usize = 40;
/// Bytes of lines that mean something; beyond so many the oldest are dropped.
const ENTRIES_BYTES: usize = 16 << 20;
/// News of prompts that are being read; nobody needs the old ones.
const PROGRESS: usize = 1000;
/// Bytes kept of a line.
const LINE_BYTES: usize = 4000;
/// The longest wait for the follower of a file to have read what is there.
const CATCH_UP: Duration = Duration::from_secs(2);

/// The log of a server. Cheap to clone; all clones are one index.
#[derive(Clone, Debug, Default)]
pub struct LogIndex(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    reader: LogReader,
    redactor: Redactor,
    inner: Mutex<Inner>,
    log_writer: Arc<LogWriter>,
    follower: Mutex<Option<Follower>>,
    understands: AtomicBool,
    lost: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    last: VecDeque<String>,
    /// The last line that speaks of a fault, however long ago.
    fault: Option<String>,
    entries: VecDeque<LogEntry>,
    entries_bytes: usize,
    progress: VecDeque<LogEntry>,
    settings: BTreeMap<String, (String, String)>,
}

/// A line that means something.
#[derive(Clone, Debug, PartialEq)]
pub struct LogEntry {
    /// When it was read.
    pub at: Stamp,
    /// What it tells.
    pub event: LogEvent,
    /// The line itself.
    pub line: String,
}

/// Whether a line of a log speaks of a fault, whoever writes it.
pub(crate) fn speaks_of_a_fault(line: &str) -> bool {
    static SIGNS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new("(?i-u:error|exception|panic|fatal|abort)").ok());
    SIGNS.as_ref().is_some_and(|signs| signs.is_match(line))
}

impl LogIndex {
    /// An index that understands lines by these patterns.
    pub fn new(patterns: Vec<LogPattern>) -> Self {
        Self::masking(patterns, Redactor::default())
    }

    /// The same of a server whose key and the like must not be kept: servers log their settings.
    pub fn masking(patterns: Vec<LogPattern>, redactor: Redactor) -> Self {
        Self(Arc::new(Shared {
            reader: LogReader::new(patterns),
            redactor,
            ..Shared::default()
        }))
    }

    /// Takes in a line.
    pub fn line(&self, at: Stamp, line: &str) {
        self.0.line(at, line);
    }

    /// Another process of the server begins to write: what the one before wrote last tells nothing of
    /// its end.
    pub fn begin(&self) {
        let mut inner = self.0.inner();
        inner.last.clear();
        inner.fault = None;
    }

    /// Counts lines that were written faster than they could be read.
    pub fn lose(&self, lines: u64) {
        self.0.miss(lines);
    }

    /// Lines lost so far.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Whether any line of the log has been understood so far. If not, that it tells nothing means
    /// nothing: there may be no log, or one of something else.
    pub fn understands(&self) -> bool {
        self.0.understands.load(Ordering::Relaxed)
    }

    /// Whether a file is followed of which no line has been understood so far.
    pub fn follows_in_vain(&self) -> bool {
        let slot = self.0.follower.lock();
        slot.is_some() && !self.understands()
    }

    /// Whether there is a pattern for such events.
    pub fn knows(&self, kind: LogEventKind) -> bool {
        self.0.reader.knows(kind)
    }

    /// Follows the file that the server writes its log to, from its end.
    ///
    /// # Errors
    /// There is no such file, or it cannot be read.
    pub fn follow(&self, file: &Path) -> Result<(), FollowError> {
        let follower = follow(file, Arc::downgrade(&self.0))?;
        let mut slot = self.0.follower.lock();
        *slot = Some(follower);
        Ok(())
    }

    /// Waits until what the followed file holds now has been read. Returns at once where no file
    /// is followed.
    pub async fn catch_up(&self) {
        let caught = {
            let slot = self.0.follower.lock();
            slot.as_ref().and_then(Follower::catch_up)
        };
        if let Some(caught) = caught {
            // A follower that is gone or slow is waited for no longer.
            let _ = tokio::time::timeout(CATCH_UP, caught).await;
        }
    }

    /// Writes every line to a file from now on, and the ones that were held back for it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, file: &Path, origin: &Origin) -> std::io::Result<Keeping> {
        keep(&self.0.log_writer, file, origin)
    }

    /// The last lines, at most `count`, oldest first; before them the last one that speaks of a fault,
    /// when it is none of them.
    pub fn last_lines(&self, count: usize) -> Vec<String> {
        let inner = self.0.inner();
        let skip = inner.last.len().saturating_sub(count);
        let last = inner.last.iter().skip(skip);
        let fault = inner
            .fault
            .iter()
            .filter(|f| !last.clone().any(|l| l == *f));
        fault.chain(last.clone()).cloned().collect()
    }

    /// What was told from `from` on, up to but without `to`.
    pub fn events_between(&self, from: Stamp, to: Stamp) -> Vec<LogEntry> {
        let inner = self.0.inner();
        let all = inner.entries.iter().chain(&inner.progress);
        let mut within: Vec<LogEntry> =
            all.filter(|t| from <= t.at && t.at < to).cloned().collect();
        within.sort_by_key(|entry| entry.at);
        within
    }

    /// The settings that the log told of, by name: the last value told, and the line.
    pub fn settings(&self) -> BTreeMap<String, (String, String)> {
        self.0.inner().settings.clone()
    }
}

impl LineSink for Shared {
    fn line(&self, at: Stamp, line: &str) {
        let line = self.clean(line);
        let events = self.reader.read(&line);
        if !events.is_empty() {
            self.understands.store(true, Ordering::Relaxed);
        }
        let short = cut(&line, LINE_BYTES);
        {
            let mut inner = self.inner();
            for event in events {
                let dropped = inner.take(LogEntry {
                    at,
                    event,
                    line: short.to_owned(),
                });
                self.lose(dropped);
            }
            if speaks_of_a_fault(short) {
                inner.fault = Some(short.to_owned());
            }
            if inner.last.len() == LAST_LINES {
                inner.last.pop_front();
            }
            inner.last.push_back(short.to_owned());
        }
        self.lose(self.log_writer.put(at, line.into_owned()));
    }

    fn miss(&self, lines: u64) {
        self.lose(lines);
        self.log_writer.miss(lines);
    }
}

impl Shared {
    fn lose(&self, lines: u64) {
        if lines > 0 {
            self.lost.fetch_add(lines, Ordering::Relaxed);
        }
    }

    /// The line as it may be shown and kept: no colours, nothing that drives a terminal, no key.
    fn clean<'l>(&self, line: &'l str) -> Cow<'l, str> {
        let line = line.trim_end();
        // A terminal shows what was written last over the same line.
        let line = line.rsplit('\r').next().unwrap_or(line);
        let mut line = if line.contains('\u{1b}') {
            console::strip_ansi_codes(line)
        } else {
            Cow::Borrowed(line)
        };
        if line.contains(|c: char| c.is_control() && c != '\t') {
            let drives = |c: char| c.is_control() && c != '\t';
            line = Cow::Owned(line.replace(drives, "\u{fffd}"));
        }
        self.redactor.text(line)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl Inner {
    /// Returns how many older ones had to go for it.
    fn take(&mut self, entry: LogEntry) -> u64 {
        if let LogEvent::Setting { name, value } = &entry.event {
            let said = (value.clone(), entry.line.clone());
            self.settings.insert(name.clone(), said);
        }
        if matches!(entry.event, LogEvent::PrefillProgress { .. }) {
            if self.progress.len() == PROGRESS {
                self.progress.pop_front();
            }
            self.progress.push_back(entry);
            return 0;
        }
        self.entries_bytes += size(&entry);
        self.entries.push_back(entry);
        let mut dropped = 0;
        while self.entries_bytes > ENTRIES_BYTES
            && let Some(old) = self.entries.pop_front()
        {
            self.entries_bytes -= size(&old);
            dropped += 1;
        }
        dropped
    }
}

/// About what it takes in memory.
fn size(entry: &LogEntry) -> usize {
    entry.line.len() + 160
}

/// The beginning of a line, at a border between characters.
fn cut(line: &str, bytes: usize) -> &str {
    if line.len() <= bytes {
        return line;
    }
    let end = (0..=bytes).rev().find(|at| line.is_char_boundary(*at));
    &line[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::RawLogPattern;

    fn pattern(event: LogEventKind, pattern: &str) -> LogPattern {
        let pattern = pattern.to_owned().try_into().unwrap();
        LogPattern::try_from(RawLogPattern { event, pattern }).unwrap()
    }

    fn log_index() -> LogIndex {
        LogIndex::new(vec![
            pattern(LogEventKind::Refused, r"no room for (?<prompt_tokens>\d+)"),
            pattern(LogEventKind::Refused, r"room for (?<needed_tokens>\d+)"),
            pattern(LogEventKind::Setting, r"slots=(?<slots>\d+)"),
        ])
    }

    fn all(log_index: &LogIndex) -> Vec<LogEntry> {
        log_index.events_between(Stamp(0), Stamp(u64::MAX))
    }

    #[test]
    fn a_line_that_fits_two_patterns_of_a_kind_is_one_event() {
        let log_index = log_index();
        log_index.line(Stamp(1), "no room for 12");
        log_index.line(Stamp(2), "slots=3");
        log_index.line(Stamp(3), "slots=4");
        assert_eq!(all(&log_index).len(), 3);
        assert_eq!(log_index.settings()["slots"].0, "4");
    }

    #[test]
    fn colours_and_what_drives_a_terminal_are_not_kept() {
        let log_index = log_index();
        log_index.line(
            Stamp(1),
            "10%\r20%\r\u{1b}[31mno room for 12\u{1b}[0m\u{7} now\r\n",
        );
        assert_eq!(log_index.last_lines(9), ["no room for 12\u{fffd} now"]);
        assert_eq!(all(&log_index).len(), 1);
    }

    #[test]
    fn the_key_is_not_kept() {
        let redactor = Redactor::new(["a-long-and-secret-key"]);
        let log_index = LogIndex::masking(Vec::new(), redactor);
        log_index.line(Stamp(1), "args: {'api_key': 'a-long-and-secret-key'}");
        assert!(!log_index.last_lines(1)[0].contains("secret"));
    }

    #[test]
    fn what_means_something_is_bounded_and_what_had_to_go_is_counted() {
        let log_index = log_index();
        let line = format!("no room for 12 {}", "x".repeat(LINE_BYTES * 2));
        for at in 0..10_000 {
            log_index.line(Stamp(at), &line);
        }
        let kept = all(&log_index);
        assert!(kept.iter().map(size).sum::<usize>() <= ENTRIES_BYTES);
        assert_eq!(kept.last().map(|entry| entry.at), Some(Stamp(9999)));
        let gone = 10_000 - kept.len() as u64;
        assert!(log_index.lost() >= gone, "{} of {gone}", log_index.lost());
    }

    #[test]
    fn a_fault_is_kept_however_much_follows_and_not_of_the_process_before() {
        let log_index = LogIndex::new(Vec::new());
        log_index.line(Stamp(1), "RuntimeError: no stream");
        for _ in 0..2 * LAST_LINES {
            log_index.line(Stamp(2), "GET /health");
        }
        let reported = log_index.last_lines(2);
        assert_eq!(
            reported,
            ["RuntimeError: no stream", "GET /health", "GET /health"]
        );
        log_index.begin();
        log_index.line(Stamp(3), "listening");
        assert_eq!(log_index.last_lines(2), ["listening"]);
    }
}
