//! From a request's body to its place in line: read, counted, checked, answered by the brain,
//! given memory, hashed, and handed to the engine.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::Request;
use hyper::body::Incoming;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::ask::{Ask, AskError, render_message};
use super::engine::{Event, Incoming as Inbox, Job, Refusal};
use super::memory::Reservation;
use super::profile::MemoryRefusal;
use super::reply::{Length, Planned};
use super::service::Service;
use super::shapes;
use super::stream::Dialect;
use super::tokens::{self, BlockChain};
use flashrig_clock::Stamp;

/// Largest request body that is read.
const BODY_LIMIT_BYTES: usize = 64 << 20;

/// Bodies above this are looked at on another thread, so that the tokens of others are not held
/// up by them.
const LONG_BODY_BYTES: usize = 64 << 10;

/// A request that stands in line.
pub(super) struct Started {
    pub ask: Ask,
    pub planned: Planned,
    pub events: UnboundedReceiver<Event>,
}

impl Service {
    /// Reads a request's body and puts it in line.
    pub(super) async fn receive(
        self: &Arc<Self>,
        request: Request<Incoming>,
        dialect: Dialect,
    ) -> Result<Started, AskError> {
        let body = read_body(request).await?;
        // Before anything is done with it: what this simulator needs to look at a prompt is
        // hidden behind the simulated work, not added to it.
        let arrived = Stamp::now();
        if body.len() <= LONG_BODY_BYTES {
            return self.start_or_note(&body, arrived, dialect);
        }
        let service = Arc::clone(self);
        let looked =
            tokio::task::spawn_blocking(move || service.start_or_note(&body, arrived, dialect));
        looked.await.unwrap_or(Err(AskError::Stopping))
    }

    fn start_or_note(
        &self,
        body: &[u8],
        arrived: Stamp,
        dialect: Dialect,
    ) -> Result<Started, AskError> {
        let mut prompt_tokens = None;
        let started = self.start(body, arrived, dialect, &mut prompt_tokens);
        if let Err(error) = &started {
            self.counters.refused.fetch_add(1, Ordering::Relaxed);
            // Memory has its own line, with both figures.
            if !matches!(error, AskError::Memory { .. }) {
                self.server_log.refused(&error.to_string());
            }
            let _ = self.engine.send(Inbox::Refusal(Refusal {
                at: arrived,
                reason: error.to_string(),
                prompt_tokens,
            }));
        }
        started
    }

    /// Everything up to the moment at which the request stands in line.
    fn start(
        &self,
        body: &[u8],
        arrived: Stamp,
        dialect: Dialect,
        counted: &mut Option<u64>,
    ) -> Result<Started, AskError> {
        let body = read_json(body)?;
        shapes::check(&body, &self.faults.refused_shapes)?;
        let ask = dialect.parse(&body)?;
        drop(body);
        self.check_model(&ask)?;
        let mut text = ask.canonical();
        let prompt_tokens = tokens::count(&text);
        *counted = Some(prompt_tokens);
        let context = self.profile.context;
        if prompt_tokens >= context {
            return Err(AskError::TooLong {
                prompt_tokens,
                context,
            });
        }
        let in_flight = self.counters.in_flight();
        if self
            .faults
            .overload_above
            .is_some_and(|limit| in_flight >= limit)
        {
            return Err(AskError::Overloaded { in_flight });
        }
        let reply = self.brain.answer(&ask, dialect.call_prefix());
        let length = Length {
            min: ask.min_tokens,
            max: ask
                .max_tokens
                .unwrap_or(u64::MAX)
                .min(context - prompt_tokens),
        };
        let mut planned = Planned::new(
            String::new(),
            self.profile.model.clone(),
            prompt_tokens,
            reply,
            length,
        );
        let memory = self.reserve(prompt_tokens, planned.tokens as u64)?;
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        planned.id = format!(
            "{}{:08x}{number:08x}",
            dialect.id_prefix(),
            self.seed & 0xffff_ffff
        );
        let mut chain = BlockChain::new(self.profile.timing.table().cache_block_tokens);
        let prompt_blocks = chain.extend_to(&text);
        render_message(&planned.as_message(), &mut text);
        chain.extend_to(&text);
        let (events, received) = unbounded_channel();
        let job = Job {
            request: number,
            arrived,
            prompt_tokens,
            chain: chain.into_hashes(),
            prompt_blocks,
            output_tokens: u32::try_from(planned.tokens).unwrap_or(u32::MAX),
            fault: self.faults.of(number),
            uncached: self.faults.uncached(number),
            streamed: ask.stream,
            memory: Some(memory),
            events,
        };
        // Counted here and not by the engine, so that two requests at once cannot both be under
        // the overload limit.
        self.counters.waiting.fetch_add(1, Ordering::Relaxed);
        if self.engine.send(Inbox::Job(Box::new(job))).is_err() {
            self.counters.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(AskError::Stopping);
        }
        Ok(Started {
            ask,
            planned,
            events: received,
        })
    }

    fn reserve(&self, prompt_tokens: u64, output_tokens: u64) -> Result<Reservation, AskError> {
        let reserved = self.memory.reserve(prompt_tokens, output_tokens);
        reserved.map_err(|shortage| {
            self.server_log.no_memory(prompt_tokens, shortage);
            let refusal = self.profile.timing.table().memory_refusal;
            AskError::Memory {
                prompt_tokens,
                needed_mb: shortage.needed >> 20,
                available_mb: shortage.available >> 20,
                unavailable: refusal == MemoryRefusal::Unavailable,
            }
        })
    }
}

pub(super) async fn read_body(request: Request<Incoming>) -> Result<Bytes, AskError> {
    let body = Limited::new(request.into_body(), BODY_LIMIT_BYTES)
        .collect()
        .await
        .map_err(|error| {
            if error.is::<http_body_util::LengthLimitError>() {
                AskError::BodyTooLarge {
                    limit_bytes: BODY_LIMIT_BYTES,
                }
            } else {
                AskError::NotJson(format!("the body ended early: {error}"))
            }
        })?;
    Ok(body.to_bytes())
}

pub(super) fn read_json(body: &[u8]) -> Result<Value, AskError> {
    serde_json::from_slice(body).map_err(|error| AskError::NotJson(error.to_string()))
}
