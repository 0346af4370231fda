//! The clients: one thread reads all streams, stamps every read, and compares with the stamps inside.

use std::net::SocketAddr;
use std::time::Duration;

use flashrig_clock::Stamp;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

pub const TOKEN: &str = "bench";

/// What is asked of the server.
#[derive(Clone, Copy)]
pub struct Load {
    pub streams: u32,
    pub interval: Duration,
    /// Events of one stream.
    pub events: u32,
    /// How long each client asks for one stream after the other; zero: one only.
    pub lasting: Duration,
    /// The clients begin one after the other over this time.
    pub ramp: Duration,
    /// Of every four clients, one sends a request as long as an agent's.
    pub with_long_requests: bool,
}

/// A stream as its client saw it; instants are nanoseconds of the clock that all processes share.
#[derive(Default)]
pub struct Seen {
    pub name: String,
    pub long_request: bool,
    pub asked: u64,
    pub first_byte: u64,
    /// When the server had read the request.
    pub read: u64,
    /// When each event was sent, by the server's own stamp, and when it was read here.
    pub events: Vec<(u64, u64)>,
    pub whole: bool,
}

/// Runs `load` against `to` and gives back every stream, also those that were lost.
pub async fn run(to: SocketAddr, load: Load) -> Vec<Seen> {
    let mut clients = JoinSet::new();
    for n in 0..load.streams {
        clients.spawn(client(to, load, n));
    }
    let mut seen = Vec::new();
    while let Some(streams) = clients.join_next().await {
        seen.extend(streams.unwrap());
    }
    seen
}

async fn client(to: SocketAddr, load: Load, n: u32) -> Vec<Seen> {
    let start = Instant::now();
    tokio::time::sleep(load.ramp * n / load.streams).await;
    let mut seen = Vec::new();
    let mut connection: Option<TcpStream> = None;
    loop {
        let mut stream = Seen {
            name: format!("s{n}-{}", seen.len()),
            long_request: load.with_long_requests && n.is_multiple_of(4),
            ..Seen::default()
        };
        let patience = load.interval * load.events * 2 + Duration::from_secs(10);
        let asking = ask(&mut connection, to, load, &mut stream);
        if !matches!(tokio::time::timeout(patience, asking).await, Ok(Some(()))) {
            connection = None;
        }
        seen.push(stream);
        if start.elapsed() >= load.lasting {
            return seen;
        }
    }
}

/// Asks for one stream and reads it to its end; `None` when it broke off.
async fn ask(
    connection: &mut Option<TcpStream>,
    to: SocketAddr,
    load: Load,
    seen: &mut Seen,
) -> Option<()> {
    let request = request(load, seen);
    if connection.is_none() {
        let stream = TcpStream::connect(to).await.ok()?;
        stream.set_nodelay(true).ok()?;
        *connection = Some(stream);
    }
    let stream = connection.as_mut()?;
    seen.asked = Stamp::now().0;
    tokio::io::AsyncWriteExt::write_all(stream, &request)
        .await
        .ok()?;
    let mut answer = Answer::default();
    let mut buffer = [0; 8 * 1024];
    loop {
        stream.readable().await.ok()?;
        let n = match stream.try_read(&mut buffer) {
            Ok(0) => return None,
            Ok(n) => n,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(_) => return None,
        };
        let at = Stamp::now().0;
        if seen.first_byte == 0 {
            seen.first_byte = at;
        }
        let over = answer.take(&buffer[..n], |sent, read| {
            seen.read = read;
            seen.events.push((sent, at));
        })?;
        if over {
            seen.whole = seen.events.len() == load.events as usize
                && seen.events.is_sorted_by_key(|&(sent, _)| sent);
            return Some(());
        }
    }
}

fn request(load: Load, seen: &Seen) -> Vec<u8> {
    // Code as it stands in JSON.
    const LINE: &str = r#"    let name = format!(\"{}\", value);\n    if name.is_empty() {\n        return Err(Error::Empty);\n    }\n"#;
    let filler = LINE.repeat(if seen.long_request { 60_000 } else { 2_000 } / LINE.len());
    let body = format!(
        r#"{{"model":"{}","max_tokens":32000,"stream":true,"system":"s","messages":[{{"role":"user","content":"{filler}"}}]}}"#,
        seen.name
    );
    format!(
        "POST /v1/messages?events={}&interval_us={} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        load.events,
        load.interval.as_micros(),
        body.len()
    )
    .into_bytes()
}

/// A chunked answer, read as it comes.
#[derive(Default)]
struct Answer {
    raw: Vec<u8>,
    head_over: bool,
    body: Vec<u8>,
}

impl Answer {
    /// Hands out the stamps in `bytes` and says whether the answer is over; `None` when it is none.
    fn take(&mut self, bytes: &[u8], mut event: impl FnMut(u64, u64)) -> Option<bool> {
        self.raw.extend_from_slice(bytes);
        let mut at = 0;
        if !self.head_over {
            let Some(end) = self.raw.windows(4).position(|w| w == b"\r\n\r\n") else {
                return Some(false);
            };
            if !self.raw.starts_with(b"HTTP/1.1 200") {
                return None;
            }
            self.head_over = true;
            at = end + 4;
        }
        let mut over = false;
        while let Some(line) = self.raw[at..].iter().position(|&b| b == b'\n') {
            let size = std::str::from_utf8(&self.raw[at..at + line]).ok()?;
            let size = usize::from_str_radix(size.trim(), 16).ok()?;
            let start = at + line + 1;
            let Some(chunk) = self.raw.get(start..start + size + 2) else {
                break;
            };
            self.body.extend_from_slice(&chunk[..size]);
            at = start + size + 2;
            over |= size == 0;
        }
        self.raw.drain(..at);
        let mut done = 0;
        while let Some(open) = memchr::memchr(b'@', &self.body[done..]).map(|n| done + n)
            && let Some(close) = memchr::memchr(b'@', &self.body[open + 1..]).map(|n| open + 1 + n)
        {
            let (sent, read) = std::str::from_utf8(&self.body[open + 1..close])
                .ok()?
                .split_once(',')?;
            event(sent.parse().ok()?, read.parse().ok()?);
            done = close + 1;
        }
        // What is left may be the start of an event.
        match memchr::memchr(b'@', &self.body[done..]) {
            Some(open) => drop(self.body.drain(..done + open)),
            None => self.body.clear(),
        }
        Some(over)
    }
}
