//! Doors before a server: TLS with a CA of the test's own, a Unix socket, a guard that wants a
//! header. Each passes everything on to a plain address, without its base path, on a thread of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The base path that doors take off.
pub const BASE: &str = "/llm";

/// A certificate authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, for `--ca`.
    pub pem: String,
}

/// When a certificate is valid.
#[derive(Clone, Copy, Debug)]
pub enum Valid {
    /// For a long time.
    Now,
    /// Until 2 January 2020.
    Expired,
    /// From the year 4000 on.
    NotYet,
}

/// A certificate with its key.
pub struct Leaf {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Default for Authority {
    fn default() -> Self {
        Self::named("test CA")
    }
}

impl Authority {
    /// One of this name, with a key of its own.
    pub fn named(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// A certificate for these names and addresses.
    pub fn leaf(&self, names: &[&str], valid: Valid) -> Leaf {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        match valid {
            Valid::Now => {}
            Valid::Expired => {
                params.not_before = date_time_ymd(2020, 1, 1);
                params.not_after = date_time_ymd(2020, 1, 2);
            }
            Valid::NotYet => params.not_before = date_time_ymd(4000, 1, 1),
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Leaf {
            certificate: certificate.der().clone(),
            key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        }
    }
}

/// Lets nobody in whose head lacks a line.
#[derive(Clone)]
pub struct Guard {
    /// The line, such as `x-door: open`.
    pub line: String,
    /// The whole answer for everybody else.
    pub refusal: String,
}

/// A door. Dropping it closes it.
pub struct Door {
    /// Its port; 0 for a Unix socket.
    pub port: u16,
    runtime: Option<Runtime>,
}

impl Drop for Door {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Door {
    /// TLS on a free port of an address such as `127.0.0.1` or `::1`, before a plain address.
    pub fn tls(host: &str, leaf: Leaf, guard: Option<Guard>, to: SocketAddr) -> Self {
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.certificate], leaf.key)
            .unwrap();
        Self::tcp(host, Some(TlsAcceptor::from(Arc::new(config))), guard, to)
    }

    /// The same without TLS.
    pub fn plain(host: &str, guard: Option<Guard>, to: SocketAddr) -> Self {
        Self::tcp(host, None, guard, to)
    }

    fn tcp(host: &str, tls: Option<TlsAcceptor>, guard: Option<Guard>, to: SocketAddr) -> Self {
        let runtime = runtime();
        let listener = runtime.block_on_here(TcpListener::bind((host, 0))).unwrap();
        let port = listener.local_addr().unwrap().port();
        runtime.0.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, guard) = (tls.clone(), guard.clone());
                tokio::spawn(async move {
                    match tls {
                        None => pass(stream, guard, to).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                pass(stream, guard, to).await;
                            }
                        }
                    }
                });
            }
        });
        Self {
            port,
            runtime: Some(runtime.0),
        }
    }

    /// A Unix socket before a plain address.
    pub fn unix(path: &Path, to: SocketAddr) -> Self {
        let runtime = runtime();
        let listener = runtime.block_on_here(async { UnixListener::bind(path) });
        let listener = listener.unwrap();
        runtime.0.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(pass(stream, None, to));
            }
        });
        Self {
            port: 0,
            runtime: Some(runtime.0),
        }
    }
}

/// A request's first bytes without the base path [`BASE`], which a door takes off.
fn without_base(bytes: &[u8]) -> Vec<u8> {
    for method in ["GET ", "POST "] {
        let based = format!("{method}{BASE}/");
        if let Some(rest) = bytes.strip_prefix(based.as_bytes()) {
            return [method.as_bytes(), b"/", rest].concat();
        }
    }
    bytes.to_vec()
}

struct OwnThread(Runtime);

impl OwnThread {
    /// Runs `work` to its end, also from within a test's own runtime.
    fn block_on_here<T: Send>(&self, work: impl Future<Output = T> + Send) -> T {
        std::thread::scope(|scope| scope.spawn(|| self.0.block_on(work)).join().unwrap())
    }
}

fn runtime() -> OwnThread {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    OwnThread(builder.worker_threads(1).enable_all().build().unwrap())
}

async fn pass<S>(mut client: S, guard: Option<Guard>, to: SocketAddr)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut head = Vec::new();
    if let Some(guard) = guard {
        while !head.windows(4).any(|window| window == b"\r\n\r\n") {
            if !matches!(client.read_buf(&mut head).await, Ok(1..)) {
                return;
            }
        }
        let text = String::from_utf8_lossy(&head).to_lowercase();
        if !text.contains(&guard.line.to_lowercase()) {
            let _ = client.write_all(guard.refusal.as_bytes()).await;
            let _ = client.shutdown().await;
            return;
        }
    }
    if let Ok(mut server) = TcpStream::connect(to).await
        && server.write_all(&without_base(&head)).await.is_ok()
    {
        let (mut from_client, mut to_client) = tokio::io::split(&mut client);
        let (mut from_server, mut to_server) = server.split();
        let asking = async {
            let mut chunk = vec![0; 64 << 10];
            while let Ok(length @ 1..) = from_client.read(&mut chunk).await {
                if to_server
                    .write_all(&without_base(&chunk[..length]))
                    .await
                    .is_err()
                {
                    break;
                }
            }
            let _ = to_server.shutdown().await;
        };
        let answering = tokio::io::copy(&mut from_server, &mut to_client);
        // The end of either side is the end of both, as it is with a server.
        tokio::select! {
            () = asking => {}
            _ = answering => {}
        }
        // A server that closed without a word must not look like a cut TLS stream.
        let _ = client.shutdown().await;
    }
}
