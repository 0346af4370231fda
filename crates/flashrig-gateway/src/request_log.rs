//! The rows of a session. Every attempt that began gets exactly one, however it ends: the row is
//! written when its [`Recording`] is finished, and also when it is merely dropped.

use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};

use tokio::sync::watch;

use super::document::Document;
use super::events::{Activity, GatewayEvent, Observer};
use super::progress::RequestProgress;
use super::request::{RequestFacts, body_hash};
use flashrig_clock::{Origin, Seconds, Stamp};
use flashrig_record::threads::role;
use flashrig_record::{Attempt, Clocks, Dialect, ErrorDetail, Outcome, Role};
use llm_observe::Facts;

/// The most bodies that are remembered where rows are not kept.
const BODIES_REMEMBERED: usize = 4096;

/// What a request_log keeps for its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retention {
    /// Every row.
    Rows,
    /// Nothing but the latest bodies' hashes: a standing listener would fill the memory.
    Nothing,
}

/// Rows, activity and listener of one session.
pub(super) struct RequestLog {
    origin: Origin,
    retention: Retention,
    observer: Box<dyn Observer>,
    activity: watch::Sender<Activity>,
    closing: AtomicBool,
    /// Whether any request so far is main.
    has_main: AtomicBool,
    rows: Mutex<Rows>,
}

#[derive(Default)]
struct Rows {
    last_number: u32,
    bodies: HashMap<String, BodySeen>,
    /// Their hashes in order, where only the latest are remembered.
    latest: VecDeque<String>,
    done: Vec<Attempt>,
}

/// The attempts with one body.
struct BodySeen {
    /// The number of the first.
    first: u32,
    /// How many are in flight.
    open: u32,
}

impl Rows {
    /// What is remembered of this body; a new one is the attempt's own.
    fn body(&mut self, hash: &str, number: u32, retention: Retention) -> &mut BodySeen {
        if retention == Retention::Nothing && !self.bodies.contains_key(hash) {
            self.latest.push_back(hash.to_owned());
            if self.latest.len() > BODIES_REMEMBERED
                && let Some(oldest) = self.latest.pop_front()
            {
                self.bodies.remove(&oldest);
            }
        }
        self.bodies.entry(hash.to_owned()).or_insert(BodySeen {
            first: number,
            open: 0,
        })
    }
}

impl RequestLog {
    pub(super) fn new(origin: Origin, observer: Box<dyn Observer>) -> Arc<Self> {
        Self::with(origin, Retention::Rows, |_| observer)
    }

    /// A request_log whose observer can follow its activity.
    pub(super) fn with(
        origin: Origin,
        retention: Retention,
        observer: impl FnOnce(watch::Receiver<Activity>) -> Box<dyn Observer>,
    ) -> Arc<Self> {
        let activity = Activity {
            in_flight: 0,
            attempts: 0,
            last_change: Stamp::now(),
            last_begun: None,
            first_request: None,
            first_generation: None,
        };
        let activity = watch::Sender::new(activity);
        Arc::new(Self {
            origin,
            retention,
            observer: observer(activity.subscribe()),
            activity,
            closing: AtomicBool::new(false),
            has_main: AtomicBool::new(false),
            rows: Mutex::default(),
        })
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock()
    }

    pub(super) fn activity(&self) -> watch::Receiver<Activity> {
        self.activity.subscribe()
    }

    /// Attempts that end from now on were cut off by the session's closing.
    pub(super) fn start_closing(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    /// Takes the rows, in order of arrival, with roles settled.
    pub(super) fn take(&self) -> Vec<Attempt> {
        let mut rows = std::mem::take(&mut self.rows().done);
        rows.sort_by_key(|attempt| attempt.number);
        role::settle(&mut rows);
        rows
    }

    /// Opens the row of an attempt whose head was read at `head`.
    pub(super) fn begin(
        self: &Arc<Self>,
        method: &str,
        path: &str,
        dialect: Dialect,
        head: Stamp,
    ) -> Recording {
        let number = {
            let mut rows = self.rows();
            rows.last_number += 1;
            rows.last_number
        };
        self.activity.send_modify(|activity| {
            activity.in_flight += 1;
            activity.attempts += 1;
            activity.last_change = Stamp::now();
            activity.last_begun = activity.last_begun.max(Some(head));
        });
        let attempt = Attempt {
            number,
            method: method.to_owned(),
            path: path.to_owned(),
            clocks: Clocks {
                head_s: self.origin.at(head),
                ..Clocks::default()
            },
            ..Attempt::begun(dialect, role::provisional(dialect, None))
        };
        Recording {
            request_log: Arc::clone(self),
            attempt,
            encoded: false,
            progress: Arc::new(RequestProgress::new(head)),
            start_sent: false,
            learnt: false,
            finished: false,
        }
    }
}

/// The row of an attempt in flight.
pub(super) struct Recording {
    request_log: Arc<RequestLog>,
    /// The row so far; whoever handles the attempt fills it in.
    pub(super) attempt: Attempt,
    /// Whether the answer is compressed.
    pub(super) encoded: bool,
    progress: Arc<RequestProgress>,
    start_sent: bool,
    learnt: bool,
    finished: bool,
}

impl Recording {
    /// `stamp` as rows store it.
    pub(super) fn at(&self, stamp: Stamp) -> Seconds {
        self.request_log.origin.at(stamp)
    }

    /// The request carries the session's token.
    pub(super) fn admitted(&self, head: Stamp) {
        let generates = self.attempt.dialect.generates();
        self.request_log.activity.send_if_modified(|activity| {
            let before = *activity;
            activity.first_request.get_or_insert(head);
            if generates {
                activity.first_generation.get_or_insert(head);
            }
            *activity != before
        });
    }

    /// The request's body was read whole at `at`.
    pub(super) fn body_read(&mut self, at: Stamp) {
        self.attempt.clocks.body_s = Some(self.at(at));
    }

    /// Learns from the body what it asks for and whether it came before; only the first time.
    pub(super) fn learn(&mut self, document: &Document) {
        if std::mem::replace(&mut self.learnt, true) {
            return;
        }
        let facts = RequestFacts::read(self.attempt.dialect, document);
        let hash = body_hash(document.text());
        let attempt = &mut self.attempt;
        attempt.role = role::provisional(attempt.dialect, facts.tools);
        if attempt.role == Role::Main {
            self.request_log.has_main.store(true, Ordering::Relaxed);
        }
        attempt.model = facts.model;
        attempt.stream = facts.stream;
        attempt.tools = facts.tools;
        attempt.messages = facts.messages;
        attempt.max_tokens = facts.max_tokens;
        if let Some(hash) = &hash {
            let mut rows = self.request_log.rows();
            let seen = rows.body(hash, attempt.number, self.request_log.retention);
            attempt.repeats = (seen.first != attempt.number).then_some(seen.first);
            attempt.repeats_open = seen.open > 0 && attempt.dialect.generates();
            seen.open += 1;
        }
        attempt.body_hash = hash;
    }

    /// Tells the listener that the request is held back by the gate.
    pub(super) fn held(&self, at: Stamp) {
        self.request_log.observer.event(GatewayEvent::Held {
            number: self.attempt.number,
            role: self.attempt.role,
            progress: Arc::clone(&self.progress),
            at,
        });
    }

    /// Tells the listener, once, that the request goes to the server.
    pub(super) fn started(&mut self, at: Stamp, body: &Bytes) {
        if std::mem::replace(&mut self.start_sent, true) {
            return;
        }
        self.request_log.observer.event(GatewayEvent::Started {
            number: self.attempt.number,
            method: self.attempt.method.clone(),
            path: self.attempt.path.clone(),
            dialect: self.attempt.dialect,
            role: self.attempt.role,
            progress: Arc::clone(&self.progress),
            stream: self.attempt.stream,
            body: body.clone(),
            at,
        });
    }

    /// Tells the listener that bytes of the answer pass.
    pub(super) fn answer(&self, bytes: &Bytes) {
        self.request_log.observer.event(GatewayEvent::Answer {
            number: self.attempt.number,
            bytes: bytes.clone(),
            encoded: self.encoded,
        });
    }

    /// Tells the listener what a read brought, given the content events known `before` it.
    pub(super) fn progress(&self, before: u64, facts: &Facts, at: Stamp) {
        if facts.content_events == before {
            return;
        }
        self.progress.record(facts.content_events, at);
        let number = self.attempt.number;
        if before == 0 {
            self.request_log
                .observer
                .event(GatewayEvent::FirstToken { number, at });
        }
        let content_events = facts.content_events;
        self.request_log.observer.event(GatewayEvent::Content {
            number,
            content_events,
            at,
        });
    }

    /// Writes what the response said into the row.
    pub(super) fn response(&mut self, facts: &Facts, redact: impl FnOnce(String) -> String) {
        let origin = &self.request_log.origin;
        let attempt = &mut self.attempt;
        attempt.observed(facts, |stamp| origin.at(stamp));
        if let Some(error) = &facts.error {
            attempt.error = Some(ErrorDetail {
                message: redact(error.message.clone()),
                ..error.clone()
            });
        }
    }

    /// Closes the row.
    pub(super) fn finish(mut self, end: Outcome, at: Stamp) {
        self.settle(end, at);
    }

    fn settle(&mut self, end: Outcome, at: Stamp) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        self.attempt.outcome = end;
        if self.request_log.retention == Retention::Nothing {
            // A standing listener's client has no end at which its rows could be settled.
            let has_main = self.request_log.has_main.load(Ordering::Relaxed);
            self.attempt.role = role::settled(self.attempt.role, has_main);
        }
        self.attempt.refusal = self.attempt.refusal_kind();
        self.attempt.clocks.end_s = self.at(at);
        let closing = self.request_log.closing.load(Ordering::Relaxed);
        if end == Outcome::ClientAborted && closing && self.attempt.error.is_none() {
            self.attempt.error = Some(ErrorDetail {
                kind: Some("session_closed".to_owned()),
                message: "the session was closed while this request was in flight".to_owned(),
                field: None,
            });
        }
        let attempt = self.attempt.clone();
        {
            let mut rows = self.request_log.rows();
            let hash = attempt.body_hash.as_ref();
            if let Some(seen) = hash.and_then(|hash| rows.bodies.get_mut(hash)) {
                seen.open = seen.open.saturating_sub(1);
            }
            if self.request_log.retention == Retention::Rows {
                rows.done.push(attempt.clone());
            }
        }
        // Before the count goes down, so that who sees nothing in flight has heard of every end.
        self.request_log
            .observer
            .event(GatewayEvent::Finished(Box::new(attempt)));
        self.request_log.activity.send_modify(|activity| {
            activity.in_flight = activity.in_flight.saturating_sub(1);
            activity.last_change = Stamp::now();
        });
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.finished {
            // Not the client's doing: say so, and never let it pass for a measurement.
            self.attempt.error = Some(ErrorDetail {
                kind: Some("gateway_fault".to_owned()),
                message: "the gateway itself failed on this request; please report it".to_owned(),
                field: None,
            });
            self.settle(Outcome::RejectedByGateway, Stamp::now());
        }
        self.settle(Outcome::ClientAborted, Stamp::now());
    }
}
