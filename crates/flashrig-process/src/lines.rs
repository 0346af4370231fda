//! Output as lines, in bounded memory: a line may be endless, and the caller may be slow.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::spec::OutputLimits;
use flashrig_clock::Stamp;

/// One line of output, without its line end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The line's beginning, up to the limit.
    pub bytes: Vec<u8>,
    /// Bytes of the line beyond the limit, which were dropped.
    pub dropped_bytes: u64,
    /// When its end was read.
    pub stamp: Stamp,
}

impl Line {
    /// The line as text.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// Whether part of the line was dropped.
    pub fn is_cut(&self) -> bool {
        self.dropped_bytes > 0
    }
}

/// How an output stream ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamEnd {
    /// It is still open.
    #[default]
    Open,
    /// All writers closed it.
    Eof,
    /// A process still held it open when the time limit for draining had passed.
    DrainLimit,
    /// It could not be read.
    Error,
}

/// What became of one output stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamReport {
    /// Bytes read in all.
    pub bytes: u64,
    /// Lines read in all.
    pub lines: u64,
    /// Lines of which a part was dropped.
    pub cut_lines: u64,
    /// Whole lines that were dropped because they were not fetched in time, oldest first.
    pub lost_lines: u64,
    /// Bytes beyond the limit of the file, which it does not hold.
    pub file_missing_bytes: u64,
    /// Why the file is incomplete, if writing it failed.
    pub file_error: Option<String>,
    /// How the stream ended.
    pub end: StreamEnd,
}

/// The lines of one stream that wait to be fetched. Clones fetch from the same stream.
#[derive(Clone, Debug)]
pub struct Lines {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Line>,
    waiting_bytes: usize,
    report: StreamReport,
}

impl Lines {
    pub(super) fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::default(),
                changed: Notify::new(),
            }),
        }
    }

    /// A stream that has ended without a byte.
    pub(super) fn empty() -> Self {
        let lines = Self::new();
        lines.close(StreamEnd::Eof);
        lines
    }

    /// The next line, or `None` after the last one. May be dropped while it waits: no line is lost.
    pub async fn next(&self) -> Option<Line> {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            // Listen first, look then: a line in between is not missed.
            changed.as_mut().enable();
            {
                let mut state = self.lock();
                if let Some(line) = state.pop() {
                    return Some(line);
                }
                if state.report.end != StreamEnd::Open {
                    return None;
                }
            }
            changed.await;
        }
    }

    /// A line that is there already.
    pub fn try_next(&self) -> Option<Line> {
        self.lock().pop()
    }

    /// What became of the stream so far.
    pub fn report(&self) -> StreamReport {
        self.lock().report.clone()
    }

    pub(super) fn push(&self, line: Line, limits: &OutputLimits) {
        let mut state = self.lock();
        state.report.lines += 1;
        state.report.cut_lines += u64::from(line.is_cut());
        state.waiting_bytes += weight(&line);
        state.waiting.push_back(line);
        // The newest line stays whatever its size: the last one holds the result.
        while state.waiting_bytes > limits.waiting_bytes && state.waiting.len() > 1 {
            state.pop();
            state.report.lost_lines += 1;
        }
        drop(state);
        self.shared.changed.notify_waiters();
    }

    pub(super) fn amend(&self, change: impl FnOnce(&mut StreamReport)) {
        change(&mut self.lock().report);
    }

    /// Ends the stream; the first end counts.
    pub(super) fn close(&self, end: StreamEnd) {
        self.amend(|report| {
            if report.end == StreamEnd::Open {
                report.end = end;
            }
        });
        self.shared.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock()
    }
}

impl State {
    fn pop(&mut self) -> Option<Line> {
        let line = self.waiting.pop_front()?;
        self.waiting_bytes -= weight(&line);
        Some(line)
    }
}

/// An empty line takes memory too.
fn weight(line: &Line) -> usize {
    line.bytes.capacity() + size_of::<Line>()
}

/// Cuts a byte stream into lines.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    begun: Vec<u8>,
    dropped_bytes: u64,
}

impl Splitter {
    /// Takes bytes as they come; hands every line that ends in them to `emit`.
    pub(super) fn feed(
        &mut self,
        mut bytes: &[u8],
        limit: usize,
        stamp: Stamp,
        mut emit: impl FnMut(Line),
    ) {
        while let Some(end) = bytes.iter().position(|b| *b == b'\n') {
            self.append(&bytes[..end], limit);
            emit(self.take(stamp));
            bytes = &bytes[end + 1..];
        }
        self.append(bytes, limit);
    }

    /// The last line, if it had no line end.
    pub(super) fn rest(&mut self, stamp: Stamp) -> Option<Line> {
        (!self.begun.is_empty() || self.dropped_bytes > 0).then(|| self.take(stamp))
    }

    fn append(&mut self, bytes: &[u8], limit: usize) {
        let kept = bytes.len().min(limit.saturating_sub(self.begun.len()));
        self.begun.extend_from_slice(&bytes[..kept]);
        self.dropped_bytes += (bytes.len() - kept) as u64;
    }

    fn take(&mut self, stamp: Stamp) -> Line {
        let mut bytes = std::mem::take(&mut self.begun);
        let dropped_bytes = std::mem::take(&mut self.dropped_bytes);
        if dropped_bytes == 0 && bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        bytes.shrink_to_fit();
        Line {
            bytes,
            dropped_bytes,
            stamp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(chunks: &[&[u8]], limit: usize) -> Vec<(Vec<u8>, u64)> {
        let mut splitter = Splitter::default();
        let mut lines = Vec::new();
        for chunk in chunks {
            splitter.feed(chunk, limit, Stamp(0), |line| lines.push(line));
        }
        lines.extend(splitter.rest(Stamp(0)));
        lines
            .into_iter()
            .map(|line| (line.bytes, line.dropped_bytes))
            .collect()
    }

    #[test]
    fn a_line_over_the_limit_is_cut_and_the_next_one_is_whole() {
        let lines = split(&[b"aaaaaaaa", b"aa\nresult\r\nend"], 4);
        assert_eq!(
            lines,
            [
                (b"aaaa".to_vec(), 6),
                (b"resu".to_vec(), 3),
                (b"end".to_vec(), 0)
            ]
        );
        let lines = split(&[b"aaaaaaaaaa\nresult\r\nend"], 7);
        assert_eq!(
            lines,
            [
                (b"aaaaaaa".to_vec(), 3),
                (b"result".to_vec(), 0),
                (b"end".to_vec(), 0)
            ]
        );
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_bytes_arrive(text in "[ab\r\n]{0,60}", size in 1_usize..9, limit in 1_usize..20) {
            let bytes = text.as_bytes();
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            prop_assert_eq!(split(&chunks, limit), split(&[bytes], limit));
            let kept: u64 = split(&chunks, limit).iter().map(|(b, d)| b.len() as u64 + d).sum();
            prop_assert!(kept <= bytes.len() as u64);
        }
    }

    #[test]
    fn lines_nobody_fetches_are_dropped_oldest_first_and_counted() {
        let lines = Lines::new();
        let limits = OutputLimits {
            waiting_bytes: 3 * (size_of::<Line>() + 1),
            ..OutputLimits::default()
        };
        for byte in b"abcde" {
            lines.push(
                Line {
                    bytes: vec![*byte],
                    dropped_bytes: 0,
                    stamp: Stamp(0),
                },
                &limits,
            );
        }
        assert_eq!(lines.try_next().unwrap().bytes, b"c");
        assert_eq!(lines.report().lost_lines, 2);
        assert_eq!(lines.report().lines, 5);
    }
}
