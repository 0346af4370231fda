//! Sockets that note when they were last read, so that an instant is the socket's and not that of
//! whichever task got round to looking.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::clock::Stamp;

/// The instant of a socket's last successful read.
#[derive(Clone, Debug)]
pub(super) struct ReadClock(Arc<AtomicU64>);

impl ReadClock {
    fn new() -> Self {
        Self(Arc::new(AtomicU64::new(Stamp::now().0)))
    }

    /// When the socket last gave bytes (or its end); its opening before the first read.
    pub(super) fn last(&self) -> Stamp {
        Stamp(self.0.load(Ordering::Relaxed))
    }
}

/// A TCP stream for hyper with a [`ReadClock`].
#[derive(Debug)]
pub(super) struct StampedStream {
    inner: TokioIo<TcpStream>,
    clock: ReadClock,
}

impl StampedStream {
    pub(super) fn new(stream: TcpStream) -> (Self, ReadClock) {
        let clock = ReadClock::new();
        (
            Self {
                inner: TokioIo::new(stream),
                clock: clock.clone(),
            },
            clock,
        )
    }
}

impl Read for StampedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        let poll = Pin::new(&mut self.inner).poll_read(cx, buf);
        if poll.is_ready() {
            self.clock.0.store(Stamp::now().0, Ordering::Relaxed);
        }
        poll
    }
}

impl Write for StampedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }
}
