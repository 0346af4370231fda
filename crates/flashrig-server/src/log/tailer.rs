//! Following the file that a server writes its log to: from its end on, through rotation, whether
//! the file is renamed or copied and emptied. One thread of its own looks ten times a second.

use std::fs::{File, Metadata};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use tokio::sync::oneshot;

use flashrig_clock::Stamp;

/// How often a quiet file is looked at. A line is stamped when it is read.
pub const EVERY: Duration = Duration::from_millis(100);
/// A line without an end is taken for one at this length.
const LONGEST: usize = 64 << 10;
/// What is this far behind is counted and not read: its stamps would say nothing.
const BEHIND: u64 = 32 << 20;
/// How long a file that was renamed is still read: the server may not have let go of it yet.
const OLD: Duration = Duration::from_secs(5);
/// Bytes by which a file that was emptied and is longer again is told from one that grew.
const MARK: usize = 256;

/// A log file that cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// It is not there, or cannot be read.
    #[error("--server-log {path}: {source}; name the file that the server writes its log to")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is something else.
    #[error("--server-log {0} is not a file; name the file that the server writes its log to")]
    NoFile(PathBuf),
}

/// Takes the lines of a file that is followed.
pub trait LineSink: Send + Sync + 'static {
    /// Takes in a line.
    fn line(&self, at: Stamp, line: &str);
    /// Counts lines that were never read.
    fn miss(&self, lines: u64);
}

/// The thread that follows; it ends with this.
#[derive(Debug)]
pub struct Follower(Sender<oneshot::Sender<()>>);

impl Follower {
    /// Comes when what the file holds now has been read; `None` when the thread is gone.
    pub fn catch_up(&self) -> Option<oneshot::Receiver<()>> {
        let (done, caught) = oneshot::channel();
        self.0.send(done).ok()?;
        Some(caught)
    }
}

/// Follows a file from its end.
///
/// # Errors
/// It is no file that can be read.
pub fn follow<S: LineSink>(path: &Path, log_index: Weak<S>) -> Result<Follower, FollowError> {
    let unreadable = |source| FollowError::Unreadable {
        path: path.to_owned(),
        source,
    };
    // Opening a pipe would wait for its writer.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(FollowError::NoFile(path.to_owned()));
    }
    let log_tailer = LogTailer::begin(path).map_err(unreadable)?;
    let (ask, asked) = channel();
    let builder = std::thread::Builder::new().name("flashrig-log".to_owned());
    builder
        .spawn(move || run(log_tailer, &asked, &log_index))
        .map_err(unreadable)?;
    Ok(Follower(ask))
}

fn run<S: LineSink>(
    mut log_tailer: LogTailer,
    asked: &Receiver<oneshot::Sender<()>>,
    log_index: &Weak<S>,
) {
    loop {
        let done = match asked.recv_timeout(EVERY) {
            Ok(done) => Some(done),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let Some(log_index) = log_index.upgrade() else {
            return;
        };
        let lost = log_tailer.read(&mut |line| {
            log_index.line(Stamp::now(), &String::from_utf8_lossy(line));
        });
        log_index.miss(lost);
        if let Some(done) = done {
            // Whoever asked may be gone.
            let _ = done.send(());
        }
    }
}

/// A file under its name, and the one that had the name before.
#[derive(Debug)]
pub struct LogTailer {
    path: PathBuf,
    tail: Option<Tail>,
    old: Option<(Tail, Stamp)>,
}

impl LogTailer {
    /// Begins at the file's end.
    pub fn begin(path: &Path) -> std::io::Result<Self> {
        let mut tail = Tail::open(path)?;
        tail.go_to_end()?;
        Ok(Self {
            path: path.to_owned(),
            tail: Some(tail),
            old: None,
        })
    }

    /// Reads what has come; returns how many lines were lost.
    pub fn read(&mut self, line: &mut impl FnMut(&[u8])) -> u64 {
        let mut lost = 0;
        if let Some((old, since)) = &mut self.old {
            lost += old.read(line);
            if Stamp::now().since(*since) > OLD {
                old.rest(line);
                self.old = None;
            }
        }
        if let Some(tail) = &mut self.tail {
            lost += tail.read(line);
        }
        let Ok(there) = std::fs::metadata(&self.path) else {
            return lost;
        };
        if self.tail.as_ref().is_some_and(|t| t.is(&there)) || !there.is_file() {
            return lost;
        }
        // Another file has the name now: all of it is new.
        let Ok(new) = Tail::open(&self.path) else {
            return lost;
        };
        if let Some((mut older, _)) = self.old.take() {
            lost += older.read(line);
            older.rest(line);
        }
        if let Some(mut tail) = self.tail.replace(new) {
            lost += tail.read(line);
            self.old = Some((tail, Stamp::now()));
        }
        if let Some(tail) = &mut self.tail {
            lost += tail.read(line);
        }
        lost
    }
}

/// An open file, and how far it has been read.
#[derive(Debug)]
struct Tail {
    file: File,
    id: (u64, u64),
    at: u64,
    /// A line whose end has not come.
    begun: Vec<u8>,
    /// The last bytes that were read.
    mark: Vec<u8>,
}

impl Tail {
    fn open(path: &Path) -> std::io::Result<Self> {
        let file = File::open(path)?;
        let there = file.metadata()?;
        Ok(Self {
            id: (there.dev(), there.ino()),
            file,
            at: 0,
            begun: Vec::new(),
            mark: Vec::new(),
        })
    }

    fn is(&self, there: &Metadata) -> bool {
        self.id == (there.dev(), there.ino())
    }

    /// Goes to the end; what is there is not read.
    fn go_to_end(&mut self) -> std::io::Result<()> {
        let length = self.file.metadata()?.len();
        let from = length.saturating_sub(MARK as u64);
        self.mark = self.bytes(from, (length - from) as usize)?;
        self.at = length;
        Ok(())
    }

    fn bytes(&mut self, from: u64, count: usize) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.file.seek(SeekFrom::Start(from))?;
        self.file.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads up to the end that the file has now; returns how many lines were lost.
    fn read(&mut self, line: &mut impl FnMut(&[u8])) -> u64 {
        let Ok(length) = self.file.metadata().map(|there| there.len()) else {
            return 0;
        };
        let mut lost = 0;
        if length < self.at || (length > self.at && !self.grew()) {
            // It was emptied; what had come since the last look is gone, as is the end of a line.
            lost += u64::from(!self.begun.is_empty());
            self.begun.clear();
            self.mark.clear();
            self.at = 0;
        }
        if length == self.at {
            return lost;
        }
        match self.read_to(length, line) {
            Ok(skipped) => lost + skipped,
            Err(error) => {
                tracing::debug!(%error, "the server's log cannot be read");
                lost
            }
        }
    }

    /// Whether what was read last still stands where it stood.
    fn grew(&mut self) -> bool {
        let from = self.at - self.mark.len() as u64;
        let bytes = self.bytes(from, self.mark.len());
        bytes.is_ok_and(|bytes| bytes == self.mark)
    }

    fn read_to(&mut self, length: u64, line: &mut impl FnMut(&[u8])) -> std::io::Result<u64> {
        let mut lost = 0;
        let mut chunk = vec![0; (256 << 10).min((length - self.at) as usize)];
        self.file.seek(SeekFrom::Start(self.at))?;
        while self.at < length {
            let most = chunk.len().min((length - self.at) as usize);
            let count = self.file.read(&mut chunk[..most])?;
            if count == 0 {
                break;
            }
            let bytes = &chunk[..count];
            // What is too far behind is only counted, up to the end of a line.
            if length - self.at > BEHIND {
                lost += memchr::memchr_iter(b'\n', bytes).count() as u64;
                self.begun.clear();
                match memchr::memrchr(b'\n', bytes) {
                    Some(end) => self.begun.extend_from_slice(&bytes[end + 1..]),
                    None => self.begun.extend_from_slice(bytes),
                }
                self.begun.truncate(LONGEST);
            } else {
                self.take(bytes, line);
            }
            self.remember(count, &chunk);
        }
        Ok(lost)
    }

    /// Splits bytes into lines.
    fn take(&mut self, bytes: &[u8], line: &mut impl FnMut(&[u8])) {
        let mut from = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            if self.begun.is_empty() {
                line(&bytes[from..end]);
            } else {
                self.begun.extend_from_slice(&bytes[from..end]);
                line(&self.begun);
                self.begun.clear();
            }
            from = end + 1;
        }
        self.begun.extend_from_slice(&bytes[from..]);
        if self.begun.len() >= LONGEST {
            self.rest(line);
        }
    }

    fn remember(&mut self, count: usize, chunk: &[u8]) {
        self.at += count as u64;
        self.mark
            .extend_from_slice(&chunk[count.saturating_sub(MARK)..count]);
        let over = self.mark.len().saturating_sub(MARK);
        self.mark.drain(..over);
    }

    /// A line that will not be ended.
    fn rest(&mut self, line: &mut impl FnMut(&[u8])) {
        if !self.begun.is_empty() {
            line(&self.begun);
            self.begun.clear();
        }
    }
}

#[cfg(test)]
mod tests;
