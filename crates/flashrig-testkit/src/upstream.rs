//! A scripted LLM server over raw TCP, so that tests decide about every byte and every close.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub use crate::waiting::soon;

/// Moves tokio's clock on by as long as a kept connection has to stay open before it is used again.
/// Nothing is waited for.
pub async fn let_connections_settle() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_millis(300)).await;
    tokio::time::resume();
}

/// A listener that serves what the test says.
pub struct Upstream {
    listener: TcpListener,
}

impl Upstream {
    /// A listener on a free port of 127.0.0.1.
    pub async fn bind() -> Self {
        Self {
            listener: TcpListener::bind("127.0.0.1:0").await.unwrap(),
        }
    }

    /// Its base address.
    pub fn url(&self) -> String {
        format!("http://{}", self.listener.local_addr().unwrap())
    }

    /// Accepts a connection. Nagle's algorithm stays on, as it does in many real servers.
    pub async fn accept(&self) -> Peer {
        let (stream, _) = soon(self.listener.accept()).await.unwrap();
        Peer {
            stream,
            read: Vec::new(),
        }
    }

    /// Accepts a connection and reads a request from it.
    pub async fn request(&self) -> (Peer, RawRequest) {
        let mut peer = self.accept().await;
        let request = peer.request().await;
        (peer, request)
    }
}

/// A request as it came over the wire.
#[derive(Debug)]
pub struct RawRequest {
    /// Everything before the body.
    pub head: String,
    /// The body, without its framing.
    pub body: Vec<u8>,
}

impl RawRequest {
    /// Method and target.
    pub fn line(&self) -> &str {
        self.head
            .lines()
            .next()
            .unwrap()
            .strip_suffix(" HTTP/1.1")
            .unwrap()
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

/// The value of a header in a raw head.
pub fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// One side of a connection.
pub struct Peer {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Peer {
    /// Connects to a listener.
    pub async fn connect(addr: std::net::SocketAddr) -> Self {
        let stream = soon(TcpStream::connect(addr)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            read: Vec::new(),
        }
    }

    /// Reads more; `false` at the end or when the connection broke.
    async fn fill(&mut self) -> bool {
        matches!(soon(self.stream.read_buf(&mut self.read)).await, Ok(1..))
    }

    /// Takes bytes up to and including `mark`; `None` when the connection ended before it.
    pub async fn take_until(&mut self, mark: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self
                .read
                .windows(mark.len())
                .position(|window| window == mark)
            {
                return Some(self.read.drain(..at + mark.len()).collect());
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    async fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.read.len() < length {
            if !self.fill().await {
                return None;
            }
        }
        Some(self.read.drain(..length).collect())
    }

    /// Reads a head; `None` when the other side closed.
    pub async fn head(&mut self) -> Option<String> {
        let head = self.take_until(b"\r\n\r\n").await?;
        Some(String::from_utf8(head).unwrap())
    }

    /// A chunk's bytes; empty for the last one; `None` when the connection broke off.
    pub async fn chunk(&mut self) -> Option<Vec<u8>> {
        let line = self.take_until(b"\r\n").await?;
        let size = usize::from_str_radix(std::str::from_utf8(&line).unwrap().trim(), 16).unwrap();
        let mut chunk = self.take(size + 2).await?;
        chunk.truncate(size);
        Some(chunk)
    }

    /// Reads chunks until their bytes contain `mark`.
    pub async fn chunks_until(&mut self, mark: &str) -> Vec<u8> {
        let mut found = Vec::new();
        while !found
            .windows(mark.len())
            .any(|window| window == mark.as_bytes())
        {
            let chunk = self
                .chunk()
                .await
                .expect("the stream broke off before the mark");
            assert!(
                !chunk.is_empty(),
                "the stream ended before the mark {mark:?}"
            );
            found.extend_from_slice(&chunk);
        }
        found
    }

    /// Reads the body that follows `head`: its bytes, and whether its end was in good order.
    pub async fn body(&mut self, head: &str) -> (Vec<u8>, bool) {
        let mut body = Vec::new();
        if header(head, "transfer-encoding").is_some() {
            loop {
                match self.chunk().await {
                    Some(chunk) if chunk.is_empty() => return (body, true),
                    Some(chunk) => body.extend_from_slice(&chunk),
                    None => return (body, false),
                }
            }
        }
        let length: usize =
            header(head, "content-length").map_or(0, |length| length.parse().unwrap());
        match self.take(length).await {
            Some(body) => (body, true),
            None => (std::mem::take(&mut self.read), false),
        }
    }

    /// Reads a request.
    pub async fn request(&mut self) -> RawRequest {
        let head = self.head().await.expect("no request came");
        let (body, whole) = self.body(&head).await;
        assert!(whole, "the request's body broke off");
        RawRequest { head, body }
    }

    /// Reads a whole response: status, head, body, and whether its end was in good order.
    pub async fn response(&mut self) -> RawResponse {
        let head = self.head().await.expect("no response came");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let (body, whole) = self.body(&head).await;
        RawResponse {
            status,
            head,
            body,
            whole,
        }
    }

    /// Sends bytes as they are.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        soon(self.stream.write_all(bytes.as_ref())).await.unwrap();
    }

    /// Sends a chunk of a chunked body.
    pub async fn send_chunk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
        self.send(chunk).await;
    }

    /// The head of a chunked event stream; the connection is for this one only.
    pub async fn start_stream(&mut self) {
        self.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    }

    /// Sends the end of a chunked body.
    pub async fn end_stream(&mut self) {
        self.send("0\r\n\r\n").await;
    }

    /// A whole JSON answer; the connection is for this one only.
    pub async fn answer(&mut self, status: &str, body: &str) {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        self.send(head + body).await;
    }

    /// Waits until the other side has closed or reset the connection.
    pub async fn closed(&mut self) {
        while self.fill().await {
            self.read.clear();
        }
    }

    /// Whether the other side sends nothing more and has not closed, as far as can be seen now.
    pub fn is_quiet(&self) -> bool {
        let mut byte = [0];
        matches!(self.stream.try_read(&mut byte), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    }
}

/// A response as it came over the wire.
#[derive(Debug)]
pub struct RawResponse {
    /// HTTP status.
    pub status: u16,
    /// Everything before the body.
    pub head: String,
    /// The body, without its framing.
    pub body: Vec<u8>,
    /// Its end was in good order.
    pub whole: bool,
}

impl RawResponse {
    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}
