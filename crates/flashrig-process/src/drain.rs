//! Reads one output pipe to its end, whether or not anybody wants the lines, so that the writer
//! never blocks: raw bytes to a file, lines to the caller.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinHandle;

use super::lines::{Lines, Splitter, StreamEnd};
use super::spec::OutputLimits;
use flashrig_clock::Stamp;

const CHUNK_BYTES: usize = 64 * 1024;

/// A stream being read.
#[derive(Debug)]
pub(super) struct Drain {
    pub(super) lines: Lines,
    task: Option<JoinHandle<()>>,
}

impl Drain {
    /// A stream that does not exist.
    pub(super) fn none() -> Self {
        Self {
            lines: Lines::empty(),
            task: None,
        }
    }

    /// Starts reading.
    pub(super) fn start(
        pipe: OwnedFd,
        file: Option<File>,
        limits: OutputLimits,
    ) -> io::Result<Self> {
        let pipe = Receiver::from_owned_fd(pipe)?;
        let lines = Lines::new();
        let task = tokio::spawn(drain(pipe, file, lines.clone(), limits));
        Ok(Self {
            lines,
            task: Some(task),
        })
    }

    /// Waits for the end of the stream, until `deadline` at most.
    pub(super) async fn finish(&mut self, deadline: tokio::time::Instant) {
        if let Some(mut task) = self.task.take() {
            if tokio::time::timeout_at(deadline, &mut task).await.is_err() {
                task.abort();
            }
            self.lines.close(StreamEnd::DrainLimit);
        }
    }
}

/// Creates an output file, before anything is started that would write to it.
pub(super) async fn create(path: &Path) -> io::Result<File> {
    File::create(path).await
}

async fn drain(mut pipe: Receiver, file: Option<File>, lines: Lines, limits: OutputLimits) {
    let mut tee = Tee {
        file,
        room: limits.file_bytes,
    };
    let mut splitter = Splitter::default();
    let mut chunk = vec![0; CHUNK_BYTES];
    let end = loop {
        match pipe.read(&mut chunk).await {
            Ok(0) => break StreamEnd::Eof,
            Ok(count) => {
                let stamp = Stamp::now();
                let bytes = &chunk[..count];
                lines.amend(|report| report.bytes += count as u64);
                splitter.feed(bytes, limits.line_bytes, stamp, |line| {
                    lines.push(line, &limits)
                });
                tee.write(bytes, &lines).await;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break StreamEnd::Error,
        }
    };
    if let Some(line) = splitter.rest(Stamp::now()) {
        lines.push(line, &limits);
    }
    tee.flush(&lines).await;
    lines.close(end);
}

/// The file, as long as it can be written and has room.
struct Tee {
    file: Option<File>,
    room: u64,
}

impl Tee {
    async fn write(&mut self, bytes: &[u8], lines: &Lines) {
        let Some(file) = &mut self.file else { return };
        let fits = bytes
            .len()
            .min(usize::try_from(self.room).unwrap_or(usize::MAX));
        self.room -= fits as u64;
        if fits < bytes.len() {
            lines.amend(|report| report.file_missing_bytes += (bytes.len() - fits) as u64);
        }
        if fits > 0
            && let Err(error) = file.write_all(&bytes[..fits]).await
        {
            self.give_up(&error, lines);
        }
    }

    async fn flush(&mut self, lines: &Lines) {
        if let Some(file) = &mut self.file
            && let Err(error) = file.flush().await
        {
            self.give_up(&error, lines);
        }
    }

    /// A full disk must not stop the agent: the lines go on.
    fn give_up(&mut self, error: &io::Error, lines: &Lines) {
        lines.amend(|report| report.file_error = Some(error.to_string()));
        self.file = None;
    }
}
