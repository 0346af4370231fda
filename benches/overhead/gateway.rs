//! What the gateway adds to the first byte of an answer: the same request to the same paced server,
//! direct and through the gateway by turns, so that the machine's noise falls on both alike.
//!
//! Server and client are plain threads with blocking sockets; only the gateway runs on a runtime.
//! The client keeps its connection, as agents do, and the nonce of a cold cache is on, as in `pair`.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use flashrig_clock::Origin;
use flashrig_gateway::{EventLoop, Limits, ListenConfig, Session};
use flashrig_http::{KeyStyle, Secret, Upstream};
use flashrig_record::Outcome;

use super::table::{Row, Unit, quantile};

const TIMES: usize = 500;
/// Bodies of an agent's first request and of a late one in a long session.
const BODIES: [(&str, usize); 2] = [("60 KB", 60_000), ("500 KB", 500_000)];
/// From the whole request to the first event; sleeping wakes the processor up as real waiting does.
const PACE: Duration = Duration::from_millis(2);
const TOKEN: &str = "bench";

pub fn measure() -> Vec<Row> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let server = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            thread::spawn(move || serve(stream));
        }
    });
    let event_loop = EventLoop::start().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let session = runtime
        .block_on(event_loop.run(Session::open(
            ListenConfig {
                label: "bench".to_owned(),
                token: Secret::new(TOKEN),
                upstream:
                    Upstream::new(&format!("http://{server}"), None, KeyStyle::ByDialect).unwrap(),
                limits: Limits::default(),
                gate: None,
                answer_probes: None,
                nonce: Some("session 0123456789abcdef".to_owned()),
                origin: Origin::now(),
            },
            |_| {},
        )))
        .unwrap();
    let mut rows = Vec::new();
    for (name, bytes) in BODIES {
        rows.extend(by_turns(name, bytes, server, session.addr()));
    }
    let attempts = runtime.block_on(session.close());
    assert!(
        attempts.iter().all(|a| a.outcome == Outcome::Complete),
        "a stream was lost"
    );
    rows
}

fn by_turns(name: &str, bytes: usize, server: SocketAddr, gateway: SocketAddr) -> [Row; 2] {
    let request = request(bytes);
    let (mut near, mut far) = (Client::connect(server), Client::connect(gateway));
    let (mut direct, mut through) = (Vec::new(), Vec::new());
    for n in 0..TIMES + 20 {
        let (d, t) = (near.first_byte(&request), far.first_byte(&request));
        // The first ones warm up.
        if n >= 20 {
            direct.push(d);
            through.push(t);
        }
    }
    let added: Vec<f64> = through.iter().zip(&direct).map(|(t, d)| t - d).collect();
    direct.sort_by(f64::total_cmp);
    through.sort_by(f64::total_cmp);
    let at = |share| (quantile(&direct, share), quantile(&through, share));
    let ((d50, t50), (d99, t99)) = (at(0.5), at(0.99));
    let mut note = String::new();
    let _ = write!(
        note,
        "median {d50:.2} → {t50:.2} ms (×{:.2}), p99 {d99:.2} → {t99:.2} ms (×{:.2}, {:+.2} ms)",
        t50 / d50,
        t99 / d99,
        t99 - d99
    );
    [
        Row::values(
            format!("gateway: added to the first byte, request of {name}"),
            Unit::Milliseconds,
            added,
            Some(1.0),
        )
        .with(note),
        Row::values("  the same, direct", Unit::Milliseconds, direct, None)
            .with(format!("the server waits {PACE:?} before its first byte")),
    ]
}

fn request(bytes: usize) -> Vec<u8> {
    // Code as it stands in JSON: an escape every few words.
    const LINE: &str = r#"    let name = format!(\"{}\", value);\n    if name.is_empty() {\n        return Err(Error::Empty);\n    }\n"#;
    let filler = LINE.repeat(bytes / LINE.len());
    let body = format!(
        r#"{{"model":"m","max_tokens":32000,"stream":true,"system":[{{"type":"text","text":"s"}}],"messages":[{{"role":"user","content":"{filler}"}}]}}"#
    );
    format!(
        "POST /v1/messages HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    /// Milliseconds from the start of the request to the first byte of the first event.
    fn first_byte(&mut self, request: &[u8]) -> f64 {
        self.buffer.clear();
        let start = Instant::now();
        self.stream.write_all(request).unwrap();
        self.read_until(b"event: message_start");
        let elapsed = start.elapsed();
        self.read_until(b"\r\n0\r\n\r\n");
        elapsed.as_secs_f64() * 1e3
    }

    fn read_until(&mut self, end: &[u8]) {
        let mut chunk = [0; 16 * 1024];
        while !contains(&self.buffer, end) {
            let n = self.stream.read(&mut chunk).unwrap();
            assert!(
                n > 0,
                "closed after {:?}",
                String::from_utf8_lossy(&self.buffer)
            );
            self.buffer.extend_from_slice(&chunk[..n]);
        }
    }
}

/// Answers every request of a connection: a head and an event after `PACE`, then the rest at once.
fn serve(mut stream: TcpStream) {
    const FIRST: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n";
    const REST: &str = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\nevent: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    stream.set_nodelay(true).unwrap();
    let mut chunk = vec![0; 64 * 1024];
    let mut buffer: Vec<u8> = Vec::new();
    loop {
        buffer.clear();
        let mut whole = None;
        while whole.is_none_or(|length| buffer.len() < length) {
            let Ok(n @ 1..) = stream.read(&mut chunk) else {
                return;
            };
            buffer.extend_from_slice(&chunk[..n]);
            if whole.is_none() {
                whole = length(&buffer);
            }
        }
        thread::sleep(PACE);
        let first = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{FIRST}\r\n",
            FIRST.len()
        );
        let rest = format!("{:x}\r\n{REST}\r\n0\r\n\r\n", REST.len());
        if stream.write_all(first.as_bytes()).is_err() || stream.write_all(rest.as_bytes()).is_err()
        {
            return;
        }
    }
}

/// The length of a request, head and body, once its head is there.
fn length(buffer: &[u8]) -> Option<usize> {
    let end = buffer.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&buffer[..end]).to_lowercase();
    let body: usize = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok())
        .unwrap_or(0);
    Some(end + body)
}

fn contains(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len()).any(|w| w == part)
}
