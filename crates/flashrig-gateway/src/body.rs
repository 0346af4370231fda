//! The response body on its way to the client.
//!
//! Frames pass unchanged, but for the server's key, should the server repeat it. The body knows how it ended in every case: whole, broken off, silent,
//! and, because it is then dropped, abandoned by the client. However it ends, the attempt's row is
//! written here.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use super::gate::Permit;
use super::prompt::PromptCap;
use super::refusal::Reason;
use super::request_log::Recording;
use flashrig_clock::Stamp;
use flashrig_http::StreamRedactor;
use flashrig_http::stamped::SocketWatch;
use flashrig_http::{Connection, Pool, describe};
use llm_observe::{Close, ResponseReader};

/// Makes hyper break the client's connection off instead of ending the body in good order.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    /// As the server did.
    #[error("the server broke the answer off: {0}")]
    Broken(String),
    /// Because only this can tell a client that the stream is cut.
    #[error("the server closed the stream without its end mark")]
    NoEndMark,
    /// Because the time limit ran out.
    #[error("the server sent nothing for {} s, the time limit that was set", .0.as_secs_f64())]
    Silent(Duration),
}

/// A response body.
pub(super) enum GatewayBody {
    /// The gateway's own answer.
    Own(Option<Bytes>),
    /// The server's.
    Through(Box<Through>),
}

impl GatewayBody {
    pub(super) fn own(bytes: Bytes) -> Self {
        Self::Own(Some(bytes))
    }
}

impl Body for GatewayBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Own(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Through(through) => through.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(bytes) => bytes.is_none(),
            Self::Through(through) => through.inner.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Through(through) => through.inner.size_hint(),
        }
    }
}

/// What belongs to an attempt until its response is over.
pub(super) struct InFlight {
    pub(super) recording: Recording,
    pub(super) watch: ResponseReader,
    pub(super) connection: Connection,
    /// The place in the server, freed with the connection.
    pub(super) permit: Option<Permit>,
    pub(super) prompt_cap: Option<Arc<PromptCap>>,
}

/// The server's body, watched.
pub(super) struct Through {
    inner: Incoming,
    /// Gone once the attempt's row is written.
    in_flight: Option<InFlight>,
    client: SocketWatch,
    /// How the body failed, and the client's flushes until then. The failure is told to hyper only
    /// once everything before it has been flushed.
    failed: Option<(BodyError, u64)>,
    pool: Arc<Pool>,
    /// Whether the end of the body can be told from the connection's.
    framed: bool,
    limit: Option<Duration>,
    silence: Option<Pin<Box<Sleep>>>,
    /// Whether `silence` runs: from the moment that the server was found to have nothing more,
    /// so that a client which reads slowly is not taken for a silent server.
    waiting: bool,
    /// Takes the server's key out, when there is one.
    mask: Option<StreamRedactor>,
    first: FirstPiece,
}

/// The first piece of an answer goes on before it is read: there is most to read in it, and it is
/// what a client waits for.
enum FirstPiece {
    /// It has not come.
    Awaited,
    /// It was handed on at this poll, and is read once the connection has had time to write it.
    HandedOn(Bytes, Stamp),
    /// The connection has had that time.
    Unread(Bytes, Stamp),
    /// It is read; all others are read as they come.
    Read,
}

impl Through {
    pub(super) fn new(
        inner: Incoming,
        in_flight: InFlight,
        client: SocketWatch,
        pool: Arc<Pool>,
        framed: bool,
        limit: Option<Duration>,
    ) -> Self {
        let in_flight = Some(in_flight);
        Self {
            inner,
            in_flight,
            client,
            failed: None,
            pool,
            framed,
            limit,
            silence: None,
            waiting: false,
            mask: None,
            first: FirstPiece::Awaited,
        }
    }

    /// Takes the server's key out on the way.
    pub(super) fn masked(mut self, mask: Option<StreamRedactor>) -> Self {
        self.mask = mask;
        self
    }

    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(in_flight) = &mut self.in_flight else {
            return self.poll_failure(cx);
        };
        if self.first.is_to_be_written(cx) {
            return Poll::Pending;
        }
        self.first.read(in_flight);
        let mut polled = Pin::new(&mut self.inner).poll_frame(cx);
        if polled.is_pending() {
            in_flight.connection.drive(cx);
            polled = Pin::new(&mut self.inner).poll_frame(cx);
        }
        let at = in_flight.connection.last_read();
        match polled {
            Poll::Ready(Some(Ok(frame))) => {
                self.waiting = false;
                let frame = match &mut self.mask {
                    Some(mask) => masked(frame, mask, self.inner.is_end_stream()),
                    None => frame,
                };
                match (frame.data_ref(), &self.first) {
                    (Some(data), FirstPiece::Awaited) => {
                        self.first = FirstPiece::HandedOn(data.clone(), at);
                    }
                    (Some(data), _) => in_flight.pass(data, at),
                    (None, _) => {}
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                let message = describe(&error);
                let held = self.let_go(at);
                self.end(Close::Broken, at, Some(Reason::NoAnswer.error(&message)));
                self.fail(BodyError::Broken(message), held, cx)
            }
            // The end is met again, after what was held back.
            Poll::Ready(None) if self.mask.as_ref().is_some_and(StreamRedactor::holds) => {
                Poll::Ready(self.let_go(at).map(|held| Ok(Frame::data(held))))
            }
            Poll::Ready(None) if !self.framed && in_flight.watch.is_unended_stream() => {
                self.end(Close::Broken, at, None);
                self.fail(BodyError::NoEndMark, None, cx)
            }
            Poll::Ready(None) => {
                self.end(Close::Clean, at, None);
                Poll::Ready(None)
            }
            Poll::Pending => {
                let Some(limit) = self.limit else {
                    return Poll::Pending;
                };
                ready!(self.poll_silence(limit, cx));
                let error = BodyError::Silent(limit);
                let held = self.let_go(at);
                self.end(
                    Close::Silent,
                    Stamp::now(),
                    Some(Reason::Silent.error(&error.to_string())),
                );
                self.fail(error, held, cx)
            }
        }
    }

    fn fail(
        &mut self,
        error: BodyError,
        held: Option<Bytes>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.failed = Some((error, self.client.flushes()));
        match held {
            Some(held) => Poll::Ready(Some(Ok(Frame::data(held)))),
            None => self.poll_failure(cx),
        }
    }

    /// What was held back because the server's key may begin with it, now that no more will come.
    fn let_go(&mut self, at: Stamp) -> Option<Bytes> {
        let held = self.mask.as_mut()?.rest()?;
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.pass(&held, at);
        }
        Some(held)
    }

    /// The end after the row was written: a failure once it may be told, else nothing more.
    fn poll_failure(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some((_, known)) = &self.failed else {
            return Poll::Ready(None);
        };
        ready!(self.client.poll_flushed(*known, cx));
        Poll::Ready(self.failed.take().map(|(error, _)| Err(error)))
    }

    /// Ready once the server has been silent for `limit`.
    fn poll_silence(&mut self, limit: Duration, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = Instant::now() + limit;
        let silence = self
            .silence
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if !std::mem::replace(&mut self.waiting, true) {
            silence.as_mut().reset(deadline);
        }
        silence.as_mut().poll(cx)
    }

    fn end(&mut self, close: Close, at: Stamp, fault: Option<flashrig_record::ErrorDetail>) {
        if let Some(in_flight) = &mut self.in_flight {
            self.first.read(in_flight);
        }
        let Some(InFlight {
            mut recording,
            mut watch,
            connection,
            permit,
            prompt_cap,
        }) = self.in_flight.take()
        else {
            return;
        };
        let before = watch.facts().content_events;
        let end = watch.close(close, at.reading());
        recording.progress(before, watch.facts(), at);
        recording.response(watch.facts(), |message| {
            self.pool.upstream().redactor().text(message).into_owned()
        });
        if recording.attempt.error.is_none() {
            recording.attempt.error = fault;
        }
        if let (Some(cap), Some(tokens)) = (prompt_cap, recording.attempt.input_tokens) {
            cap.learn(recording.attempt.request_bytes, tokens);
        }
        recording.finish(end, at);
        // The connection is free or closed here, and only then is the next request let in.
        match close {
            Close::Clean => self.pool.keep(connection),
            Close::Broken | Close::Silent | Close::ClientLeft => drop(connection),
        }
        drop(permit);
    }
}

impl FirstPiece {
    /// Whether the connection should write the piece before anything else is done. It is asked
    /// again at once.
    fn is_to_be_written(&mut self, cx: &Context<'_>) -> bool {
        match std::mem::replace(self, Self::Read) {
            Self::HandedOn(data, at) => {
                *self = Self::Unread(data, at);
                cx.waker().wake_by_ref();
                true
            }
            other => {
                *self = other;
                false
            }
        }
    }

    /// Reads the piece, if that is still to be done.
    fn read(&mut self, in_flight: &mut InFlight) {
        match std::mem::replace(self, Self::Read) {
            Self::HandedOn(data, at) | Self::Unread(data, at) => in_flight.pass(&data, at),
            Self::Awaited => *self = Self::Awaited,
            Self::Read => {}
        }
    }
}

impl InFlight {
    fn pass(&mut self, data: &Bytes, at: Stamp) {
        let first_byte = self.recording.at(at);
        self.recording
            .attempt
            .clocks
            .first_byte_s
            .get_or_insert(first_byte);
        self.recording.attempt.response_bytes += data.len() as u64;
        self.recording.answer(data);
        let before = self.watch.facts().content_events;
        self.watch.bytes(data, at.reading());
        self.recording.progress(before, self.watch.facts(), at);
    }
}

/// A frame without the server's key; `last` when no data will follow.
fn masked(frame: Frame<Bytes>, mask: &mut StreamRedactor, last: bool) -> Frame<Bytes> {
    match frame.into_data() {
        Ok(data) => {
            let data = mask.piece(data);
            match last.then(|| mask.rest()).flatten() {
                Some(rest) => Frame::data([data, rest].concat().into()),
                None => Frame::data(data),
            }
        }
        Err(mut frame) => {
            if let Some(trailers) = frame.trailers_mut() {
                mask.headers(trailers);
            }
            frame
        }
    }
}

impl Drop for Through {
    fn drop(&mut self) {
        let Some(in_flight) = &self.in_flight else {
            return;
        };
        // hyper does not poll a body again once the announced length has passed.
        if self.inner.is_end_stream() {
            let at = in_flight.connection.last_read();
            self.end(Close::Clean, at, None);
        } else {
            self.end(Close::ClientLeft, Stamp::now(), None);
        }
    }
}
