//! Routes: which path is answered by what. The only file that knows both dialects.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::ask::{Ask, AskError, render_message};
use super::brain::Brain;
use super::counters::Counters;
use super::engine::{Event, Job};
use super::faults::Faults;
use super::profile::SimProfile;
use super::reply::Planned;
use super::stream::{Broken, Dialect, SseBody};
use super::{anthropic, openai, tokens};
use crate::clock::Stamp;

/// Any response body.
pub type Body = UnsyncBoxBody<Bytes, Broken>;

/// Largest request body that is read.
const BODY_LIMIT_BYTES: usize = 64 << 20;

/// Everything a connection needs to answer.
pub struct Service {
    profile: SimProfile,
    brain: Brain,
    faults: Faults,
    seed: u64,
    requests: AtomicU64,
    jobs: UnboundedSender<Job>,
    counters: Arc<Counters>,
}

impl Service {
    /// Puts the parts together.
    pub fn new(
        profile: SimProfile,
        brain: Brain,
        faults: Faults,
        seed: u64,
        jobs: UnboundedSender<Job>,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            profile,
            brain,
            faults,
            seed,
            requests: AtomicU64::new(0),
            jobs,
            counters,
        }
    }

    /// Answers one request; every failure is an answer too.
    pub async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
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
            "/metrics" if reads => text_response(self.metrics()),
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

    async fn generate(&self, request: Request<Incoming>, dialect: Dialect) -> Response<Body> {
        match self.start(request, dialect).await {
            Ok((ask, planned, events)) if ask.stream => {
                let body = SseBody::new(dialect, planned, ask.include_usage, events);
                response(StatusCode::OK, "text/event-stream", body.boxed_unsync())
            }
            Ok((_, planned, events)) => self.whole(dialect, &planned, events).await,
            Err(error) => dialect.error(&error),
        }
    }

    /// Everything up to the moment at which the request stands in line.
    async fn start(
        &self,
        request: Request<Incoming>,
        dialect: Dialect,
    ) -> Result<(Ask, Planned, UnboundedReceiver<Event>), AskError> {
        let body = read_json(request).await?;
        let arrived = Stamp::now();
        let ask = dialect.parse(&body)?;
        self.check_model(&ask)?;
        let canonical = ask.canonical();
        let prompt_tokens = tokens::count(&canonical);
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
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let reply = self.brain.answer(&ask, dialect.call_prefix());
        let limit = ask
            .max_tokens
            .unwrap_or(u64::MAX)
            .min(context - prompt_tokens);
        let id = format!(
            "{}{:08x}{number:08x}",
            dialect.id_prefix(),
            self.seed & 0xffff_ffff
        );
        let planned = Planned::new(id, self.profile.model.clone(), prompt_tokens, &reply, limit);

        let block = self.profile.timing.table().cache_block_tokens;
        let prompt_chain = tokens::block_chain(&canonical, block);
        let mut whole = canonical;
        render_message(&reply.as_message(), &mut whole);
        let (events, heard) = unbounded_channel();
        let job = Job {
            request: number,
            arrived,
            prompt_tokens,
            prompt_chain,
            whole_chain: tokens::block_chain(&whole, block),
            output_tokens: u32::try_from(planned.pieces.len()).unwrap_or(u32::MAX),
            fault: self.faults.of(number),
            events,
        };
        // Counted here and not by the engine, so that two requests at once cannot both be under
        // the overload limit.
        self.counters.waiting.fetch_add(1, Ordering::Relaxed);
        if self.jobs.send(job).is_err() {
            self.counters.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(AskError::Stopping);
        }
        Ok((ask, planned, heard))
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
            let ask = anthropic::parse(&read_json(request).await?, false)?;
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
            "profile": self.profile.name, "simulated": true,
        })
    }

    /// Prometheus text under the names that vLLM gave them and others took over.
    fn metrics(&self) -> String {
        let counters = &self.counters;
        let model = &self.profile.model;
        let mut out = String::new();
        for (name, kind, help, value) in [
            (
                "num_requests_running",
                "gauge",
                "Requests that hold a slot.",
                &counters.running,
            ),
            (
                "num_requests_waiting",
                "gauge",
                "Requests in line.",
                &counters.waiting,
            ),
            (
                "prompt_tokens_total",
                "counter",
                "Prompt tokens, cached ones included.",
                &counters.prompt_tokens,
            ),
            (
                "generation_tokens_total",
                "counter",
                "Generated tokens.",
                &counters.generation_tokens,
            ),
            (
                "prefix_cache_queries_total",
                "counter",
                "Prompt tokens looked up.",
                &counters.cache_queries,
            ),
            (
                "prefix_cache_hits_total",
                "counter",
                "Prompt tokens found in the cache.",
                &counters.cache_hits,
            ),
        ] {
            let value = value.load(Ordering::Relaxed);
            // Writing to a String cannot fail.
            let _ = writeln!(out, "# HELP vllm:{name} {help}\n# TYPE vllm:{name} {kind}");
            let _ = writeln!(out, "vllm:{name}{{model_name=\"{model}\"}} {value}");
        }
        out
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

async fn read_json(request: Request<Incoming>) -> Result<Value, AskError> {
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
    serde_json::from_slice(&body.to_bytes()).map_err(|error| AskError::NotJson(error.to_string()))
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
