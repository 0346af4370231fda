//! A file with a line for every request, written beside the forwarding and never in its way.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::snapshot::FinishedRequest;
use flashrig_clock::Origin;
use flashrig_record::Attempt;

/// Lines that may wait for the disk: some megabytes.
const QUEUE_LINES: usize = 1024;
/// How long the end of the gateway waits for a disk to take what is queued.
pub(super) const FLUSH_LIMIT: Duration = Duration::from_secs(5);

/// A line of the standing gateway's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// Wall time at which the request's head was read, RFC 3339, UTC.
    pub at: String,
    /// Whose request it was.
    pub client: String,
    /// The request; its instants count from the gateway's start, its number is the client's own.
    #[serde(flatten)]
    pub attempt: Attempt,
}

/// The log cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("the log {path} cannot be written: {source}; choose another file with --log")]
pub struct LogFileError {
    path: PathBuf,
    source: io::Error,
}

/// Writes the log, on a thread of its own: requests never wait for a disk. A line that the disk
/// does not take is lost, and counted.
pub struct LogWriter {
    queue: Mutex<Option<SyncSender<FinishedRequest>>>,
    /// Answers once the thread has written everything.
    done: Mutex<Receiver<()>>,
    shared: Arc<Shared>,
}

/// What requests and the thread share.
struct Shared {
    path: PathBuf,
    lost: AtomicU64,
    /// Whether it was said that lines are lost, and not yet that they no longer are.
    is_losing: AtomicBool,
    report: Report,
}

/// Takes a message for people.
type Report = Box<dyn Fn(String) + Send + Sync>;

impl LogWriter {
    /// Opens `path` to append to it. Instants count from `origin`. `report` gets a message when lines
    /// begin to be lost, and when they are written again.
    ///
    /// # Errors
    /// The file cannot be opened for writing, or there is no thread to be had.
    pub fn open(
        path: &Path,
        origin: Origin,
        report: impl Fn(String) + Send + Sync + 'static,
    ) -> Result<Self, LogFileError> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|file| Self::start(file, path, origin, Box::new(report)))
            .map_err(|source| LogFileError {
                path: path.to_owned(),
                source,
            })
    }

    fn start(
        file: impl Write + Send + 'static,
        path: &Path,
        origin: Origin,
        report: Report,
    ) -> io::Result<Self> {
        let (queue, finished) = sync_channel(QUEUE_LINES);
        let (ended, done) = channel();
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            lost: AtomicU64::new(0),
            is_losing: AtomicBool::new(false),
            report,
        });
        let writing = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("gateway-log".to_owned())
            .spawn(move || {
                write_all(file, &finished, &origin, &writing);
                let _ = ended.send(());
            })?;
        Ok(Self {
            queue: Mutex::new(Some(queue)),
            done: Mutex::new(done),
            shared,
        })
    }

    /// Queues a request's line. Never waits.
    pub fn write(&self, finished: FinishedRequest) {
        let queue = self.queue.lock();
        let taken = queue.as_ref().map(|queue| queue.try_send(finished));
        if !matches!(taken, Some(Ok(()))) {
            self.shared.lose("its disk is too slow or hangs");
        }
    }

    /// How many lines were lost so far.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Takes no more lines, and waits until those in the queue are written, at most for
    /// `FLUSH_LIMIT`.
    pub fn close(&self) {
        self.close_within(FLUSH_LIMIT);
    }

    fn close_within(&self, limit: Duration) {
        if self.queue.lock().take().is_none() {
            return;
        }
        if let Err(RecvTimeoutError::Timeout) = self.done.lock().recv_timeout(limit) {
            (self.shared.report)(format!(
                "the log {} does not take its last lines; they are lost",
                self.shared.path.display()
            ));
        }
    }
}

impl fmt::Debug for LogWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogWriter")
            .field("path", &self.shared.path)
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn lose(&self, reason: &str) {
        self.lost.fetch_add(1, Ordering::Relaxed);
        if !self.is_losing.swap(true, Ordering::Relaxed) {
            (self.report)(format!(
                "the log {} cannot be written: {reason}; requests go on, their lines are lost until \
                 it can",
                self.path.display()
            ));
        }
    }

    /// Everything in the queue is written, the latest line too.
    fn caught_up(&self) {
        if self.is_losing.swap(false, Ordering::Relaxed) {
            (self.report)(format!(
                "the log {} is written again; {} lines were lost since the start",
                self.path.display(),
                self.lost.load(Ordering::Relaxed)
            ));
        }
    }
}

/// A line is written at once or, when the disk fails, not at all: the next one starts afresh.
fn write_all(
    mut file: impl Write,
    queue: &Receiver<FinishedRequest>,
    origin: &Origin,
    shared: &Shared,
) {
    let mut failing = false;
    loop {
        let next = queue.try_recv().or_else(|_| {
            if !failing {
                shared.caught_up();
            }
            queue.recv()
        });
        let Ok(finished) = next else {
            return;
        };
        let Ok(mut line) = serde_json::to_vec(&line(finished, origin)) else {
            continue;
        };
        line.push(b'\n');
        if failing {
            line.insert(0, b'\n');
        }
        let written = file.write_all(&line).and_then(|()| file.flush());
        failing = written.is_err();
        if let Err(error) = written {
            shared.lose(&error.to_string());
        }
    }
}

fn line(finished: FinishedRequest, origin: &Origin) -> LogLine {
    let since = jiff::SignedDuration::try_from_secs_f64(finished.attempt.clocks.head_s.0);
    let at = since.map_or(origin.wall, |since| {
        origin.wall.checked_add(since).unwrap_or(origin.wall)
    });
    LogLine {
        at: at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string(),
        client: finished.client.to_string(),
        attempt: *finished.attempt,
    }
}

#[cfg(test)]
mod tests {
    use super::super::client_stats::tests::answered;
    use super::*;

    /// A disk that is full for the second write.
    #[derive(Clone, Default)]
    struct Full(Arc<Mutex<(u32, Vec<u8>)>>);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (writes, held) = &mut *self.0.lock();
            *writes += 1;
            match *writes {
                // Half a line, and then no more.
                2 => {
                    held.extend_from_slice(&bytes[..9]);
                    Ok(9)
                }
                3 => Err(io::ErrorKind::StorageFull.into()),
                _ => {
                    held.extend_from_slice(bytes);
                    Ok(bytes.len())
                }
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A disk that hangs until the sender is dropped.
    struct Hanging {
        until: Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Hanging {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.until.recv();
            self.written.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    type Said = Arc<Mutex<Vec<String>>>;

    fn writer(file: impl Write + Send + 'static) -> (LogWriter, Said) {
        let said = Said::default();
        let saying = Arc::clone(&said);
        let report = Box::new(move |message| saying.lock().push(message));
        let writer = LogWriter::start(file, Path::new("x"), Origin::now(), report).unwrap();
        (writer, said)
    }

    fn finished(client: &str) -> FinishedRequest {
        FinishedRequest {
            client: client.into(),
            attempt: Box::new(answered()),
        }
    }

    #[test]
    fn a_line_that_could_not_be_written_spoils_no_other_and_is_counted() {
        let disk = Full::default();
        let (writer, said) = writer(disk.clone());
        for client in ["a", "b", "c", "d"] {
            writer.write(finished(client));
        }
        writer.close();
        let held = String::from_utf8(disk.0.lock().1.clone()).unwrap();
        let clients: Vec<String> = held
            .lines()
            .filter_map(|line| serde_json::from_str::<LogLine>(line).ok())
            .map(|line| line.client)
            .collect();
        assert_eq!(clients, ["a", "c", "d"]);
        assert_eq!(writer.lost(), 1);
        assert!(said.lock()[0].contains("cannot be written: no storage space"));
    }

    #[test]
    fn while_a_disk_hangs_the_queue_is_bounded_lost_lines_are_counted_and_that_is_said_once() {
        let (hang, until) = channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let disk = Hanging {
            until,
            written: Arc::clone(&written),
        };
        let (writer, said) = writer(disk);
        let sent = QUEUE_LINES as u64 + 100;
        for _ in 0..sent {
            writer.write(finished("a"));
        }
        // The thread may hold one line beside those in the queue.
        assert!((99..=100).contains(&writer.lost()), "{}", writer.lost());
        assert_eq!(said.lock().len(), 1, "{:?}", said.lock());
        // It is not waited for longer than is set.
        writer.close_within(Duration::from_millis(1));
        assert!(said.lock()[1].contains("does not take its last lines"));
        drop(hang);
        let _ = writer.done.lock().recv();
        let lines = written.lock().iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!(lines as u64, sent - writer.lost());
    }

    #[test]
    fn when_the_disk_takes_lines_again_it_is_said_how_many_were_lost() {
        let (hang, until) = channel();
        let (writer, said) = writer(Hanging {
            until,
            written: Arc::default(),
        });
        for _ in 0..=QUEUE_LINES + 1 {
            writer.write(finished("a"));
        }
        drop(hang);
        writer.close();
        let said = said.lock();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[1].contains("is written again"), "{said:?}");
    }
}
