//! Reads and keeps the bodies of requests and answers, on a thread of its own: nothing on its way
//! through the gateway waits for a disk or for a prompt to be read.
//!
//! What waits for the thread is bounded. Above the bound bodies are let go, and the record says
//! how many.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use anyhow::Context as _;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use crate::store::{BODIES_FILE, BodiesFile, BodyKind, BodyLine, Omitted};
use flashrig_http::Redactor;
use flashrig_record::threads::{Pieces, Prompt};
use flashrig_record::{Dialect, KeptBodies};

/// Bytes that may wait for the thread, unfinished answers included.
const WAITING_BYTES: usize = 256 * 1024 * 1024;
/// Bytes kept of one answer.
const ANSWER_BYTES: usize = 32 * 1024 * 1024;

/// Reads and keeps bodies until it is closed.
#[derive(Debug)]
pub struct Bodies {
    sender: Sender<Message>,
    waiting: Arc<AtomicUsize>,
    sessions: AtomicUsize,
    thread: JoinHandle<anyhow::Result<()>>,
}

/// Hands one session's bodies over.
#[derive(Clone, Debug)]
pub struct SessionBodies {
    sender: Sender<Message>,
    waiting: Arc<AtomicUsize>,
    session: usize,
}

/// What the bodies of a session told.
#[derive(Debug)]
pub struct Found {
    /// Prompts by the number of their request.
    pub prompts: BTreeMap<u32, Prompt>,
    /// What is in the file.
    pub kept: KeptBodies,
}

#[derive(Debug)]
enum Message {
    Open(usize, PathBuf, Redactor),
    Of(usize, u32, Part),
    Finish(usize, oneshot::Sender<Found>),
}

#[derive(Debug)]
enum Part {
    Request(Dialect, Bytes),
    RequestDropped(u64),
    Answer { bytes: Bytes, encoded: bool },
    AnswerDropped(u64),
    Answered,
}

impl Bodies {
    /// Starts the thread. Without `keep`, files hold only hashes and lengths.
    pub fn start(keep: bool) -> Self {
        let (sender, receiver) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let in_use = Arc::clone(&waiting);
        let thread = thread::spawn(move || {
            let mut keeper = Keeper {
                keep,
                waiting: in_use,
                sessions: HashMap::new(),
                result: Ok(()),
            };
            for message in receiver {
                keeper.take(message);
            }
            keeper.close()
        });
        Self {
            sender,
            waiting,
            sessions: AtomicUsize::new(0),
            thread,
        }
    }

    /// For one session, whose record goes to the folder `record`.
    pub fn session(&self, record: &Path, redactor: Redactor) -> SessionBodies {
        let session = self.sessions.fetch_add(1, Ordering::Relaxed);
        let path = record.join(BODIES_FILE);
        let open = Message::Open(session, path, redactor);
        // The thread only ends after the last sender is gone.
        let _ = self.sender.send(open);
        SessionBodies {
            sender: self.sender.clone(),
            waiting: Arc::clone(&self.waiting),
            session,
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
            .unwrap_or_else(|_| Err(anyhow::anyhow!("the keeper of bodies panicked")))
    }
}

impl SessionBodies {
    /// Hands over the body of a request, as the client sent it.
    pub fn request(&self, number: u32, dialect: Dialect, body: Bytes) {
        if body.is_empty() {
            return;
        }
        let part = if self.room_for(body.len()) {
            Part::Request(dialect, body)
        } else {
            Part::RequestDropped(body.len() as u64)
        };
        self.send(number, part);
    }

    /// Hands over bytes of the answer to it.
    pub fn answer(&self, number: u32, bytes: &Bytes, encoded: bool) {
        let part = if self.room_for(bytes.len()) {
            // A copy: the original holds the whole buffer that it was read into.
            let bytes = Bytes::copy_from_slice(bytes);
            Part::Answer { bytes, encoded }
        } else {
            Part::AnswerDropped(bytes.len() as u64)
        };
        self.send(number, part);
    }

    /// The answer is over.
    pub fn answered(&self, number: u32) {
        self.send(number, Part::Answered);
    }

    /// Waits until the session's bodies are read and written. `None` when the thread is gone.
    pub async fn finish(self) -> Option<Found> {
        let (reply, found) = oneshot::channel();
        let _ = self.sender.send(Message::Finish(self.session, reply));
        found.await.ok()
    }

    fn send(&self, number: u32, part: Part) {
        let _ = self.sender.send(Message::Of(self.session, number, part));
    }

    /// Takes `bytes` of the bound, when they are to be had.
    fn room_for(&self, bytes: usize) -> bool {
        self.waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                let used = used.checked_add(bytes)?;
                (used <= WAITING_BYTES).then_some(used)
            })
            .is_ok()
    }
}

/// What the thread knows.
struct Keeper {
    keep: bool,
    waiting: Arc<AtomicUsize>,
    sessions: HashMap<usize, Open>,
    result: anyhow::Result<()>,
}

/// A session that goes on.
struct Open {
    path: PathBuf,
    redactor: Redactor,
    file: Option<BodiesFile>,
    pieces: Pieces,
    prompts: BTreeMap<u32, Prompt>,
    answers: HashMap<u32, Answer>,
    kept: KeptBodies,
}

/// An answer that goes on.
#[derive(Default)]
struct Answer {
    kept: Vec<u8>,
    hash: Sha256,
    length: u64,
    omitted: Option<Omitted>,
}

impl Keeper {
    fn take(&mut self, message: Message) {
        match message {
            Message::Open(session, path, redactor) => {
                let open = Open {
                    path,
                    redactor,
                    file: None,
                    pieces: Pieces::default(),
                    prompts: BTreeMap::new(),
                    answers: HashMap::new(),
                    kept: KeptBodies::default(),
                };
                self.sessions.insert(session, open);
            }
            Message::Of(session, number, part) => self.part(session, number, part),
            Message::Finish(session, reply) => {
                if let Some(mut open) = self.sessions.remove(&session) {
                    self.note(open.end(self.keep));
                    let held = open.answers.values().map(|a| a.kept.len()).sum();
                    self.waiting.fetch_sub(held, Ordering::Relaxed);
                    // Who asked may be gone, with the run.
                    let _ = reply.send(Found {
                        prompts: open.prompts,
                        kept: open.kept,
                    });
                }
            }
        }
    }

    fn part(&mut self, session: usize, number: u32, part: Part) {
        let Some(open) = self.sessions.get_mut(&session) else {
            return;
        };
        let mut freed = 0;
        let written = match part {
            Part::Request(dialect, body) => {
                freed = body.len();
                if let Some(prompt) = Prompt::read(dialect, &body, &mut open.pieces) {
                    open.prompts.insert(number, prompt);
                }
                let omitted = (!self.keep).then_some(Omitted::NotKept);
                let hash = Some(hex::encode(Sha256::digest(&body).as_slice()));
                let length = body.len() as u64;
                open.write(number, BodyKind::Request, length, hash, omitted, &body)
            }
            Part::RequestDropped(length) => {
                open.kept.dropped += 1;
                let why = Some(Omitted::Dropped);
                open.write(number, BodyKind::Request, length, None, why, &[])
            }
            Part::Answer { bytes, encoded } => {
                let held = open
                    .answers
                    .entry(number)
                    .or_default()
                    .add(&bytes, encoded, self.keep);
                freed = bytes.len() - held;
                Ok(())
            }
            Part::AnswerDropped(length) => {
                let answer = open.answers.entry(number).or_default();
                answer.length += length;
                answer.omitted = Some(Omitted::Dropped);
                Ok(())
            }
            Part::Answered => match open.answers.remove(&number) {
                Some(answer) => {
                    freed = answer.kept.len();
                    open.write_answer(number, answer)
                }
                None => Ok(()),
            },
        };
        self.waiting.fetch_sub(freed, Ordering::Relaxed);
        self.note(written);
    }

    /// Goes on after a failure, so that what is handed over does not pile up, and so that threads
    /// and prefixes are known all the same.
    fn note(&mut self, written: anyhow::Result<()>) {
        if self.result.is_ok() {
            self.result = written;
        }
    }

    fn close(mut self) -> anyhow::Result<()> {
        for (_, mut open) in std::mem::take(&mut self.sessions) {
            let ended = open.end(self.keep);
            self.note(ended);
        }
        self.result
    }
}

impl Answer {
    /// The bytes that are now held.
    fn add(&mut self, bytes: &[u8], encoded: bool, keep: bool) -> usize {
        self.hash.update(bytes);
        self.length += bytes.len() as u64;
        let omitted = if !keep {
            Some(Omitted::NotKept)
        } else if encoded {
            Some(Omitted::Encoded)
        } else if self.kept.len() + bytes.len() > ANSWER_BYTES {
            Some(Omitted::TooLong)
        } else {
            None
        };
        self.omitted = self.omitted.or(omitted);
        if self.omitted.is_some() {
            return 0;
        }
        self.kept.extend_from_slice(bytes);
        bytes.len()
    }
}

impl Open {
    fn write_answer(&mut self, number: u32, answer: Answer) -> anyhow::Result<()> {
        let Answer {
            kept,
            hash,
            length,
            omitted,
        } = answer;
        let whole = omitted != Some(Omitted::Dropped);
        self.kept.dropped += u64::from(!whole);
        let hash = whole.then(|| hex::encode(hash.finalize().as_slice()));
        self.write(number, BodyKind::Response, length, hash, omitted, &kept)
    }

    fn write(
        &mut self,
        number: u32,
        kind: BodyKind,
        length: u64,
        sha256: Option<String>,
        omitted: Option<Omitted>,
        body: &[u8],
    ) -> anyhow::Result<()> {
        let body = match omitted {
            Some(Omitted::NotKept | Omitted::Encoded) => &[],
            Some(Omitted::TooLong | Omitted::Dropped) | None => body,
        };
        let redacted = self.redactor.short_form(body);
        let stored = redacted.as_deref().unwrap_or(body);
        let line = BodyLine {
            number,
            kind,
            length,
            sha256,
            stored: stored.len() as u64,
            omitted,
            redacted: redacted.is_some(),
        };
        self.kept.bodies += 1;
        self.kept.bytes += length;
        let append = |file: &mut Option<BodiesFile>| -> io::Result<()> {
            if file.is_none() {
                *file = Some(BodiesFile::create(&self.path)?);
            }
            match file {
                Some(file) => file.append(&line, stored),
                None => Ok(()),
            }
        };
        append(&mut self.file).with_context(|| failure(&self.path))
    }

    /// Writes what has no end and ends the file.
    fn end(&mut self, keep: bool) -> anyhow::Result<()> {
        // The gateway tells every end before it closes; an answer is only left over when the
        // session was given up.
        let mut left: Vec<u32> = self.answers.keys().copied().collect();
        left.sort_unstable();
        for number in left.into_iter().filter(|_| keep) {
            if let Some(answer) = self.answers.get_mut(&number).map(std::mem::take) {
                self.write_answer(number, answer)?;
            }
        }
        if let Some(file) = self.file.take() {
            self.kept.file_bytes = file.finish().with_context(|| failure(&self.path))?;
        }
        Ok(())
    }
}

fn failure(path: &Path) -> String {
    format!("cannot keep bodies in {}", path.display())
}

#[cfg(test)]
mod tests;
