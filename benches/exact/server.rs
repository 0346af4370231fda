//! The paced server: answers each request with a stream whose events leave at a fixed rate, and says
//! in each event when it was sent, so that whoever reads one knows how long it took to get here.
//!
//! One thread sends all streams, so that their stamps come from one place; every connection has a
//! thread that reads its requests. It is a process of its own, and ends when its standard input closes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use flashrig_clock::Stamp;

/// From a request's end to its first event.
const THINK: Duration = Duration::from_millis(5);

/// Connections at once, at most.
const READERS: usize = 1200;

/// A stream to be sent.
struct Stream {
    to: TcpStream,
    /// When its request had been read whole.
    read: Stamp,
    events: u32,
    interval: Duration,
    sent: u32,
}

pub fn run() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    println!("{}", listener.local_addr().unwrap());
    let (streams, inbox) = channel();
    thread::spawn(move || pace(&inbox));
    // All wait for the next connection, so that taking one costs no more than waking a thread up.
    for _ in 0..READERS {
        let listener = listener.try_clone().unwrap();
        let streams = streams.clone();
        thread::Builder::new()
            .stack_size(128 * 1024)
            .spawn(move || {
                while let Ok((connection, _)) = listener.accept() {
                    read_requests(connection, &streams);
                }
            })
            .unwrap();
    }
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Sends every event when it is due.
fn pace(inbox: &Receiver<Stream>) {
    let mut streams: Vec<Option<Stream>> = Vec::new();
    let mut due: BinaryHeap<Reverse<(Stamp, usize)>> = BinaryHeap::new();
    let mut text = String::new();
    loop {
        let wait = due
            .peek()
            .map_or(Duration::from_secs(3600), |Reverse((at, _))| {
                at.since(Stamp::now())
            });
        match inbox.recv_timeout(wait) {
            Ok(stream) => {
                let free = streams.iter().position(Option::is_none);
                due.push(Reverse((
                    stream.read + THINK,
                    free.unwrap_or(streams.len()),
                )));
                match free {
                    Some(place) => streams[place] = Some(stream),
                    None => streams.push(Some(stream)),
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        while let Some(&Reverse((at, place))) = due.peek()
            && at <= Stamp::now()
        {
            due.pop();
            let Some(stream) = &mut streams[place] else {
                continue;
            };
            if send_next(stream, &mut text) {
                due.push(Reverse((at + stream.interval, place)));
            } else {
                streams[place] = None;
            }
        }
    }
}

/// Sends a stream's next event; whether there is another.
fn send_next(stream: &mut Stream, text: &mut String) -> bool {
    const START: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";
    const STOP: &str = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    text.clear();
    if stream.sent == 0 {
        let _ = write!(
            text,
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{START}\r\n",
            START.len()
        );
    }
    let event = format!(
        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"@{},{}@\"}}}}\n\n",
        Stamp::now().0,
        stream.read.0
    );
    let _ = write!(text, "{:x}\r\n{event}\r\n", event.len());
    stream.sent += 1;
    let more = stream.sent < stream.events;
    if !more {
        let _ = write!(text, "{:x}\r\n{STOP}\r\n0\r\n\r\n", STOP.len());
    }
    stream.to.write_all(text.as_bytes()).is_ok() && more
}

/// Reads a connection's requests and has each answered. Clients do not send one before the last is
/// answered.
fn read_requests(mut from: TcpStream, streams: &Sender<Stream>) {
    from.set_nodelay(true).unwrap();
    from.set_write_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let mut chunk = vec![0; 16 * 1024];
    loop {
        let mut request = Vec::new();
        let mut length = None;
        while length.is_none_or(|length| request.len() < length) {
            let Ok(n @ 1..) = from.read(&mut chunk) else {
                return;
            };
            request.extend_from_slice(&chunk[..n]);
            if length.is_none() {
                length = whole_length(&request);
            }
        }
        let read = Stamp::now();
        let figure = |name| figure(&request, name).unwrap();
        let stream = Stream {
            to: from.try_clone().unwrap(),
            read,
            events: figure("events="),
            interval: Duration::from_micros(u64::from(figure("interval_us="))),
            sent: 0,
        };
        if streams.send(stream).is_err() {
            return;
        }
    }
}

/// The length of a request, head and body, once its head is there.
fn whole_length(request: &[u8]) -> Option<usize> {
    let end = request.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
    let body: usize = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok())
        .unwrap_or(0);
    Some(end + body)
}

/// A figure in the request line's query.
fn figure(request: &[u8], name: &str) -> Option<u32> {
    let end = request.iter().position(|&b| b == b'\r')?;
    let line = String::from_utf8_lossy(&request[..end]);
    let (_, rest) = line.split_once(name)?;
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..digits].parse().ok()
}
