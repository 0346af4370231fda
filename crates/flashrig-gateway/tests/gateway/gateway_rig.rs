//! A gateway session before a scripted server, and clients for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use flashrig_clock::{Origin, Seconds, Stamp};
use flashrig_gateway::{
    Activity, Gate, GatewayEvent, GatewaySession, Limits, ListenConfig, Session,
};
use flashrig_http::{KeyStyle, Secret, Upstream as Target};
use flashrig_record::Attempt;

use crate::upstream::{Peer, Upstream, soon};

pub const TOKEN: &str = "session-token";
pub const KEY: &str = "server-key-1";

/// A session, its server, and what its listener heard.
pub struct Rig {
    pub server: Upstream,
    pub session: GatewaySession,
    pub origin: Origin,
    pub events: Arc<Mutex<Vec<GatewayEvent>>>,
}

/// What a test may set.
#[derive(Default)]
pub struct Setup {
    pub limits: Limits,
    pub nonce: Option<String>,
    pub gate: Option<Arc<Gate>>,
    /// The served model, when the gateway answers probes itself.
    pub answer_probes: Option<String>,
    /// In place of the scripted server's.
    pub url: Option<String>,
    /// The same with its door.
    pub target: Option<Target>,
    /// Where the gateway runs, in place of the test's own runtime.
    pub runtime: Option<tokio::runtime::Handle>,
}

impl Rig {
    pub async fn new() -> Self {
        Self::with(Setup::default()).await
    }

    pub async fn with(setup: Setup) -> Self {
        let server = Upstream::bind().await;
        let origin = Origin::now();
        let url = setup.url.unwrap_or_else(|| server.url());
        let upstream = setup.target.unwrap_or_else(|| {
            Target::new(&url, Some(Secret::new(KEY)), KeyStyle::ByDialect).unwrap()
        });
        let events = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::clone(&events);
        let config = ListenConfig {
            label: "test".to_owned(),
            token: Secret::new(TOKEN),
            upstream,
            limits: setup.limits,
            nonce: setup.nonce,
            gate: setup.gate,
            answer_probes: setup.answer_probes,
            origin: origin.clone(),
        };
        let runtime = setup
            .runtime
            .unwrap_or_else(tokio::runtime::Handle::current);
        // A test of bounded memory must not see what its own rig hoards.
        let hoarded = AtomicUsize::new(0);
        let opening = Session::open(config, move |event| {
            if let GatewayEvent::Answer { bytes, .. } = &event
                && hoarded.fetch_add(bytes.len(), Ordering::Relaxed) > 1 << 20
            {
                return;
            }
            received.lock().unwrap().push(event);
        });
        let session = runtime.spawn(opening).await.unwrap().unwrap();
        Self {
            server,
            session,
            origin,
            events,
        }
    }

    pub async fn client(&self) -> Peer {
        Peer::connect(self.session.addr()).await
    }

    /// A client that has sent this request.
    pub async fn post(&self, path: &str, body: impl AsRef<[u8]>) -> Peer {
        let mut client = self.client().await;
        client.send(post(path, body)).await;
        client
    }

    /// Waits until the session's activity is as wanted.
    pub async fn until(&self, wanted: impl FnMut(&Activity) -> bool) {
        let mut watch = self.session.watch();
        soon(watch.wait_for(wanted)).await.unwrap();
    }

    /// Waits until nothing is in flight and `attempts` have been seen, then closes.
    pub async fn rows(self, attempts: u32) -> Vec<Attempt> {
        self.until(|activity| activity.attempts == attempts && activity.in_flight == 0)
            .await;
        soon(self.session.close()).await
    }

    /// The only row.
    pub async fn row(self) -> Attempt {
        let mut rows = self.rows(1).await;
        assert_eq!(rows.len(), 1);
        rows.remove(0)
    }

    /// Now, as rows store it.
    pub fn now(&self) -> Seconds {
        self.origin.at(Stamp::now())
    }
}

/// An authorised POST request.
pub fn post(path: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

pub const CHAT: &str = "/v1/chat/completions";
pub const MESSAGES: &str = "/v1/messages?beta=true";
pub const RESPONSES: &str = "/v1/responses";

/// A streaming chat request with a tool.
pub const CHAT_BODY: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"ls"}}],"max_tokens":32000}"#;

/// A streaming Anthropic request with a tool.
pub const MESSAGES_BODY: &str = r#"{"model":"m","stream":true,"system":[{"type":"text","text":"be good"}],"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"ls","input_schema":{}}],"max_tokens":32000}"#;

/// An event with a chat delta.
pub fn delta(delta: &str) -> String {
    format!(
        "data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}]}}\n\n"
    )
}

/// An event with a name.
pub fn event(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// The end of a chat stream.
pub const STOP: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// Runs one chat exchange whose stream the test writes chunk by chunk, ended in good order.
pub async fn chat_stream(chunks: &[&str]) -> (Vec<u8>, bool, Attempt) {
    stream(CHAT, CHAT_BODY, chunks).await
}

/// The same for any route.
pub async fn stream(path: &str, body: &str, chunks: &[&str]) -> (Vec<u8>, bool, Attempt) {
    let rig = Rig::new().await;
    let mut client = rig.post(path, body).await;
    let (mut server, _) = rig.server.request().await;
    server.start_stream().await;
    for chunk in chunks {
        server.send_chunk(chunk).await;
    }
    server.end_stream().await;
    let response = client.response().await;
    (response.body, response.whole, rig.row().await)
}
