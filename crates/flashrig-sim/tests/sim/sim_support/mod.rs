//! What the tests of the simulated server share: a server to start, and a client that takes
//! nothing for granted.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what cannot be had fails the test"
)]

pub mod agent;
pub mod profiles;

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use flashrig_sim::truth::Truth;
use flashrig_sim::{Faults, Script, Sim, SimConfig, SimHandle, SimProfile, SimTable};
use flashrig_sim::{Step, Walkthrough};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

pub const MODEL: &str = "flashrig-sim";

/// The `[sim]` table of the built-in profile.
pub fn built_in_table() -> SimTable {
    let profile: toml::Table =
        toml::from_str(include_str!("../../../../../harness/servers/sim.toml")).unwrap();
    profile["sim"].clone().try_into().unwrap()
}

/// A configuration that answers fast.
pub fn config(scripts: Vec<Script>) -> SimConfig {
    let profile = SimProfile::new("sim", MODEL, 131_072, &built_in_table()).unwrap();
    SimConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        profile,
        speed: 1000.0,
        scripts,
        seed: 7,
        log: None,
        server_log: None,
        faults: Faults::default(),
    }
}

pub fn start(scripts: Vec<Script>) -> SimHandle {
    Sim::start(config(scripts)).unwrap()
}

pub fn script(name: &str, prompt: &str, steps: Vec<Step>) -> Script {
    let walkthrough = Walkthrough {
        schema: "flashrig.walkthrough/1".into(),
        steps,
    };
    Script {
        name: name.into(),
        prompt: prompt.into(),
        walkthrough,
    }
}

/// A script that answers with a text of this many tokens.
pub fn talker(prompt: &str, tokens: usize) -> Script {
    script(
        "talk",
        prompt,
        vec![Step::Say {
            text: "abcd".repeat(tokens),
        }],
    )
}

/// A tool, since only requests that offer tools play a script.
pub fn openai_tools() -> Value {
    json!([{"type": "function", "function": {"name": "bash", "description": "run", "parameters": {
        "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}}])
}

pub fn anthropic_tools() -> Value {
    json!([{"name": "Bash", "description": "run", "input_schema": {
        "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}])
}

pub fn chat(user: &str, stream: bool) -> Value {
    json!({"model": MODEL, "stream": stream, "stream_options": {"include_usage": true}, "tools": openai_tools(),
           "messages": [{"role": "system", "content": "You help."}, {"role": "user", "content": user}]})
}

pub fn messages(user: &str, stream: bool) -> Value {
    json!({"model": MODEL, "stream": stream, "max_tokens": 32000, "tools": anthropic_tools(),
           "system": [{"type": "text", "text": "You help."}],
           "messages": [{"role": "user", "content": [{"type": "text", "text": user}]}]})
}

/// Sends a request on a connection of its own and returns the response with its open body.
pub async fn send(
    sim: &SimHandle,
    method: Method,
    path: &str,
    body: impl Into<Bytes>,
) -> Response<Incoming> {
    let stream = tokio::net::TcpStream::connect(sim.addr()).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    // The connection ends when the body is dropped; a client that leaves is tested so.
    tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", sim.addr().to_string())
        .header("authorization", "Bearer any")
        .header("content-type", "application/json")
        .body(Full::new(body.into()))
        .unwrap();
    sender.send_request(request).await.unwrap()
}

/// Posts on a connection that is there, and reads the whole answer.
pub async fn post_on(stream: tokio::net::TcpStream, path: &str, body: &Value) -> StatusCode {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header("host", "127.0.0.1")
        .body(Full::new(Bytes::from(body.to_string())))
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    let status = response.status();
    response.into_body().collect().await.unwrap();
    status
}

pub async fn post(sim: &SimHandle, path: &str, body: &Value) -> (StatusCode, String) {
    let response = send(sim, Method::POST, path, body.to_string()).await;
    let status = response.status();
    (
        status,
        String::from_utf8(
            response
                .into_body()
                .collect()
                .await
                .unwrap()
                .to_bytes()
                .to_vec(),
        )
        .unwrap(),
    )
}

pub async fn post_json(sim: &SimHandle, path: &str, body: &Value) -> (StatusCode, Value) {
    let (status, text) = post(sim, path, body).await;
    (status, serde_json::from_str(&text).unwrap())
}

pub async fn get(sim: &SimHandle, path: &str) -> (StatusCode, String) {
    let response = send(sim, Method::GET, path, "").await;
    let status = response.status();
    (
        status,
        String::from_utf8(
            response
                .into_body()
                .collect()
                .await
                .unwrap()
                .to_bytes()
                .to_vec(),
        )
        .unwrap(),
    )
}

/// One server-sent event.
#[derive(Debug)]
pub struct SseEvent {
    pub name: Option<String>,
    pub data: String,
}

impl SseEvent {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

pub fn events(body: &str) -> Vec<SseEvent> {
    let frames = body
        .split("\n\n")
        .filter(|frame| !frame.is_empty() && !frame.starts_with(':'));
    frames
        .map(|frame| {
            let field = |name: &str| {
                frame
                    .lines()
                    .find_map(|line| line.strip_prefix(name))
                    .map(str::to_owned)
            };
            SseEvent {
                name: field("event: "),
                data: field("data: ").unwrap(),
            }
        })
        .collect()
}

pub fn truth(log: &Path) -> Vec<Truth> {
    let text = std::fs::read_to_string(log).unwrap();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Waits until the log satisfies `found`.
pub async fn wait_for<T>(log: &Path, found: impl Fn(&[Truth]) -> Option<T>) -> T {
    let patience = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(value) = found(&truth(log)) {
            return value;
        }
        assert!(
            tokio::time::Instant::now() < patience,
            "the log never showed it: {:?}",
            truth(log)
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
