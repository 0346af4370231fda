//! A server that answers each request as the test says, down to how the connection ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How a generation request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Whole.
    Good,
    /// Whole, and said to come from another model.
    OtherModel,
    /// Whole, after a while without a byte.
    GoodAfter(Duration),
    /// With status 529 at once.
    Overloaded,
    /// With status 529 at once when another generation request is in it, else whole after a while.
    OverloadedBeside,
    /// With status 500 to all when another generation request is in it, else whole after a while:
    /// slots that share one budget of memory.
    FailedBeside,
    /// With status 500 at once to so many generation requests that are in it together, as soon as
    /// they are: slots that share one budget, however late the second comes.
    FailedTogether(usize),
    /// With status 500 and words.
    Failed,
    /// With this status and this body.
    Says(&'static str, &'static str),
    /// Whole, of a prompt of 1000 tokens none of which was cached.
    Forgotten,
    /// A stream whose frames lack what its protocol requires.
    Lacking,
    /// With 400 and words.
    Refused,
    /// A stream that closes in its middle.
    Truncated,
    /// A stream with an error event in it, after a 200.
    ErrorEvent,
    /// A stream that falls silent in its middle.
    Silent,
    /// A stream of which nothing but its head comes.
    Mute,
}

/// The server; its threads end with the test's process.
pub struct Faulty {
    pub url: String,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    generations: AtomicUsize,
    /// Generation requests that are in it.
    inside: AtomicUsize,
    /// How often two of them met.
    met: AtomicUsize,
    metrics: AtomicUsize,
    busy: AtomicBool,
    /// Requests that wait until enough of them are in it.
    gathered: Mutex<usize>,
    all_here: Condvar,
}

impl Faulty {
    /// Answers the generation request number `n`, counted from 1 over the whole run, by
    /// `answer(n)`.
    pub fn start(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let counts = Arc::new(Counts::default());
        let (shared, answer) = (counts.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (counts, answer) = (shared.clone(), answer.clone());
                std::thread::spawn(move || {
                    // A client that left is no fault of the server's.
                    let _ = serve(stream, &counts, &*answer);
                });
            }
        });
        Self { url, counts }
    }

    /// Generation requests so far.
    pub fn seen(&self) -> usize {
        self.counts.generations.load(Ordering::SeqCst)
    }

    /// How often its metrics were asked for.
    pub fn looked_at(&self) -> usize {
        self.counts.metrics.load(Ordering::SeqCst)
    }

    /// From now on its metrics tell of a request in it.
    pub fn keep_busy(&self) {
        self.counts.busy.store(true, Ordering::SeqCst);
    }
}

/// How long a request stays in a server that minds others.
const STAY: Duration = Duration::from_secs(1);

impl Counts {
    /// Waits until `wanted` requests are here.
    fn gather(&self, wanted: usize) {
        let mut here = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        *here += 1;
        self.all_here.notify_all();
        while *here < wanted {
            here = self
                .all_here
                .wait(here)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Stays for a while; the answer is whole only when no other request made it otherwise.
    fn unless_beside(&self, answer: Answer) -> Answer {
        let met = self.met.load(Ordering::SeqCst);
        let others = self.inside.fetch_add(1, Ordering::SeqCst);
        if others > 0 {
            self.met.fetch_add(1, Ordering::SeqCst);
        }
        let refused = answer == Answer::OverloadedBeside && others > 0;
        if !refused {
            std::thread::sleep(STAY);
        }
        let failed = answer == Answer::FailedBeside && self.met.load(Ordering::SeqCst) > met;
        // Out of it before the answer goes out: the next one may come at once.
        self.inside.fetch_sub(1, Ordering::SeqCst);
        match (refused, failed) {
            (true, _) => Answer::Overloaded,
            (_, true) => Answer::Failed,
            _ => Answer::Good,
        }
    }
}

fn serve(
    mut stream: TcpStream,
    counts: &Counts,
    answer: &dyn Fn(usize) -> Answer,
) -> std::io::Result<()> {
    let line = read_request(&stream)?;
    match line.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["GET", "/v1/models"] => whole(
            &mut stream,
            "200 OK",
            r#"{"data":[{"id":"m","max_model_len":8192}]}"#,
        ),
        // As llama.cpp tells it.
        ["GET", "/metrics"] => {
            counts.metrics.fetch_add(1, Ordering::SeqCst);
            let busy = u8::from(counts.busy.load(Ordering::SeqCst));
            whole(
                &mut stream,
                "200 OK",
                &format!("llamacpp:requests_processing {busy}\nllamacpp:requests_deferred 0\n"),
            )
        }
        ["POST", "/v1/chat/completions"] => {
            let number = counts.generations.fetch_add(1, Ordering::SeqCst) + 1;
            let answer = match answer(number) {
                beside @ (Answer::OverloadedBeside | Answer::FailedBeside) => {
                    counts.unless_beside(beside)
                }
                Answer::FailedTogether(wanted) => {
                    counts.gather(wanted);
                    Answer::Failed
                }
                other => other,
            };
            generate(&mut stream, answer)
        }
        _ => whole(&mut stream, "404 Not Found", "{}"),
    }
}

/// Reads a request whole; its first line.
fn read_request(stream: &TcpStream) -> std::io::Result<String> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    Ok(first)
}

fn whole(stream: &mut TcpStream, status: &str, body: &str) -> std::io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

fn generate(stream: &mut TcpStream, answer: Answer) -> std::io::Result<()> {
    match answer {
        Answer::Overloaded => {
            return whole(
                stream,
                "529 Overloaded",
                r#"{"error":{"type":"overloaded_error","message":"come back later"}}"#,
            );
        }
        Answer::Failed => {
            return whole(
                stream,
                "500 Internal Server Error",
                r#"{"error":{"type":"server_error","message":"context does not fit"}}"#,
            );
        }
        Answer::Refused => {
            return whole(
                stream,
                "400 Bad Request",
                r#"{"error":{"type":"invalid_request_error","message":"no such thing"}}"#,
            );
        }
        Answer::Says(status, body) => return whole(stream, status, body),
        Answer::GoodAfter(wait) => std::thread::sleep(wait),
        _ => {}
    }
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\
         Connection: close\r\n\r\n"
    )?;
    let model = if answer == Answer::OtherModel {
        "small"
    } else {
        "m"
    };
    if answer == Answer::Mute {
        stream.flush()?;
        // Until the client leaves.
        let _ = stream.read(&mut [0]);
        return Ok(());
    }
    event(
        stream,
        &r#"{"id":"1","object":"chat.completion.chunk","created":1,"model":"MODEL","choices":[{"index":0,"delta":{"role":"assistant","content":"so "},"finish_reason":null}]}"#
            .replace("MODEL", model),
    )?;
    match answer {
        Answer::Lacking => {
            event(stream, r#"{"id":"1"}"#)?;
            event(
                stream,
                r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
            )?;
        }
        Answer::Forgotten => {
            event(
                stream,
                r#"{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"it is"},"finish_reason":"stop"}]}"#,
            )?;
            event(
                stream,
                r#"{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":3,"total_tokens":1003,"prompt_tokens_details":{"cached_tokens":0}}}"#,
            )?;
        }
        Answer::Truncated => return Ok(()),
        Answer::ErrorEvent => event(
            stream,
            r#"{"error":{"type":"server_error","message":"out of memory"}}"#,
        )?,
        Answer::Silent => {
            // Until the client leaves.
            let _ = stream.read(&mut [0]);
            return Ok(());
        }
        _ => {
            event(
                stream,
                r#"{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"it is"},"finish_reason":"stop"}]}"#,
            )?;
            event(
                stream,
                r#"{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":3,"total_tokens":103}}"#,
            )?;
        }
    }
    event(stream, "[DONE]")?;
    write!(stream, "0\r\n\r\n")
}

fn event(stream: &mut TcpStream, data: &str) -> std::io::Result<()> {
    let event = format!("data: {data}\n\n");
    write!(stream, "{:x}\r\n{event}\r\n", event.len())?;
    stream.flush()
}
