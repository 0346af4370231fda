//! A streamed answer: turns the engine's events into the dialect's frames, one token a frame.
//!
//! The body is polled by the connection itself, so that a client that leaves drops it, and with
//! it the channel by whose closing the engine notices.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use super::engine::Event;
use super::faults::StreamFaultKind;
use super::reply::{Cursor, Piece, Planned};
use super::{anthropic, openai};

/// Simulated time between keep-alive frames while nothing else is sent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Wall time between them at least, whatever the speed.
const KEEP_ALIVE_LEAST: Duration = Duration::from_millis(250);

/// The protocol of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `POST /v1/chat/completions`
    OpenAi,
    /// `POST /v1/messages`
    Anthropic,
}

/// The stream was broken off on purpose; hyper closes the connection without the end mark.
#[derive(Debug, thiserror::Error)]
#[error("the answer was broken off, as configured")]
pub struct Broken;

/// A block of the answer, as the Anthropic dialect numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Text,
    Call,
}

/// The body of a streamed answer.
pub struct SseBody {
    dialect: Dialect,
    planned: Arc<Planned>,
    include_usage: bool,
    events: UnboundedReceiver<Event>,
    keep_alive: Interval,
    cached_tokens: u64,
    cursor: Cursor,
    open: Option<Block>,
    blocks: usize,
    over: bool,
    breaking: bool,
}

impl SseBody {
    /// The body of `planned`, sent as `events` say by a server at `speed`.
    pub fn new(
        dialect: Dialect,
        planned: Planned,
        include_usage: bool,
        speed: f64,
        events: UnboundedReceiver<Event>,
    ) -> Self {
        // A very slow server keeps its connections alive as often as a real one.
        let period = KEEP_ALIVE.div_f64(speed.max(1.0)).max(KEEP_ALIVE_LEAST);
        let mut keep_alive = interval_at(tokio::time::Instant::now() + period, period);
        keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            dialect,
            planned: Arc::new(planned),
            include_usage,
            events,
            keep_alive,
            cached_tokens: 0,
            cursor: Cursor::default(),
            open: None,
            blocks: 0,
            over: false,
            breaking: false,
        }
    }

    /// Frames of one event; an error closes the connection.
    fn frames(&mut self, event: Event) -> Result<String, Broken> {
        let mut out = String::with_capacity(256);
        match event {
            Event::Admitted { cached_tokens } => {
                self.cached_tokens = cached_tokens;
                match self.dialect {
                    Dialect::Anthropic => {
                        anthropic::stream_start(&self.planned, cached_tokens, &mut out)
                    }
                    Dialect::OpenAi => openai::stream_start(&self.planned, &mut out),
                }
            }
            Event::Token => {
                let mut cursor = self.cursor;
                // Lent out, so that the piece can be borrowed from it while the body changes.
                let planned = Arc::clone(&self.planned);
                if let Some(piece) = cursor.next(&planned) {
                    self.piece(piece, &mut out);
                }
                self.cursor = cursor;
            }
            Event::Finished => {
                self.over = true;
                match self.dialect {
                    Dialect::Anthropic => {
                        self.close_block(&mut out);
                        anthropic::stream_end(&self.planned, self.cached_tokens, &mut out);
                    }
                    Dialect::OpenAi => {
                        let usage = self.include_usage.then_some(self.cached_tokens);
                        openai::stream_end(&self.planned, usage, &mut out);
                    }
                }
            }
            Event::Broken(StreamFaultKind::Error) => {
                self.over = true;
                let message = "the simulated server failed here, as configured";
                match self.dialect {
                    Dialect::Anthropic => anthropic::stream_error(message, &mut out),
                    Dialect::OpenAi => openai::stream_error(message, &mut out),
                }
            }
            Event::Broken(_) => return Err(Broken),
        }
        Ok(out)
    }

    /// Breaks off at the next poll: hyper drops what it has not written when a body fails, and
    /// writes it when a body has nothing to give.
    fn break_off<T>(&mut self, cx: &Context<'_>) -> Poll<T> {
        self.breaking = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn piece(&mut self, piece: Piece<'_>, out: &mut String) {
        match self.dialect {
            Dialect::OpenAi => openai::stream_piece(&self.planned, piece, out),
            Dialect::Anthropic => {
                let wanted = if matches!(piece, Piece::Text(_)) {
                    Block::Text
                } else {
                    Block::Call
                };
                if self.open != Some(wanted) {
                    self.close_block(out);
                    let call = self.planned.call.as_ref().filter(|_| wanted == Block::Call);
                    anthropic::block_start(self.blocks, call, out);
                    self.open = Some(wanted);
                }
                anthropic::block_delta(self.blocks, piece, out);
            }
        }
    }

    fn close_block(&mut self, out: &mut String) {
        if self.open.take().is_some() {
            anthropic::block_stop(self.blocks, out);
            self.blocks += 1;
        }
    }
}

impl Body for SseBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = self.get_mut();
        loop {
            if this.breaking {
                this.over = true;
                this.breaking = false;
                return Poll::Ready(Some(Err(Broken)));
            }
            if this.over {
                return Poll::Ready(None);
            }
            match this.events.poll_recv(cx) {
                Poll::Ready(Some(event)) => match this.frames(event) {
                    Ok(text) if text.is_empty() => {}
                    Ok(text) => {
                        this.keep_alive.reset();
                        return Poll::Ready(Some(Ok(Frame::data(Bytes::from(text)))));
                    }
                    Err(Broken) => return this.break_off(cx),
                },
                // The engine is gone: the server stops in the middle of an answer.
                Poll::Ready(None) => return this.break_off(cx),
                Poll::Pending => {
                    return this.keep_alive.poll_tick(cx).map(|_| {
                        let frame = match this.dialect {
                            Dialect::Anthropic => anthropic::PING,
                            Dialect::OpenAi => openai::KEEP_ALIVE,
                        };
                        Some(Ok(Frame::data(Bytes::from_static(frame.as_bytes()))))
                    });
                }
            }
        }
    }
}
