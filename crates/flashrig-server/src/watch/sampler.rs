//! Looks at the server's metrics and processes once a second, on a task of its own, and writes each
//! look to `server.jsonl`. One request is open at a time, and a look that is overdue is left out.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::{Instant, MissedTickBehavior};

use super::reading::{Fold, Reading, Usage, When};
use crate::life::Life;
use crate::log::{LogEvent, LogIndex, open_whole_lines};
use crate::profiles::MetricNames;
use flashrig_clock::{Origin, Seconds, Stamp};
use flashrig_http::{Upstream, ask};
use flashrig_record::{ServerFact, ServerLine};

/// A server that is in the middle of a batch may take long to say how it is.
const LIMIT: Duration = Duration::from_secs(5);
/// At a border it is idle, or it is not well.
const BORDER_LIMIT: Duration = Duration::from_secs(3);
/// Bytes of `server.jsonl`, for looks and for lines of the log each.
const FILE_LIMIT: u64 = 64 << 20;

/// What looks, and what it has seen.
#[derive(Debug)]
pub struct Sampler {
    pub server: Upstream,
    pub names: MetricNames,
    pub life: Life,
    pub log_index: LogIndex,
    pub origin: Origin,
    /// Held while a request is open. It tells whether the page was there the last time.
    pub page: tokio::sync::Mutex<Page>,
    pub span: Mutex<Option<Fold>>,
    pub lines: Mutex<Lines>,
}

/// Whether there is a page of metrics. One that is not there is asked for again only at borders.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Page {
    #[default]
    Unknown,
    There,
    Absent,
}

impl Sampler {
    /// Looks once each `period`, for ever.
    pub async fn run(&self, period: Duration) {
        let mut ticks = tokio::time::interval_at(Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            self.look(When::Between).await;
            self.record_log(Stamp::now());
        }
    }

    /// Looks once; returns whether the server answered with metrics.
    pub async fn look(&self, when: When) -> bool {
        let mut page = match when {
            When::Between => match self.page.try_lock() {
                Ok(page) => page,
                Err(_) => return false,
            },
            When::Begin | When::End => self.page.lock().await,
        };
        let reading = if when == When::Between && *page == Page::Absent {
            None
        } else {
            let limit = if when == When::Between {
                LIMIT
            } else {
                BORDER_LIMIT
            };
            let (reading, found) = self.read(limit).await;
            *page = found.unwrap_or(*page);
            reading
        };
        let at = Stamp::now();
        let usage = self.usage();
        if let Some(span) = self.span().as_mut() {
            span.take(reading, usage, when);
        }
        if reading.is_some() || usage != Usage::default() {
            self.record_look(at, reading.unwrap_or_default(), usage);
        }
        reading.is_some()
    }

    /// What the page says; and what is known now of whether it is there.
    async fn read(&self, limit: Duration) -> (Option<Reading>, Option<Page>) {
        match ask(&self.server, &self.names.path, None, limit).await {
            Ok(answer) if answer.status == 200 => {
                let text = String::from_utf8_lossy(&answer.body);
                let reading = Reading::of(&self.names.read(&text));
                let page = if reading.is_some() {
                    Page::There
                } else {
                    Page::Absent
                };
                (reading, Some(page))
            }
            // A page that was there and fails for once is asked for again.
            Ok(answer) => {
                let gone = matches!(answer.status, 404 | 405 | 501 | 503);
                (None, gone.then_some(Page::Absent))
            }
            Err(_) => (None, None),
        }
    }

    fn usage(&self) -> Usage {
        let (rss_bytes, cpu) = self.life.usage().unwrap_or_default();
        Usage {
            rss_bytes,
            cpu_s: cpu.map(|cpu| cpu.as_secs_f64()),
        }
    }

    fn record_look(&self, at: Stamp, reported: Reading, usage: Usage) {
        let what = ServerFact::Sample {
            running: reported.running,
            waiting: reported.waiting,
            prompt_tokens: reported.prompt_tokens,
            generated_tokens: reported.generated_tokens,
            cached_tokens: reported.cached_tokens,
            refused: reported.refused,
            memory_bytes: reported.memory_bytes,
            rss_bytes: usage.rss_bytes,
            cpu_s: usage.cpu_s.map(Seconds),
        };
        let at_s = self.origin.at(at);
        self.lines().write(&ServerLine { at_s, what });
    }

    /// Writes what the log told up to `to`. How far a prompt has been read is no news of that kind.
    pub fn record_log(&self, to: Stamp) {
        let mut lines = self.lines();
        let from = std::mem::replace(&mut lines.log_up_to, to);
        for reported in self.log_index.events_between(from, to) {
            if matches!(reported.event, LogEvent::PrefillProgress { .. }) {
                continue;
            }
            let at_s = self.origin.at(reported.at);
            let what = ServerFact::Log {
                line: reported.line,
            };
            lines.write(&ServerLine { at_s, what });
        }
    }

    pub fn span(&self) -> MutexGuard<'_, Option<Fold>> {
        self.span.lock()
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock()
    }
}

/// `server.jsonl`.
#[derive(Debug)]
pub struct Lines {
    file: Option<File>,
    looks: u64,
    log: u64,
    log_up_to: Stamp,
}

impl Lines {
    /// Opens it for appending.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        Ok(Self {
            file: Some(open_whole_lines(path)?),
            looks: 0,
            log: 0,
            log_up_to: Stamp(0),
        })
    }

    fn write(&mut self, line: &ServerLine) {
        let room = match line.what {
            ServerFact::Sample { .. } => &mut self.looks,
            ServerFact::Log { .. } => &mut self.log,
        };
        let Ok(mut text) = serde_json::to_vec(line) else {
            return;
        };
        text.push(b'\n');
        *room += text.len() as u64;
        if *room > FILE_LIMIT {
            return;
        }
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(&text)
        {
            tracing::warn!(%error, "what is seen of the server is kept no longer");
            self.file = None;
        }
    }
}
