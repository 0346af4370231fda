//! What a response says, read beside the stream and never in its way: the bytes go on unchanged
//! whatever is found here, and whatever cannot be understood is unknown.

mod anthropic;
mod decode;
mod error;
mod facts;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod oddity;
mod openai_chat;
mod openai_responses;
pub mod refusal;
mod sse;
#[cfg(test)]
mod tests;
mod tools;
mod types;

use std::io::{self, Write};

use http::StatusCode;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use serde_json::Value;

pub use facts::{Content, Facts, Generated};
pub use oddity::Oddity;

use decode::{Decoder, TooLarge};
use sse::{Parser, SseEvent};
use std::time::Duration;
pub use types::{Dialect, ErrorDetail, Outcome, RefusalKind, ToolCall};

/// Bytes kept of an error answer, to be read for its words.
const ERROR_BYTES: usize = 64 * 1024;

/// Bytes kept of a plain answer, to be read for its usage. A longer one passes unread.
const PLAIN_BYTES: usize = 16 * 1024 * 1024;

/// How an HTTP body came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// Whole, as its framing has it.
    Clean,
    /// Broken off, or not as its framing has it.
    Broken,
    /// The server was silent for longer than the time limit.
    Silent,
    /// The client left.
    ClientLeft,
}

/// Watches one response body.
pub struct ResponseReader {
    status: StatusCode,
    decoder: Decoder<Reading>,
    decoding: Decoding,
}

/// How far an answer can be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decoding {
    /// To where it has come.
    Fine,
    /// It is not what it says it is; its client cannot read on either.
    Corrupt,
    /// It was given up for its size; its client may read on.
    GivenUp,
}

/// What decoded bytes are written to.
struct Reading {
    reader: Reader,
    facts: Facts,
    /// When the bytes that are being taken were read from the socket.
    at: Duration,
}

enum Reader {
    /// Nothing to read: no dialect's answer, or compressed in a way that is not known.
    Blind,
    /// An answer with an error status.
    Error { body: Vec<u8>, unread: bool },
    /// A generation's plain answer.
    Plain {
        dialect: Dialect,
        body: Vec<u8>,
        over: bool,
        first: Option<Duration>,
    },
    /// A generation's stream.
    Stream {
        parser: Parser,
        dialect: StreamDialect,
    },
}

enum StreamDialect {
    Anthropic(anthropic::Stream),
    Chat(openai_chat::Stream),
    Responses,
}

impl ResponseReader {
    /// Chooses how to read the body that follows this response head. `asked_for_stream` decides
    /// where the content type does not.
    pub fn new(
        dialect: Dialect,
        asked_for_stream: bool,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Self {
        let content_type = headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_ascii_lowercase();
        let reader = if status.is_client_error() || status.is_server_error() {
            Reader::Error {
                body: Vec::new(),
                unread: false,
            }
        } else if !dialect.generates() {
            Reader::Blind
        } else if content_type.starts_with("text/event-stream")
            || (asked_for_stream && !content_type.starts_with("application/json"))
        {
            let dialect = match dialect {
                Dialect::AnthropicMessages => {
                    StreamDialect::Anthropic(anthropic::Stream::default())
                }
                Dialect::OpenaiResponses => StreamDialect::Responses,
                _ => StreamDialect::Chat(openai_chat::Stream::default()),
            };
            Reader::Stream {
                parser: Parser::default(),
                dialect,
            }
        } else {
            Reader::Plain {
                dialect,
                body: Vec::new(),
                over: false,
                first: None,
            }
        };
        let reading = Reading {
            reader,
            facts: Facts::default(),
            at: Duration::ZERO,
        };
        Self {
            status,
            decoder: reading.behind_decoder(headers),
            decoding: Decoding::Fine,
        }
    }

    /// Keeps what is generated, from now on.
    pub fn keep_generated(&mut self) {
        self.decoder.writer_mut().facts.generated = Some(Generated::default());
    }

    /// What was found so far.
    pub fn facts(&self) -> &Facts {
        &self.decoder.writer().facts
    }

    /// Whether this is a stream whose end mark (or error) has not come.
    pub fn is_unended_stream(&self) -> bool {
        let Reading { reader, facts, .. } = self.decoder.writer();
        matches!(reader, Reader::Stream { .. })
            && !facts.ended
            && facts.error.is_none()
            && self.decoding != Decoding::GivenUp
    }

    /// Takes bytes that were read from the server's socket at `at`.
    pub fn bytes(&mut self, bytes: &[u8], at: Duration) {
        if self.decoding != Decoding::Fine {
            return;
        }
        self.decoder.writer_mut().at = at;
        if let Err(error) = self.decoder.feed(bytes) {
            let (decoding, oddity) = if error.get_ref().is_some_and(|e| e.is::<TooLarge>()) {
                (Decoding::GivenUp, Oddity::AnswerTooLargeDecoded)
            } else {
                (Decoding::Corrupt, Oddity::AnswerNotDecoded)
            };
            self.decoding = decoding;
            self.decoder.writer_mut().facts.calls.odd(oddity);
        }
    }

    /// Reads what is left to read, once the body is over, and says how the attempt ended.
    pub fn close(&mut self, close: Close, at: Duration) -> Outcome {
        let Reading { reader, facts, .. } = self.decoder.writer_mut();
        let given_up = self.decoding == Decoding::GivenUp;
        let is_stream = matches!(reader, Reader::Stream { .. }) && !given_up;
        match reader {
            Reader::Blind => {}
            Reader::Error { body, unread }
                if *unread || (self.decoding != Decoding::Fine && body.is_empty()) =>
            {
                let message = format!(
                    "status {}; the answer's words are compressed and were not read",
                    self.status
                );
                facts.error = Some(error::plain_text(message.as_bytes(), None));
            }
            Reader::Error { body, .. } => facts.error = Some(error::from_answer(body, self.status)),
            Reader::Plain {
                dialect,
                body,
                over: false,
                first,
            } if close == Close::Clean && self.decoding == Decoding::Fine => {
                plain(*dialect, body, first.unwrap_or(at), facts);
                facts.settle();
                // It came in one piece: when its tokens were generated is not known.
                facts.forget_token_times();
            }
            Reader::Plain { .. } => {}
            Reader::Stream { parser, dialect } => {
                parser.finish(&mut |event| dialect.event(&event, at, facts));
            }
        }
        if matches!(reader, Reader::Stream { .. }) {
            facts.settle();
        }
        if self.status.is_client_error() || self.status.is_server_error() {
            // The status said it all; many clients hang up without reading the words.
            return end_of_status(self.status);
        }
        if facts.error.is_some() {
            return Outcome::ErrorInStream;
        }
        match (close, is_stream, facts.ended) {
            // A client may hang up as soon as it has seen the end mark, a server too.
            (_, true, true) => Outcome::Complete,
            (Close::ClientLeft, ..) => Outcome::ClientAborted,
            (Close::Silent, ..) => Outcome::Stalled,
            (Close::Broken, ..) | (Close::Clean, true, false) => Outcome::Truncated,
            (Close::Clean, false, _) => Outcome::Complete,
        }
    }
}

impl Reading {
    /// Puts the decoder before it that the response's head asks for.
    fn behind_decoder(self, headers: &HeaderMap) -> Decoder<Self> {
        if matches!(self.reader, Reader::Blind) {
            return Decoder::Identity(self);
        }
        let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
        let encoding = match (encodings.next(), encodings.next()) {
            (None, _) => "",
            (Some(encoding), None) => encoding.to_str().unwrap_or("?"),
            (Some(_), Some(_)) => "several",
        };
        Decoder::new(encoding, self).unwrap_or_else(|mut unread| {
            unread.facts.calls.odd(Oddity::AnswerEncodingUnknown);
            unread.reader = match unread.reader {
                Reader::Error { body, .. } => Reader::Error { body, unread: true },
                _ => Reader::Blind,
            };
            Decoder::Identity(unread)
        })
    }
}

impl Write for Reading {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Self { reader, facts, at } = self;
        let at = *at;
        match reader {
            Reader::Blind => {}
            Reader::Error { body, .. } => keep(body, bytes, ERROR_BYTES),
            Reader::Plain {
                body, over, first, ..
            } => {
                first.get_or_insert(at);
                *over |= body.len() + bytes.len() > PLAIN_BYTES;
                if *over {
                    *body = Vec::new();
                } else {
                    body.extend_from_slice(bytes);
                }
            }
            Reader::Stream { parser, dialect } => {
                parser.feed(bytes, &mut |event| dialect.event(&event, at, facts));
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How an attempt ended whose answer has this status and came whole.
fn end_of_status(status: StatusCode) -> Outcome {
    match status.as_u16() {
        429 | 503 | 529 => Outcome::Overloaded,
        400..=499 => Outcome::Refused,
        500.. => Outcome::UpstreamError,
        _ => Outcome::Complete,
    }
}

fn keep(kept: &mut Vec<u8>, bytes: &[u8], limit: usize) {
    let room = limit.saturating_sub(kept.len()).min(bytes.len());
    kept.extend_from_slice(&bytes[..room]);
}

fn plain(dialect: Dialect, body: &[u8], at: Duration, facts: &mut Facts) {
    let Ok(answer) = serde_json::from_slice::<Value>(body) else {
        facts.missing("(the answer is not JSON)");
        return;
    };
    if let Some(error) = error::in_object(&answer) {
        facts.error = Some(error);
        return;
    }
    match dialect {
        Dialect::AnthropicMessages => anthropic::plain(&answer, at, facts),
        Dialect::OpenaiResponses => openai_responses::plain(&answer, at, facts),
        _ => openai_chat::plain(&answer, at, facts),
    }
}

impl StreamDialect {
    fn event(&mut self, event: &SseEvent<'_>, at: Duration, facts: &mut Facts) {
        if event.oversize {
            // Too long to be read. Only generated content grows that long.
            facts.content(at, Content::Hidden);
            return;
        }
        if event.data.trim_ascii() == b"[DONE]" {
            facts.ended |= matches!(self, Self::Chat(_));
            return;
        }
        let Ok(frame) = serde_json::from_slice::<Value>(event.data) else {
            if event.name == b"error" {
                facts.error = Some(error::plain_text(event.data, None));
            } else if !event.data.is_empty() {
                facts.missing("(a frame is not JSON)");
            }
            return;
        };
        match self {
            Self::Anthropic(stream) => stream.frame(&frame, at, facts),
            Self::Chat(stream) => stream.frame(&frame, at, facts),
            Self::Responses => openai_responses::frame(&frame, at, facts),
        }
    }
}

/// Text at `key`, when it is a string that is not empty.
fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value
        .get(key)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
}

/// The start of `text`, of at most `bytes`, cut between characters.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
