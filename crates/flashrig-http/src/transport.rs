//! How a server is reached: plain TCP, TLS, or a Unix socket. The one place that opens connections.
//!
//! A [`StampedStream`] is always around the socket itself, below TLS, so that instants stay the
//! socket's. The TLS handshake is a part of connecting.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

use crate::address::Place;
use crate::stamped::{SocketWatch, StampedStream};
use crate::upstream::Upstream;

/// TLS over a stamped socket, as hyper takes it.
type Secured = TokioIo<TlsStream<TokioIo<StampedStream>>>;

/// A connected stream.
pub(crate) enum Transport {
    Tcp(StampedStream),
    Tls(Box<Secured>),
    Unix(StampedStream<UnixStream>),
}

/// Why there is no stream.
#[derive(Debug)]
pub(crate) enum OpenError {
    Socket(io::Error),
    /// In words, with what to do.
    Tls(String),
}

/// Connects to the server.
pub(crate) async fn open(upstream: &Upstream) -> Result<(Transport, SocketWatch), OpenError> {
    match upstream.place() {
        Place::Unix(path) => {
            let stream = UnixStream::connect(path).await.map_err(OpenError::Socket)?;
            let (stream, watch) = StampedStream::over(stream);
            Ok((Transport::Unix(stream), watch))
        }
        Place::Tcp { host, port, .. } => {
            let connecting = TcpStream::connect((host.as_str(), *port));
            let stream = connecting.await.map_err(OpenError::Socket)?;
            stream.set_nodelay(true).map_err(OpenError::Socket)?;
            let (stream, watch) = StampedStream::to_server(stream);
            let Some(tls) = upstream.tls() else {
                return Ok((Transport::Tcp(stream), watch));
            };
            let secured = tls.over(TokioIo::new(stream)).await;
            let secured = secured.map_err(|error| OpenError::Tls(tls.explain(&error)))?;
            Ok((Transport::Tls(Box::new(TokioIo::new(secured))), watch))
        }
    }
}

/// Does the same with whichever stream it is.
macro_rules! each {
    ($transport:expr, $stream:ident => $do:expr) => {
        match $transport {
            Transport::Tcp($stream) => $do,
            Transport::Tls($stream) => $do,
            Transport::Unix($stream) => $do,
        }
    };
}

impl Read for Transport {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        each!(&mut *self, stream => Pin::new(stream).poll_read(cx, buf))
    }
}

impl Write for Transport {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(&mut *self, stream => Pin::new(stream).poll_write(cx, buf))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(&mut *self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(&mut *self, stream => Pin::new(stream).poll_shutdown(cx))
    }

    fn is_write_vectored(&self) -> bool {
        each!(self, stream => stream.is_write_vectored())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(&mut *self, stream => Pin::new(stream).poll_write_vectored(cx, bufs))
    }
}
