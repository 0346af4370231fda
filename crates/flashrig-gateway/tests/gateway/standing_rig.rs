//! A standing gateway before a scripted server, and clients for it.

use std::sync::Arc;

use flashrig_clock::Origin;
use flashrig_gateway::standing::{FinishedRequest, StandingStats};
use flashrig_gateway::{ClientName, Gate, Limits, Standing, StandingConfig};
use flashrig_http::{KeyStyle, Secret, Upstream as Target};
use tokio::sync::mpsc;

use crate::prometheus::Metrics;
use crate::upstream::{self, Peer, RawResponse, Upstream, soon};

pub const CHAT: &str = "/v1/chat/completions";
pub const CHAT_BODY: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"ls"}}]}"#;
pub const TOKEN_EVENT: &str =
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n";
pub const END: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":3,\"prompt_tokens_details\":{\"cached_tokens\":80}}}\n\ndata: [DONE]\n\n";

pub struct Rig {
    pub server: Upstream,
    pub standing: Standing,
    pub stats: Arc<StandingStats>,
    pub finished: mpsc::Receiver<FinishedRequest>,
}

impl Rig {
    pub async fn new(tokens: &[(&str, &str)]) -> Self {
        Self::gated(tokens, None).await
    }

    pub async fn gated(tokens: &[(&str, &str)], gate: Option<Arc<Gate>>) -> Self {
        Self::with(tokens, gate, Limits::standing()).await
    }

    pub async fn limited(tokens: &[(&str, &str)], limits: Limits) -> Self {
        Self::with(tokens, None, limits).await
    }

    async fn with(tokens: &[(&str, &str)], gate: Option<Arc<Gate>>, limits: Limits) -> Self {
        let server = Upstream::bind().await;
        let key = Some(Secret::new("server-key"));
        let (stats, finished) = StandingStats::new(None);
        let config = StandingConfig {
            listen: "127.0.0.1:0".parse().unwrap(),
            tokens: tokens
                .iter()
                .map(|(name, token)| (ClientName::new(name).unwrap(), Secret::new(*token)))
                .collect(),
            upstream: Target::new(&server.url(), key, KeyStyle::ByDialect).unwrap(),
            limits,
            gate,
            answer_probes: None,
            origin: Origin::now(),
        };
        let standing = Standing::open(config, stats.clone()).await.unwrap();
        Self {
            server,
            standing,
            stats,
            finished,
        }
    }

    pub async fn client(&self) -> Peer {
        Peer::connect(self.standing.addr()).await
    }

    /// A client that has sent a chat request.
    pub async fn post(&self, path: &str, token: Option<&str>) -> Peer {
        let mut client = self.client().await;
        client.send(request("POST", path, token, CHAT_BODY)).await;
        client
    }

    pub async fn get(&self, path: &str, token: Option<&str>) -> RawResponse {
        let mut client = self.client().await;
        client.send(request("GET", path, token, "")).await;
        client.response().await
    }

    pub async fn metrics(&self) -> Metrics {
        let page = self.get("/metrics", None).await;
        assert_eq!(page.status, 200);
        let kind = upstream::header(&page.head, "content-type").unwrap();
        assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
        Metrics::read(&String::from_utf8(page.body).unwrap())
    }

    pub async fn finished(&mut self) -> FinishedRequest {
        soon(self.finished.recv()).await.unwrap()
    }
}

pub fn request(method: &str, path: &str, token: Option<&str>, body: &str) -> String {
    let token = token.map_or_else(String::new, |t| format!("Authorization: Bearer {t}\r\n"));
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{token}Content-Length: {length}\r\n\r\n{body}"
    )
}
