//! Routes: which path is answered by what. The only file that knows both dialects.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::ask::{Ask, AskError};
use super::engine::Event;
use super::intake::{Started, read_body, read_json};
use super::reply::Planned;
use super::service::{Body, Service};
use super::stream::{Dialect, SseBody};
use super::{anthropic, metrics, openai, tokens};

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

    pub(super) fn check_model(&self, ask: &Ask) -> Result<(), AskError> {
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
    pub(super) fn parse(self, body: &Value) -> Result<Ask, AskError> {
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

    pub(super) fn call_prefix(self) -> &'static str {
        match self {
            Self::OpenAi => "call_",
            Self::Anthropic => "toolu_",
        }
    }

    pub(super) fn id_prefix(self) -> &'static str {
        match self {
            Self::OpenAi => "chatcmpl-",
            Self::Anthropic => "msg_",
        }
    }
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
