//! Sockets that note when they were last read and flushed.
//!
//! Reads, so that an instant is the socket's and not that of whichever task got round to looking.
//! Flushes, because hyper throws away what it has not written yet when a body fails, and a broken
//! answer must reach the client as far as it came.

mod system;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use flashrig_clock::Stamp;
pub use system::KEEPS_CONNECTIONS;

/// How long a connection to a server has to have stayed open after an answer before it is used
/// again: some servers (llama.cpp) close theirs after a stream without having said so, and that
/// must be noticed first. llama.cpp does so 40 to 90 ms after the last chunk on a machine with
/// nothing else to do, though it promises to keep the connection for 5 s.
pub const SETTLED: Duration = Duration::from_millis(250);

/// What is known of a socket from outside.
#[derive(Clone, Debug)]
pub struct SocketWatch(Arc<Notes>);

#[derive(Debug)]
struct Notes {
    last_read: AtomicU64,
    reads: AtomicU64,
    flushes: AtomicU64,
    on_flush: Mutex<Option<Waker>>,
}

impl SocketWatch {
    /// When the socket last gave bytes (or its end); its opening before the first read.
    pub fn last_read(&self) -> Stamp {
        Stamp(self.0.last_read.load(Ordering::Relaxed))
    }

    /// How often the socket was read.
    pub fn reads(&self) -> u64 {
        self.0.reads.load(Ordering::Relaxed)
    }

    /// How often everything written has been flushed so far.
    pub fn flushes(&self) -> u64 {
        self.0.flushes.load(Ordering::Relaxed)
    }

    /// Ready once there were more than `known` flushes.
    pub fn poll_flushed(&self, known: u64, cx: &mut Context<'_>) -> Poll<()> {
        let mut on_flush = self.0.on_flush.lock();
        if self.flushes() > known {
            return Poll::Ready(());
        }
        *on_flush = Some(cx.waker().clone());
        Poll::Pending
    }

    fn flushed(&self) {
        let mut on_flush = self.0.on_flush.lock();
        self.0.flushes.fetch_add(1, Ordering::Relaxed);
        if let Some(waker) = on_flush.take() {
            waker.wake();
        }
    }
}

/// A stream (TCP, if nothing else is said) for hyper with a [`SocketWatch`].
#[derive(Debug)]
pub struct StampedStream<S = TcpStream> {
    inner: TokioIo<S>,
    watch: SocketWatch,
    /// Acknowledges at once what was read.
    acknowledge: Option<fn(&S)>,
}

impl<S> StampedStream<S> {
    /// A stream of any kind whose reads and flushes are noted.
    pub fn over(stream: S) -> (Self, SocketWatch) {
        let watch = SocketWatch(Arc::new(Notes {
            last_read: AtomicU64::new(Stamp::now().0),
            reads: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            on_flush: Mutex::new(None),
        }));
        (
            Self {
                inner: TokioIo::new(stream),
                watch: watch.clone(),
                acknowledge: None,
            },
            watch,
        )
    }

    fn acknowledge(&self) {
        if let Some(acknowledge) = self.acknowledge {
            acknowledge(self.inner.inner());
        }
    }

    /// The socket itself.
    pub fn into_inner(self) -> S {
        self.inner.into_inner()
    }
}

impl StampedStream {
    /// A TCP stream whose reads and flushes are noted.
    pub fn new(stream: TcpStream) -> (Self, SocketWatch) {
        Self::over(stream)
    }

    /// A stream to a server, which may wait for an acknowledgement before it sends on.
    pub fn to_server(stream: TcpStream) -> (Self, SocketWatch) {
        let (mut stream, watch) = Self::new(stream);
        stream.acknowledge = Some(system::acknowledge_at_once);
        stream.acknowledge();
        (stream, watch)
    }
}

impl<S: AsyncRead + Unpin> Read for StampedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        let poll = Pin::new(&mut self.inner).poll_read(cx, buf);
        if poll.is_ready() {
            self.watch
                .0
                .last_read
                .store(Stamp::now().0, Ordering::Relaxed);
            self.watch.0.reads.fetch_add(1, Ordering::Relaxed);
            self.acknowledge();
        }
        poll
    }
}

impl<S: AsyncWrite + Unpin> Write for StampedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let poll = Pin::new(&mut self.inner).poll_flush(cx);
        if poll.is_ready() {
            self.watch.flushed();
        }
        poll
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
