//! TLS to a server: whom this machine trusts, and what is wrong with a handshake, in words.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{
    AlertDescription, CertificateError, ClientConfig, Error as RustlsError, RootCertStore, crypto,
};

/// A file of `--ca` that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the CA file {} {why}", .file.display())]
pub struct CaError {
    file: PathBuf,
    why: String,
}

/// The certificates in a PEM file.
pub(crate) fn read_ca(file: &Path) -> Result<Vec<CertificateDer<'static>>, CaError> {
    let error = |why: String| CaError {
        file: file.to_owned(),
        why,
    };
    let pem = std::fs::read(file).map_err(|e| error(format!("cannot be read: {e}")))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|e| error(format!("is not proper PEM: {e}")))?;
    if found.is_empty() {
        let what = if pem.windows(11).any(|w| w == b"PRIVATE KEY") {
            "holds a private key and no certificate; give the CA's certificate"
        } else {
            "holds no certificate; it must be PEM, with lines that say BEGIN CERTIFICATE"
        };
        return Err(error(what.to_owned()));
    }
    let mut store = RootCertStore::empty();
    for (index, certificate) in found.iter().enumerate() {
        store.add(certificate.clone()).map_err(|e| {
            error(format!(
                "holds a certificate (number {}) that cannot be read: {e}",
                index + 1
            ))
        })?;
    }
    Ok(found)
}

/// How TLS is spoken with one server. Clones share it.
#[derive(Clone)]
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Tls {
    /// For a server of this host name or address. It must have a certificate of somebody whom this
    /// machine trusts, or of one of `ca`.
    ///
    /// The machine's own list (keychain, system folders, `SSL_CERT_FILE`) counts: a company's CA
    /// that browsers trust is trusted here, too.
    pub(crate) fn new(host: &str, ca: Option<&[CertificateDer<'static>]>) -> Result<Self, String> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("{host:?} is not a host name that a certificate can have"))?;
        let mut roots = RootCertStore::empty();
        let of_system = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(of_system.certs);
        for certificate in ca.unwrap_or_default() {
            roots
                .add(certificate.clone())
                .map_err(|e| format!("a certificate of --ca cannot be used: {e}"))?;
        }
        if roots.is_empty() {
            let why = of_system.errors.first().map(|e| format!(" ({e})"));
            return Err(format!(
                "this machine has no list of trusted certificates{}; install one (most systems call \
                 the package ca-certificates), or give the server's CA with --ca FILE",
                why.unwrap_or_default()
            ));
        }
        let provider = Arc::new(crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            config: Arc::new(config),
            name,
        })
    }

    /// Shakes hands over a socket that is connected.
    pub(crate) async fn over<S>(&self, socket: S) -> io::Result<TlsStream<S>>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    {
        TlsConnector::from(Arc::clone(&self.config))
            .connect(self.name.clone(), socket)
            .await
    }

    /// What went wrong with a handshake, and what to do.
    pub(crate) fn explain(&self, error: &io::Error) -> String {
        let host = self.name.to_str();
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        match inner {
            Some(RustlsError::InvalidCertificate(fault)) => certificate(fault, &host),
            Some(RustlsError::InvalidMessage(_)) => {
                "what answers there does not speak TLS; if it speaks plain HTTP, write http:// \
                 instead of https://"
                    .to_owned()
            }
            Some(RustlsError::AlertReceived(
                AlertDescription::CertificateRequired | AlertDescription::NoCertificate,
            )) => {
                "it wants a certificate of the client, which flashrig cannot give; use a way to it \
                   that needs none"
                    .to_owned()
            }
            Some(RustlsError::AlertReceived(AlertDescription::UnrecognisedName)) => format!(
                "it knows no host of the name {host}; use a name that the server is set up for"
            ),
            Some(RustlsError::AlertReceived(alert)) => {
                format!("it refused the TLS handshake ({alert:?}); look into its log")
            }
            Some(RustlsError::PeerIncompatible(why)) => format!(
                "it speaks no TLS that is still considered safe ({why:?}); it needs TLS 1.2 or 1.3"
            ),
            Some(other) => format!("the TLS handshake failed: {other}"),
            None if error.kind() == io::ErrorKind::UnexpectedEof => {
                "it closed the connection in the middle of the TLS handshake; it may not speak TLS \
                 there, or not for this host name"
                    .to_owned()
            }
            None => format!("the TLS handshake failed: {error}"),
        }
    }
}

fn certificate(fault: &CertificateError, host: &str) -> String {
    match fault {
        CertificateError::UnknownIssuer => {
            "its certificate is signed by nobody whom this machine trusts; when the server has a CA \
             of its own, give that CA's certificate with --ca FILE"
                .to_owned()
        }
        CertificateError::BadSignature => {
            "its certificate was not signed by the CA that it names: this machine knows a CA of that \
             name with another key; give the CA's present certificate with --ca FILE"
                .to_owned()
        }
        CertificateError::Expired => "its certificate has expired; renew it on the server".to_owned(),
        CertificateError::ExpiredContext { time, not_after } => {
            let days = time.as_secs().saturating_sub(not_after.as_secs()) / 86_400;
            let ago = match days {
                0 => "less than a day ago".to_owned(),
                1 => "a day ago".to_owned(),
                days => format!("{days} days ago"),
            };
            format!(
                "its certificate expired {ago}; renew it on the server, or correct this machine's clock"
            )
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet; check the clocks of this machine and of the one that \
             made the certificate"
                .to_owned()
        }
        CertificateError::NotValidForName => wrong_name(host, ""),
        CertificateError::NotValidForNameContext { presented, .. } => {
            // They come as `DnsName("host")` and `IpAddress(192.0.2.1)`.
            let bare = |name: &String| {
                let inner = name.split_once('(').map_or(name.as_str(), |(_, rest)| rest);
                inner.trim_matches(['"', ')']).to_owned()
            };
            let names: Vec<String> = presented.iter().map(bare).collect();
            wrong_name(host, &names.join(", "))
        }
        CertificateError::Revoked => "its certificate was revoked; give the server a new one".to_owned(),
        other => {
            let text = format!("{other:?}");
            if text.contains("CaUsedAsEndEntity") {
                return "its certificate is that of a CA and not of a server; give the server one \
                        that its CA signed"
                    .to_owned();
            }
            format!("its certificate cannot be accepted: {other}")
        }
    }
}

fn wrong_name(host: &str, presented: &str) -> String {
    let of = match presented {
        "" => "for other names".to_owned(),
        names => format!("for {names}"),
    };
    format!(
        "its certificate is {of} and not for {host}; write the address with a name that the \
         certificate has, or give the server a certificate for {host}"
    )
}
