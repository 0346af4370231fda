//! What is told while a run goes on.

use std::sync::Arc;

use parking_lot::Mutex;

use tokio::sync::mpsc;

use crate::store::{Store, StoreError};
use flashrig_clock::{Origin, Stamp};
use flashrig_gateway::{GatewayEvent, RequestProgress};
use flashrig_load::SessionAttempt;
use flashrig_record::{Attempt, Kept, Outcome, Role, Run, What};

/// Told to whoever shows progress. Nothing of it is needed for the record.
#[derive(Clone, Debug)]
pub enum Live<W = What> {
    /// A remark for people.
    Note(String),
    /// A stored fact.
    Fact(Box<W>),
    /// What a session is doing now.
    Session {
        /// Session name.
        id: String,
        /// What it is doing.
        step: Step,
    },
}

/// A step of a session.
#[derive(Clone, Debug)]
pub enum Step {
    /// A request is held back by the gate.
    Held {
        /// Its number.
        number: u32,
        /// Its provisional role.
        role: Role,
        /// How far its answer has come.
        progress: Arc<RequestProgress>,
        /// When.
        at: Stamp,
    },
    /// A request went to the server.
    Asked {
        /// Its number.
        number: u32,
        /// Its provisional role.
        role: Role,
        /// How far its answer has come.
        progress: Arc<RequestProgress>,
        /// When.
        at: Stamp,
    },
    /// An answer ended.
    Answered {
        /// The request's number.
        number: u32,
        /// How.
        end: Outcome,
        /// When.
        at: Stamp,
    },
    /// The transcript told of a new turn.
    Turn,
    /// The transcript told of a tool call.
    Tool(Option<String>),
}

impl Step {
    /// The step that a gateway's event is. There is none for what comes with every token: whoever
    /// shows that reads the request's progress.
    pub fn of(event: &GatewayEvent) -> Option<Self> {
        match event {
            GatewayEvent::Held {
                number,
                role,
                progress,
                at,
            } => Some(Self::Held {
                number: *number,
                role: *role,
                progress: Arc::clone(progress),
                at: *at,
            }),
            GatewayEvent::Started {
                number,
                role,
                progress,
                at,
                ..
            } => Some(Self::Asked {
                number: *number,
                role: *role,
                progress: Arc::clone(progress),
                at: *at,
            }),
            GatewayEvent::Finished(attempt) => Some(Self::Answered {
                number: attempt.number,
                end: attempt.outcome,
                at: Stamp::now(),
            }),
            GatewayEvent::Answer { .. }
            | GatewayEvent::FirstToken { .. }
            | GatewayEvent::Content { .. } => None,
        }
    }
}

/// Carries what is told: facts to the store, everything to the listener.
#[derive(Debug)]
pub struct Bus<R: Kept = Run> {
    origin: Origin,
    store: Mutex<Store<R>>,
    live: mpsc::UnboundedSender<Live<R::What>>,
}

impl<R: Kept> Bus<R> {
    /// Facts go to `store`, everything to `live`. A listener that is gone is no error.
    pub fn new(
        origin: Origin,
        store: Store<R>,
        live: mpsc::UnboundedSender<Live<R::What>>,
    ) -> Self {
        Self {
            origin,
            store: Mutex::new(store),
            live,
        }
    }

    /// What stored instants count from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Records a fact.
    ///
    /// # Errors
    /// The results folder cannot be written.
    pub fn fact(&self, what: R::What) -> Result<(), StoreError>
    where
        R::What: Clone,
    {
        let _ = self.live.send(Live::Fact(Box::new(what.clone())));
        let event = R::event(self.origin.at(Stamp::now()), what);
        self.with(|store| store.event(event))
    }

    /// Records the requests of a session.
    ///
    /// # Errors
    /// The results folder cannot be written.
    pub fn requests(
        &self,
        round: u32,
        arm: &str,
        session: &str,
        attempts: &[Attempt],
    ) -> Result<(), StoreError> {
        self.with(|store| store.requests(round, arm, session, attempts))
    }

    /// Records the requests of a combination of synthetic sessions.
    ///
    /// # Errors
    /// The results folder cannot be written.
    pub fn cell_requests(
        &self,
        round: u32,
        arm: &str,
        rows: &[SessionAttempt],
    ) -> Result<(), StoreError> {
        let rows = rows.iter().map(|row| (row.session.as_str(), &row.attempt));
        self.with(|store| store.cell_requests(round, arm, rows))
    }

    /// Looks at the store.
    pub fn with<T>(&self, look: impl FnOnce(&mut Store<R>) -> T) -> T {
        look(&mut self.store.lock())
    }

    /// Tells a remark.
    pub fn note(&self, text: impl Into<String>) {
        let _ = self.live.send(Live::Note(text.into()));
    }

    /// The sender for a session's steps.
    pub fn live(&self) -> mpsc::UnboundedSender<Live<R::What>> {
        self.live.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_sends_nothing_to_who_shows_progress() {
        let (number, at) = (1, Stamp(5));
        let progress = Arc::new(RequestProgress::new(at));
        let held = GatewayEvent::Held {
            number,
            role: Role::Main,
            progress: Arc::clone(&progress),
            at,
        };
        let Some(Step::Held { progress: seen, .. }) = Step::of(&held) else {
            panic!("a held request is a step");
        };
        for content_events in 1..=1000 {
            let event = GatewayEvent::Content {
                number,
                content_events,
                at,
            };
            assert!(Step::of(&event).is_none());
            progress.record(content_events, at);
        }
        assert_eq!(seen.generated().unwrap().content_events, 1000);
    }
}
