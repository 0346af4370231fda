//! Keeps the bodies of requests, as the agents sent them, in the results folder.
//!
//! Written by a thread of its own: a request on its way to the server does not wait for a disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use anyhow::Context as _;
use bytes::Bytes;

/// Writes bodies until it is closed.
#[derive(Debug)]
pub struct Bodies {
    sender: Sender<(PathBuf, Bytes)>,
    thread: JoinHandle<anyhow::Result<()>>,
}

/// Hands one session's bodies over.
#[derive(Clone, Debug)]
pub struct SessionBodies {
    sender: Sender<(PathBuf, Bytes)>,
    folder: PathBuf,
}

impl Bodies {
    /// Starts the thread.
    pub fn start() -> Self {
        let (sender, receiver) = channel::<(PathBuf, Bytes)>();
        let thread = thread::spawn(move || {
            let mut result = Ok(());
            // Goes on after a failure, so that what is handed over does not pile up in memory.
            for (path, body) in receiver {
                if result.is_ok() {
                    result = write(&path, &body);
                }
            }
            result
        });
        Self { sender, thread }
    }

    /// For one session, whose record goes to `record`.
    pub fn session(&self, record: &Path) -> SessionBodies {
        SessionBodies {
            sender: self.sender.clone(),
            folder: record.join("bodies"),
        }
    }

    /// Waits until everything is written. Sessions that still hold a handle keep it waiting.
    ///
    /// # Errors
    /// The first body that could not be written.
    pub fn close(self) -> anyhow::Result<()> {
        drop(self.sender);
        self.thread
            .join()
            .unwrap_or_else(|_| Err(anyhow::anyhow!("the writer of bodies panicked")))
    }
}

impl SessionBodies {
    /// Hands over the body of request `number`; an empty one is not kept.
    pub fn keep(&self, number: u32, body: Bytes) {
        if !body.is_empty() {
            // The thread only ends after the last sender is gone.
            let _ = self
                .sender
                .send((self.folder.join(format!("{number:04}.json")), body));
        }
    }
}

fn write(path: &Path, body: &[u8]) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, body))
        .with_context(|| format!("cannot keep a request's body in {}", path.display()))
}
