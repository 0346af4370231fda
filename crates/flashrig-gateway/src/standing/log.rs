//! A file with a line for every request, written beside the forwarding and never in its way.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stats::FinishedRequest;
use flashrig_clock::Origin;
use flashrig_record::Attempt;

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

/// Writes the log. Dropping it writes what is left.
#[derive(Debug)]
pub struct LogWriter {
    lines: Option<Sender<FinishedRequest>>,
    writing: Option<JoinHandle<()>>,
}

impl LogWriter {
    /// Opens `path` to append to it. Instants are told by `origin`.
    ///
    /// # Errors
    /// The file cannot be opened for writing.
    pub fn open(path: &Path, origin: Origin) -> Result<Self, LogFileError> {
        let error = |source| LogFileError {
            path: path.to_owned(),
            source,
        };
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(error)?;
        let (lines, reported) = channel();
        let shown = path.to_owned();
        let writing = std::thread::Builder::new()
            .name("gateway-log".to_owned())
            .spawn(move || write_all(file, &shown, &reported, &origin))
            .map_err(error)?;
        Ok(Self {
            lines: Some(lines),
            writing: Some(writing),
        })
    }

    /// Has a request written.
    pub fn write(&self, received: FinishedRequest) {
        if let Some(lines) = &self.lines {
            let _ = lines.send(received);
        }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.lines = None;
        if let Some(writing) = self.writing.take() {
            let _ = writing.join();
        }
    }
}

/// A line is written at once or, when the disk fails, not at all: the next one starts afresh.
fn write_all(
    mut file: impl Write,
    path: &Path,
    reported: &Receiver<FinishedRequest>,
    origin: &Origin,
) {
    let mut failing = false;
    for received in reported {
        let Ok(mut line) = serde_json::to_vec(&line(received, origin)) else {
            continue;
        };
        line.push(b'\n');
        if failing {
            line.insert(0, b'\n');
        }
        let written = file.write_all(&line).and_then(|()| file.flush());
        if let (Err(error), false) = (&written, failing) {
            tracing::warn!(
                "the log {} cannot be written: {error}; requests go on, lines are lost until it can",
                path.display()
            );
        }
        if failing && written.is_ok() {
            tracing::warn!("the log {} is written again", path.display());
        }
        failing = written.is_err();
    }
}

fn line(received: FinishedRequest, origin: &Origin) -> LogLine {
    let since = jiff::SignedDuration::try_from_secs_f64(received.attempt.clocks.head_s.0);
    let at = since.map_or(origin.wall, |since| {
        origin.wall.checked_add(since).unwrap_or(origin.wall)
    });
    LogLine {
        at: at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string(),
        client: received.client.to_string(),
        attempt: *received.attempt,
    }
}

#[cfg(test)]
mod tests {
    use super::super::client_stats::tests::answered;
    use super::*;
    use std::sync::{Arc, Mutex};

    /// A disk that is full for the second write.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<(u32, Vec<u8>)>>);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (writes, held) = &mut *self.0.lock().unwrap();
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

    #[test]
    fn a_line_that_could_not_be_written_spoils_no_other() {
        let disk = Disk::default();
        let (lines, reported) = channel();
        for client in ["a", "b", "c", "d"] {
            lines
                .send(FinishedRequest {
                    client: client.into(),
                    attempt: Box::new(answered()),
                })
                .unwrap();
        }
        drop(lines);
        write_all(disk.clone(), Path::new("x"), &reported, &Origin::now());
        let held = String::from_utf8(disk.0.lock().unwrap().1.clone()).unwrap();
        let clients: Vec<String> = held
            .lines()
            .filter_map(|line| serde_json::from_str::<LogLine>(line).ok())
            .map(|line| line.client)
            .collect();
        assert_eq!(clients, ["a", "c", "d"]);
    }
}
