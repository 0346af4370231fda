//! A server that counts tokens in its own way, remembers what it was told, and answers questions
//! about facts: well, or with a fault.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// How it counts.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    /// Words, marks and digits are a token each, as common models have it.
    Words,
    /// Every three bytes are a token.
    Bytes,
}

/// How it behaves.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    pub count: Count,
    /// Whether it knows `ignore_eos` and `min_tokens`; `None`: it refuses them.
    pub fixes_length: Option<bool>,
    /// Which question of a session it answers wrongly.
    pub forgets: Option<usize>,
    /// Answers with the code that the first session was told.
    pub confuses_sessions: bool,
    pub usage: bool,
    /// What its route for counting says beyond what its usage says; `None`: it has no such route.
    pub route_counts_more: Option<u64>,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            count: Count::Words,
            fixes_length: Some(true),
            forgets: None,
            confuses_sessions: false,
            usage: true,
            route_counts_more: None,
        }
    }
}

/// The server; it serves until the test's runtime ends.
#[derive(Clone)]
pub struct Counting {
    pub url: String,
    manner: Manner,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
pub struct Seen {
    /// Bodies, in order of arrival.
    pub bodies: Vec<Value>,
    pub connections: usize,
    /// Prompts that were only counted.
    pub counted: usize,
    /// The first prompt that held facts.
    first_facts: Option<String>,
}

impl Counting {
    pub async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            manner,
            seen: Arc::default(),
        };
        let serving = server.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                serving.seen.lock().unwrap().connections += 1;
                let serving = serving.clone();
                let service = service_fn(move |request| {
                    let serving = serving.clone();
                    async move { Ok::<_, Infallible>(serving.answer(request).await) }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        server
    }

    pub fn bodies(&self) -> Vec<Value> {
        self.seen.lock().unwrap().bodies.clone()
    }

    pub fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }

    pub fn counted(&self) -> usize {
        self.seen.lock().unwrap().counted
    }

    /// Tokens of a whole conversation: a few for each message, and the text's.
    pub fn tokens(&self, body: &Value) -> u64 {
        let messages = body["messages"].as_array().unwrap();
        let texts = messages.iter().map(|m| m["content"].as_str().unwrap());
        let of_text = |text: &str| match self.manner.count {
            Count::Bytes => text.len().div_ceil(3) as u64,
            Count::Words => words(text),
        };
        9 + texts.map(|text| 5 + of_text(text)).sum::<u64>()
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let is_chat = request.uri().path() == "/v1/chat/completions";
        let counts = request.uri().path() == "/v1/messages/count_tokens";
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
        if counts {
            return match self.manner.route_counts_more {
                None => response(404, "application/json", "{}".to_owned()),
                Some(more) => {
                    self.seen.lock().unwrap().counted += 1;
                    let tokens = json!({"input_tokens": self.tokens(&body) + more});
                    response(200, "application/json", tokens.to_string())
                }
            };
        }
        self.seen.lock().unwrap().bodies.push(body.clone());
        if self.manner.fixes_length.is_none() && body.get("ignore_eos").is_some() {
            let words = json!({"error": {"message": "Unrecognized request argument: ignore_eos",
                "type": "invalid_request_error", "param": null}});
            return response(400, "application/json", words.to_string());
        }
        let prompt = self.tokens(&body);
        let said = self.said(&body);
        let max = body["max_tokens"].as_u64().unwrap();
        let fixed = self.manner.fixes_length == Some(true) && body.get("ignore_eos").is_some();
        let mut pieces = vec![said];
        if fixed {
            pieces.resize(max as usize, " and".to_owned());
        }
        pieces.truncate(max as usize);
        let usage = json!({"prompt_tokens": prompt, "completion_tokens": pieces.len()});
        let mut out = String::new();
        let mut event = |name: &str, data: &Value| {
            if !is_chat {
                out.push_str(&format!("event: {name}\n"));
            }
            out.push_str(&format!("data: {data}\n\n"));
        };
        if is_chat {
            for piece in &pieces {
                event(
                    "",
                    &json!({"choices": [{"index": 0, "delta": {"content": piece}}]}),
                );
            }
            event(
                "",
                &json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
            );
            if self.manner.usage {
                event("", &json!({"choices": [], "usage": usage}));
            }
            out.push_str("data: [DONE]\n\n");
        } else {
            let message = json!({"id": "m", "usage": {"input_tokens": prompt, "output_tokens": 1}});
            event(
                "message_start",
                &json!({"type": "message_start", "message": message}),
            );
            for piece in &pieces {
                let delta = json!({"type": "text_delta", "text": piece});
                event(
                    "content_block_delta",
                    &json!({"type": "content_block_delta", "index": 0, "delta": delta}),
                );
            }
            event(
                "message_delta",
                &json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
                    "usage": {"output_tokens": pieces.len()}}),
            );
            event("message_stop", &json!({"type": "message_stop"}));
        }
        response(200, "text/event-stream", out)
    }

    /// What it answers: the code asked for, or a word.
    fn said(&self, body: &Value) -> String {
        let messages = body["messages"].as_array().unwrap();
        let text = |n: usize| messages[n]["content"].as_str().unwrap();
        let question = text(messages.len() - 1);
        let Some((_, asked)) = question.split_once("What is the code of fact ") else {
            return "ready".to_owned();
        };
        let key = &asked[..5];
        let mut seen = self.seen.lock().unwrap();
        if seen.first_facts.is_none() && text(0).contains("the code is") {
            seen.first_facts = Some(text(0).to_owned());
        }
        let reported = match &seen.first_facts {
            Some(first) if self.manner.confuses_sessions => first.as_str(),
            _ => text(0),
        };
        if self.manner.forgets == Some(messages.len() / 2) {
            return "I do not know".to_owned();
        }
        reported
            .split_once(&format!("Fact {key}: the code is "))
            .map_or("no such fact", |(_, rest)| &rest[..8])
            .to_owned()
    }
}

/// Words by spaces, marks, line ends, and every digit.
fn words(text: &str) -> u64 {
    let mut count = 0;
    let mut in_word = false;
    for byte in text.bytes() {
        let letter = byte.is_ascii_alphabetic();
        count += u64::from(letter && !in_word);
        count += u64::from(!letter && byte != b' ');
        in_word = letter;
    }
    count
}

pub fn response(status: u16, content_type: &str, body: String) -> Response<Full<Bytes>> {
    Response::builder()
        .status(status)
        .header("content-type", content_type)
        .body(Full::new(body.into()))
        .unwrap()
}
