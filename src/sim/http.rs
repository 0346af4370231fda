//! Routes: which path is answered by what. The only file that knows both dialects.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::ask::{Ask, AskError, render_message};
use super::brain::Brain;
use super::counters::Counters;
use super::engine::{Event, Incoming as Inbox, Job, Refusal};
use super::faults::Faults;
use super::memory::Memory;
use super::profile::{MemoryRefusal, SimProfile};
use super::reply::{Length, Planned};
use super::server_log::ServerLog;
use super::stream::{Broken, Dialect, SseBody};
use super::tokens::{self, BlockChain};
use super::{anthropic, metrics, openai, shapes};
use crate::clock::Stamp;

/// Any response body.
pub type Body = UnsyncBoxBody<Bytes, Broken>;

/// Largest request body that is read.
const BODY_LIMIT_BYTES: usize = 64 << 20;

/// Bodies above this are looked at on another thread, so that the tokens of others are not held
/// up by them.
const LONG_BODY_BYTES: usize = 64 << 10;

/// Everything a connection needs to answer.
pub struct Service {
    /// What the server is.
    pub profile: SimProfile,
    /// All durations are divided by this.
    pub speed: f64,
    /// Decides what is answered.
    pub brain: Brain,
    /// What goes wrong on purpose.
    pub faults: Faults,
    /// Part of response ids.
    pub seed: u64,
    /// Counts generation requests.
    pub requests: AtomicU64,
    /// To the engine.
    pub engine: std::sync::mpsc::Sender<Inbox>,
    /// What `/metrics` tells.
    pub counters: Arc<Counters>,
    /// Memory in use.
    pub memory: Arc<Memory>,
    /// What a real server would log.
    pub server_log: ServerLog,
}

/// A request that stands in line.
struct Started {
    ask: Ask,
    planned: Planned,
    events: UnboundedReceiver<Event>,
}

impl Service {
    /// Answers one request; every failure is an answer too.
    pub async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        let path = request.uri().path().to_owned();
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        Ok(match path.as_str() {
            "/v1/chat/completions" if request.method() == Method::POST => {
                self.generate(request, Dialect::OpenAi).await
            }
            "/v1/messages" if request.method() == Method::POST => {
                self.generate(request, Dialect::Anthropic).await
            }
            "/v1/messages/count_tokens" if request.method() == Method::POST => {
                self.count_tokens(request).await
            }
            "/v1/models" if reads => json_response(StatusCode::OK, &self.models()),
            "/health" if reads => json_response(StatusCode::OK, &json!({"status": "ok"})),
            "/version" if reads => json_response(StatusCode::OK, &self.version()),
            "/metrics" if reads => text_response(metrics::text(
                &self.profile.model,
                &self.counters,
                &self.memory,
            )),
            _ => match path.strip_prefix("/v1/models/") {
                Some(name) if reads && name == self.profile.model => {
                    json_response(StatusCode::OK, &self.model())
                }
                Some(name) if reads => {
                    let served = self.profile.model.clone();
                    Dialect::OpenAi.error(&AskError::UnknownModel {
                        asked: name.to_owned(),
                        served,
                    })
                }
                _ => not_found(request.method(), &path),
            },
        })
    }

    async fn generate(
        self: &Arc<Self>,
        request: Request<Incoming>,
        dialect: Dialect,
    ) -> Response<Body> {
        match self.receive(request, dialect).await {
            Ok(Started {
                ask,
                planned,
                events,
            }) if ask.stream => {
                let body = SseBody::new(dialect, planned, ask.include_usage, self.speed, events);
                response(StatusCode::OK, "text/event-stream", body.boxed_unsync())
            }
            Ok(started) => self.whole(dialect, &started.planned, started.events).await,
            Err(error) => dialect.error(&error),
        }
    }

    /// Reads a request's body and puts it in line.
    async fn receive(
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
        let (events, heard) = unbounded_channel();
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
            _memory: memory,
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
            events: heard,
        })
    }

    fn reserve(
        &self,
        prompt_tokens: u64,
        output_tokens: u64,
    ) -> Result<super::memory::Reservation, AskError> {
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

    fn check_model(&self, ask: &Ask) -> Result<(), AskError> {
        let served = &self.profile.model;
        if ask.model == *served {
            return Ok(());
        }
        Err(AskError::UnknownModel {
            asked: ask.model.clone(),
            served: served.clone(),
        })
    }

    /// A whole answer at once.
    async fn whole(
        &self,
        dialect: Dialect,
        planned: &Planned,
        mut events: UnboundedReceiver<Event>,
    ) -> Response<Body> {
        let mut cached = 0;
        while let Some(event) = events.recv().await {
            match event {
                Event::Admitted { cached_tokens } => cached = cached_tokens,
                Event::Token => {}
                Event::Finished => {
                    return json_response(StatusCode::OK, &dialect.whole(planned, cached));
                }
                Event::Broken(_) => break,
            }
        }
        let body = dialect.error_body(
            "api_error",
            "the simulated server broke off this answer, as configured",
        );
        json_response(StatusCode::INTERNAL_SERVER_ERROR, &body)
    }

    async fn count_tokens(&self, request: Request<Incoming>) -> Response<Body> {
        let counted = async {
            let ask = anthropic::parse(&read_json(&read_body(request).await?)?, false)?;
            self.check_model(&ask)?;
            Ok(tokens::count(&ask.canonical()))
        };
        match counted.await {
            Ok(tokens) => json_response(StatusCode::OK, &json!({"input_tokens": tokens})),
            Err(error) => Dialect::Anthropic.error(&error),
        }
    }

    fn model(&self) -> Value {
        json!({
            "id": self.profile.model, "object": "model", "type": "model", "created": 0,
            "display_name": self.profile.model, "owned_by": "flashrig", "max_model_len": self.profile.context,
        })
    }

    fn models(&self) -> Value {
        let id = &self.profile.model;
        json!({"object": "list", "data": [self.model()], "has_more": false, "first_id": id, "last_id": id})
    }

    fn version(&self) -> Value {
        json!({
            "name": "flashrig-sim", "version": env!("CARGO_PKG_VERSION"),
            "profile": self.profile.name, "simulated": true, "speed": self.speed,
        })
    }
}

impl Dialect {
    fn parse(self, body: &Value) -> Result<Ask, AskError> {
        match self {
            Self::OpenAi => openai::parse(body),
            Self::Anthropic => anthropic::parse(body, true),
        }
    }

    fn whole(self, planned: &Planned, cached: u64) -> Value {
        match self {
            Self::OpenAi => openai::whole(planned, cached),
            Self::Anthropic => anthropic::whole(planned, cached),
        }
    }

    fn error(self, error: &AskError) -> Response<Body> {
        let (status, body) = match self {
            Self::OpenAi => openai::error(error),
            Self::Anthropic => anthropic::error(error),
        };
        json_response(
            StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            &body,
        )
    }

    fn error_body(self, kind: &str, message: &str) -> Value {
        match self {
            Self::OpenAi => openai::error_body(kind, message, None, None),
            Self::Anthropic => anthropic::error_body(kind, message),
        }
    }

    fn call_prefix(self) -> &'static str {
        match self {
            Self::OpenAi => "call_",
            Self::Anthropic => "toolu_",
        }
    }

    fn id_prefix(self) -> &'static str {
        match self {
            Self::OpenAi => "chatcmpl-",
            Self::Anthropic => "msg_",
        }
    }
}

async fn read_body(request: Request<Incoming>) -> Result<Bytes, AskError> {
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

fn read_json(body: &[u8]) -> Result<Value, AskError> {
    serde_json::from_slice(body).map_err(|error| AskError::NotJson(error.to_string()))
}

/// Unknown routes belong to no dialect; the body can be read as either.
fn not_found(method: &Method, path: &str) -> Response<Body> {
    let message = format!("this server has no {method} {path}");
    let mut body = openai::error_body("not_found_error", &message, None, None);
    body["type"] = json!("error");
    json_response(StatusCode::NOT_FOUND, &body)
}

fn json_response(status: StatusCode, body: &Value) -> Response<Body> {
    response(status, "application/json", full(body.to_string()))
}

fn text_response(text: String) -> Response<Body> {
    response(StatusCode::OK, "text/plain; version=0.0.4", full(text))
}

fn full(text: String) -> Body {
    Full::new(Bytes::from(text))
        .map_err(|never| match never {})
        .boxed_unsync()
}

fn response(status: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        hyper::header::CONTENT_TYPE,
        hyper::header::HeaderValue::from_static(content_type),
    );
    headers.insert(
        hyper::header::CACHE_CONTROL,
        hyper::header::HeaderValue::from_static("no-store"),
    );
    response
}
