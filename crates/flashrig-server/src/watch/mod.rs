//! Watching the server while something is measured: its metrics once a second, its processes, its
//! log; and what that tells beside what clients saw.
//!
//! | file | its one job |
//! |---|---|
//! | `sampler` | the looks, and `server.jsonl` |
//! | `reading` | one look, and many folded |
//! | `joins` | refusals of clients beside lines of the log |
//! | `consistency` | one figure from three sources |
//!
//! Nothing is judged here, and nobody waits for it while an arm runs.

mod consistency;
#[cfg(all(test, target_os = "linux"))]
mod cost;
mod joins;
mod reading;
mod sampler;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinHandle;

use self::consistency::{Answers, Finished, disagreements, is_refusal};
use self::joins::{LATE_S, Refused, Rejecting, join};
use self::reading::{Fold, When};
use self::sampler::{Lines, Page, Sampler};
use crate::connection::Connected;
use crate::log::{Keeping, LogEventKind};
use flashrig_clock::{Origin, Seconds, Stamp};
use flashrig_record::{Attempt, Disagreement, ThreeWays, Watched};

/// How often the server is looked at, in seconds of its own time.
const EVERY: Duration = Duration::from_secs(1);
/// No look comes sooner after another, however fast a simulated server's time runs.
const SOONEST: Duration = Duration::from_millis(100);
/// How often the log is asked again for lines that are still to come.
const AGAIN: Duration = Duration::from_millis(50);
/// Refusals that a record holds; more of them are alike.
const REFUSALS: usize = 100;

/// Watches a server through a run. Dropping it ends that, and completes `server.log`.
#[derive(Debug)]
pub struct Watcher {
    sampler: Arc<Sampler>,
    task: JoinHandle<()>,
    _log: Keeping,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
        self.sampler.record_log(Stamp::now());
    }
}

impl Watcher {
    /// Begins to watch; what is seen goes into the results folder.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn start(server: &Connected, origin: &Origin, folder: &Path) -> std::io::Result<Self> {
        let log = server.log_index.keep(&folder.join("server.log"), origin)?;
        let sampler = Arc::new(Sampler {
            server: server.upstream.clone(),
            names: server.metrics.clone(),
            life: server.life.clone(),
            log_index: server.log_index.clone(),
            origin: origin.clone(),
            page: tokio::sync::Mutex::new(Page::default()),
            span: Mutex::new(None),
            lines: Mutex::new(Lines::open(&folder.join("server.jsonl"))?),
        });
        let speed = server.record.speed.unwrap_or(1.0).max(1.0);
        let period = EVERY.div_f64(speed).max(SOONEST);
        let inner = Arc::clone(&sampler);
        let task = tokio::spawn(async move { inner.run(period).await });
        Ok(Self {
            sampler,
            task,
            _log: log,
        })
    }

    /// A span that is watched once it is opened.
    pub fn span(&self) -> Span<'_> {
        Span {
            watcher: self,
            opened: None,
        }
    }
}

/// An arm or a combination. One is open at a time.
#[derive(Debug)]
pub struct Span<'w> {
    watcher: &'w Watcher,
    opened: Option<Opened>,
}

#[derive(Clone, Copy, Debug)]
struct Opened {
    at: Stamp,
    lost: u64,
}

impl Span<'_> {
    /// Begins, with a look at the server; only the first time does anything. To be called when the
    /// server is idle and before anything is sent.
    pub async fn open(&mut self) {
        if self.opened.is_some() {
            return;
        }
        let sampler = &self.watcher.sampler;
        // A line is stamped when it is read: what is there by now tells of what was before.
        sampler.log_index.catch_up().await;
        let opened = Opened {
            at: Stamp::now(),
            lost: sampler.log_index.lost(),
        };
        *sampler.span() = Some(Fold::default());
        sampler.look(When::Begin).await;
        self.opened = Some(opened);
    }

    /// Ends, with another look. `requests` are those of the span, each with its session's name.
    /// `None` when it was never opened.
    ///
    /// Lines of the log that are still to come are waited for, up to a second after the last answer.
    pub async fn close<'a, I>(self, requests: I) -> Option<Box<Watched>>
    where
        I: IntoIterator<Item = (&'a str, &'a Attempt)>,
    {
        let opened = self.opened?;
        let requests: Vec<(&str, &Attempt)> = requests.into_iter().collect();
        let sampler = &*self.watcher.sampler;
        let mut is_whole = sampler.look(When::End).await;
        let answers = Answers::of(requests.iter().map(|(_, attempt)| *attempt));
        loop {
            sampler.life.catch_up().await;
            sampler.log_index.catch_up().await;
            let fold = (*sampler.span()).unwrap_or_default();
            let watched = self.reported(opened, &fold, is_whole, &requests, &answers);
            let now_s = sampler.origin.at(Stamp::now()).0;
            let is_late = answers.last_end_s.is_none_or(|end| now_s > end + LATE_S);
            if is_late || is_settled(&watched) {
                *sampler.span() = None;
                return Some(Box::new(watched));
            }
            tokio::time::sleep(AGAIN).await;
            is_whole = sampler.look(When::End).await;
        }
    }

    /// What is known by now.
    fn reported(
        &self,
        opened: Opened,
        fold: &Fold,
        is_whole: bool,
        requests: &[(&str, &Attempt)],
        answers: &Answers,
    ) -> Watched {
        let Sampler {
            log_index, origin, ..
        } = &*self.watcher.sampler;
        let lines = log_index.events_between(opened.at, Stamp::now());
        let finished = Finished::of(lines.iter().map(|reported| &reported.event));
        let rejecting: Vec<Rejecting> = lines
            .iter()
            .filter_map(|reported| {
                Rejecting::of(origin.at(reported.at).0, &reported.event, &reported.line)
            })
            .collect();
        let tells_refusals = log_index.understands() && log_index.knows(LogEventKind::Refused);
        let counted = fold.counted(is_whole);
        let cached_tokens = ThreeWays {
            answers: answers.cached,
            metrics: counted.cached_tokens,
            log: finished.cached,
        };
        let refused = ThreeWays {
            answers: Some(answers.refused),
            metrics: counted.refused,
            log: tells_refusals.then_some(rejecting.len() as u64),
        };
        let of_clients = requests.iter().filter(|(_, attempt)| is_refusal(attempt));
        let of_clients = of_clients.map(|(session, attempt)| Refused::of(session, attempt));
        let mut refusals = join(of_clients.collect(), rejecting);
        refusals.truncate(REFUSALS);
        let mut disagreements = disagreements(cached_tokens, refused, answers, finished);
        if log_index.follows_in_vain() {
            disagreements.push(Disagreement::LogNotUnderstood);
        }
        Watched {
            samples: fold.samples,
            max_running: fold.max_running,
            max_waiting: fold.max_waiting,
            prompt_tokens: counted.prompt_tokens,
            generated_tokens: counted.generated_tokens,
            cached_tokens,
            refused,
            peak_memory_bytes: fold.peak_memory_bytes(),
            peak_rss_bytes: fold.peak_rss_bytes,
            cpu_s: counted.cpu_s.map(Seconds),
            disagreements,
            refusals,
            lost_lines: log_index.lost().saturating_sub(opened.lost),
        }
    }
}

/// Whether nothing is missing that could still come.
fn is_settled(watched: &Watched) -> bool {
    let reports = watched.refused.log.is_some();
    let waits = watched.refusals.iter().any(|one| one.log.is_none());
    watched.disagreements.is_empty() && !(reports && waits)
}
