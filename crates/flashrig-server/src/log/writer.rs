//! Keeping a server's log in the results folder: `server.log`, each line behind its second since
//! the start of the run. Lines wait here, bounded, until there is a folder and a thread of its own
//! has written them: whoever tells a line never waits for the disk.

use flashrig_config::plural;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use flashrig_clock::{Origin, Stamp};
use parking_lot::{Condvar, Mutex, MutexGuard};

/// Bytes that may wait for the disk, or for the folder.
const WAITING: usize = 8 << 20;
/// Bytes of the file; beyond so many no line is kept.
const LIMIT: u64 = 256 << 20;
/// Bytes kept of a line.
const LINE_BYTES: usize = 16 << 10;

/// Lines on their way to the file.
#[derive(Debug, Default)]
pub struct LogWriter {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<(Stamp, String)>,
    bytes: usize,
    phase: Phase,
    /// Lines that had to go since the last batch.
    missing: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Phase {
    /// There is no file yet: the newest lines are held.
    #[default]
    Held,
    /// A thread writes.
    Written,
    /// What is here is written, then no more.
    Ending,
    /// Nobody keeps lines any more.
    Over,
}

impl LogWriter {
    /// Puts a line there; returns how many were lost for lack of room.
    pub fn put(&self, at: Stamp, mut line: String) -> u64 {
        if line.len() > LINE_BYTES {
            let end = (0..=LINE_BYTES).rev().find(|at| line.is_char_boundary(*at));
            line.truncate(end.unwrap_or(0));
        }
        let mut state = self.state();
        let mut lost = 0;
        match state.phase {
            Phase::Ending | Phase::Over => return 0,
            Phase::Held => {
                state.push(at, line);
                while state.bytes > WAITING
                    && let Some((_, old)) = state.lines.pop_front()
                {
                    state.bytes -= size(&old);
                    lost += 1;
                }
            }
            Phase::Written if state.bytes + size(&line) > WAITING => lost = 1,
            Phase::Written => {
                state.push(at, line);
                self.changed.notify_one();
            }
        }
        state.missing += lost;
        lost
    }

    /// Notes that lines never came here, so that the file says where.
    pub fn miss(&self, lines: u64) {
        if lines > 0 {
            self.state().missing += lines;
            self.changed.notify_one();
        }
    }

    /// The next lines, and how many are missing; `None` at the end. Waits for some.
    fn next(&self) -> Option<(VecDeque<(Stamp, String)>, u64)> {
        let mut state = self.state();
        while state.lines.is_empty() && state.missing == 0 && state.phase == Phase::Written {
            self.changed.wait(&mut state);
        }
        if state.lines.is_empty() && state.missing == 0 {
            return None;
        }
        state.bytes = 0;
        let missing = std::mem::take(&mut state.missing);
        Some((std::mem::take(&mut state.lines), missing))
    }

    fn turn(&self, phase: Phase) {
        self.state().phase = phase;
        self.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn push(&mut self, at: Stamp, line: String) {
        self.bytes += size(&line);
        self.lines.push_back((at, line));
    }
}

/// About what it takes in memory.
fn size(line: &str) -> usize {
    line.len() + 48
}

/// The file is written to as long as this lives; what is there by its end is written too.
#[derive(Debug)]
pub struct Keeping {
    log_writer: Arc<LogWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Keeping {
    fn drop(&mut self) {
        self.log_writer.turn(Phase::Ending);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that keeps the server's log panicked");
        }
    }
}

/// Begins to write to `path`, at its end where there is something.
///
/// # Errors
/// The file cannot be written.
pub fn keep(log_writer: &Arc<LogWriter>, path: &Path, origin: &Origin) -> std::io::Result<Keeping> {
    keep_up_to(LIMIT, log_writer, path, origin)
}

fn keep_up_to(
    limit: u64,
    log_writer: &Arc<LogWriter>,
    path: &Path,
    origin: &Origin,
) -> std::io::Result<Keeping> {
    let file = open_whole_lines(path)?;
    let kept = file.metadata()?.len();
    let (log_writer, origin) = (Arc::clone(log_writer), origin.clone());
    let writer = Writer {
        file,
        kept,
        limit,
        over: 0,
    };
    log_writer.turn(Phase::Written);
    let inner = Arc::clone(&log_writer);
    let builder = std::thread::Builder::new().name("flashrig-server-log".to_owned());
    let thread = builder.spawn(move || {
        if let Err(error) = writer.write(&inner, &origin) {
            tracing::warn!(%error, "the server's log is kept no longer");
        }
        inner.turn(Phase::Over);
    })?;
    Ok(Keeping {
        log_writer,
        thread: Some(thread),
    })
}

/// Opens a file of lines for appending, without a last line that a kill has cut off.
///
/// # Errors
/// It cannot be read or written.
pub fn open_whole_lines(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    let mut file = options.create(true).read(true).append(true).open(path)?;
    let length = file.metadata()?.len();
    let from = length.saturating_sub(4 * LINE_BYTES as u64);
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    file.read_to_end(&mut end)?;
    // A line longer than that was never written.
    let begun = end.len() - memchr::memrchr(b'\n', &end).map_or(0, |at| at + 1);
    file.set_len(length - begun as u64)?;
    Ok(file)
}

struct Writer {
    file: File,
    kept: u64,
    limit: u64,
    /// Lines beyond the limit.
    over: u64,
}

impl Writer {
    fn write(mut self, log_writer: &LogWriter, origin: &Origin) -> std::io::Result<()> {
        let mut batch = Vec::new();
        while let Some((lines, missing)) = log_writer.next() {
            batch.clear();
            if self.over > 0 {
                self.over += missing;
            } else if missing > 0 {
                let message = "lines were written faster than they could be read or kept";
                writeln!(batch, "[flashrig: {missing} {message}]")?;
            }
            for (at, line) in lines {
                self.line(&mut batch, origin.at(at).0, &line)?;
            }
            self.file.write_all(&batch)?;
        }
        if self.over > 0 {
            writeln!(
                self.file,
                "[flashrig: not kept: {}]",
                plural(self.over, "line")
            )?;
        }
        Ok(())
    }

    fn line(&mut self, batch: &mut Vec<u8>, at_s: f64, line: &str) -> std::io::Result<()> {
        if self.over > 0 {
            self.over += 1;
            return Ok(());
        }
        let before = batch.len();
        writeln!(batch, "{at_s:.6} {line}")?;
        self.kept += (batch.len() - before) as u64;
        if self.kept > self.limit {
            batch.truncate(before);
            self.over = 1;
            let limit = self.limit >> 20;
            writeln!(
                batch,
                "[flashrig: no more than {limit} MB of this log are kept]"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn kept(limit: u64, put: impl FnOnce(&Arc<LogWriter>) -> Option<Keeping>) -> String {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("server.log");
        let origin = Origin {
            stamp: Stamp(2_000_000_000),
            wall: jiff::Timestamp::UNIX_EPOCH,
        };
        let log_writer = Arc::new(LogWriter::default());
        log_writer.put(Stamp(1_500_000_000), "booting".to_owned());
        let keeping = keep_up_to(limit, &log_writer, &path, &origin).unwrap();
        drop(put(&log_writer));
        drop(keeping);
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn lines_of_before_the_folder_are_written_when_it_is_there_each_with_its_second() {
        let text = kept(LIMIT, |log_writer| {
            let at = Stamp(2_000_000_000) + Duration::from_millis(1250);
            log_writer.put(at, "ready".to_owned());
            None
        });
        assert_eq!(text, "-0.500000 booting\n1.250000 ready\n");
    }

    #[test]
    fn a_line_that_a_kill_has_cut_off_is_removed_when_the_file_is_taken_up_again() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("server.jsonl");
        for (before, after) in [("", ""), ("a\nb\n", "a\nb\n"), ("a\nb", "a\n"), ("a", "")] {
            std::fs::write(&path, before).unwrap();
            writeln!(open_whole_lines(&path).unwrap(), "new").unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(text, format!("{after}new\n"), "{before:?}");
        }
    }

    #[test]
    fn beyond_the_limit_nothing_is_kept_and_that_is_said() {
        let text = kept(1 << 20, |log_writer| {
            for at in 0..600 {
                log_writer.put(Stamp(at), "x".repeat(4096));
            }
            None
        });
        assert!(text.len() <= (1 << 20) + 200, "{}", text.len());
        let end: Vec<&str> = text.lines().rev().take(2).collect();
        assert!(end[1].contains("no more than 1 MB"), "{end:?}");
        let not_kept = text.lines().filter(|l| l.ends_with('x')).count();
        assert_eq!(
            end[0],
            format!("[flashrig: not kept: {} lines]", 600 - not_kept)
        );
    }

    #[test]
    fn what_waits_for_a_folder_is_bounded_and_the_oldest_lines_go() {
        let log_writer = LogWriter::default();
        let mut lost = 0;
        for at in 0..3000 {
            lost += log_writer.put(Stamp(at), "x".repeat(4096));
        }
        let state = log_writer.state();
        assert!(state.bytes <= WAITING && lost > 0);
        assert_eq!(state.lines.len() as u64 + lost, 3000);
        assert_eq!(state.lines.back().map(|(at, _)| *at), Some(Stamp(2999)));
    }
}
