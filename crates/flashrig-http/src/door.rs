//! What opens a server's door: key, user name and password, further headers, a CA of its own.

use std::path::Path;
use std::sync::Arc;

use hyper::http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use llm_observe::Dialect;
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::address::UpstreamError;
use crate::redact::Redactor;
use crate::secret::Secret;
use crate::tls::{CaError, read_ca};

/// The name of the header in which Anthropic clients and servers carry keys.
pub const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Headers that belong to the connection or to the request itself, so that nobody may set them.
const OWN: [&str; 12] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// In which headers the server's key is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyStyle {
    /// `Authorization: Bearer`, and on Anthropic routes `x-api-key` beside it, since servers that
    /// speak both dialects differ in which one they look at.
    #[default]
    ByDialect,
    /// `Authorization: Bearer` only.
    Bearer,
    /// `x-api-key` only.
    XApiKey,
}

/// A header, or a user name and password, that cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// Not the name of a header.
    #[error("{0:?} is not the name of an HTTP header")]
    HeaderName(String),
    /// A header that flashrig sets itself.
    #[error("the header {0} is set by flashrig itself; leave it out")]
    OwnHeader(String),
    /// A value that cannot be sent.
    #[error("the value for the header {0} holds characters that an HTTP header cannot carry")]
    HeaderValue(String),
    /// Not a pair.
    #[error("it does not hold a user name and a password; write it as user:pass")]
    NotAPair,
}

/// What opens a server's door. The default opens nothing, and asks for nothing. Clones are cheap.
#[derive(Clone, Debug, Default)]
pub struct Door {
    pub(crate) key: Option<Secret>,
    /// `user:pass`
    pub(crate) basic: Option<Secret>,
    headers: Vec<(HeaderName, Secret)>,
    pub(crate) ca: Option<Arc<Vec<CertificateDer<'static>>>>,
}

impl From<Option<Secret>> for Door {
    fn from(key: Option<Secret>) -> Self {
        Self {
            key,
            ..Self::default()
        }
    }
}

impl Door {
    /// Sends a header along with each request.
    ///
    /// # Errors
    /// The name or the value cannot be sent, or flashrig sets that header itself.
    pub fn header(&mut self, name: &str, value: Secret) -> Result<(), DoorError> {
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| DoorError::HeaderName(name.to_owned()))?;
        if OWN.contains(&parsed.as_str()) {
            return Err(DoorError::OwnHeader(name.to_owned()));
        }
        HeaderValue::from_str(value.expose())
            .map_err(|_| DoorError::HeaderValue(name.to_owned()))?;
        self.headers.push((parsed, value));
        Ok(())
    }

    /// Sends a user name and a password (HTTP Basic), `user:pass`, along with each request.
    ///
    /// # Errors
    /// It has no colon.
    pub fn basic(&mut self, pair: Secret) -> Result<(), DoorError> {
        if !pair.expose().contains(':') {
            return Err(DoorError::NotAPair);
        }
        self.basic = Some(pair);
        Ok(())
    }

    /// Trusts the certificates in a PEM file, beside those that this machine trusts.
    ///
    /// # Errors
    /// The file cannot be read, or holds no certificate; names the file.
    pub fn ca(&mut self, file: &Path) -> Result<(), CaError> {
        self.ca = Some(Arc::new(read_ca(file)?));
        Ok(())
    }

    /// Checks that everything can be sent.
    pub(crate) fn check(&self) -> Result<(), UpstreamError> {
        let sendable = |key: &Secret| {
            HeaderValue::from_str(&format!("Bearer {}", key.expose()))
                .map(drop)
                .map_err(|_| UpstreamError::Key)
        };
        self.key.as_ref().map_or(Ok(()), sendable)
    }

    /// Puts everything into `headers`, which hold no credentials of the client any more.
    ///
    /// HTTP Basic and a key cannot share `Authorization`: Basic takes it, and the key goes into
    /// `x-api-key`. Named headers come last and win.
    pub(crate) fn authorize(&self, headers: &mut HeaderMap, dialect: Dialect, style: KeyStyle) {
        let mut put = |name: HeaderName, text: &str| {
            // Checked when the door was made: a key that fits after `Bearer ` fits alone.
            if let Ok(mut value) = HeaderValue::from_str(text) {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        };
        let anthropic = matches!(
            dialect,
            Dialect::AnthropicMessages | Dialect::AnthropicCountTokens
        );
        if let Some(key) = &self.key {
            let (bearer, x_api_key) = match style {
                KeyStyle::ByDialect => (true, anthropic || self.basic.is_some()),
                KeyStyle::Bearer => (true, false),
                KeyStyle::XApiKey => (false, true),
            };
            if bearer {
                put(AUTHORIZATION, &format!("Bearer {}", key.expose()));
            }
            if x_api_key {
                put(X_API_KEY, key.expose());
            }
        }
        if let Some(basic) = &self.basic {
            put(AUTHORIZATION, &format!("Basic {}", base64(basic.expose())));
        }
        for (name, value) in &self.headers {
            put(name.clone(), value.expose());
        }
    }

    /// Takes all of it out of texts: the key, the password alone and in every form in which it is
    /// sent, the values of headers and the words in them.
    pub fn redactor(&self) -> Redactor {
        let mut secrets: Vec<String> = Vec::new();
        secrets.extend(self.key.iter().map(|key| key.expose().to_owned()));
        if let Some(basic) = &self.basic {
            let pair = basic.expose();
            secrets.push(pair.to_owned());
            secrets.push(base64(pair));
            secrets.extend(pair.split_once(':').map(|(_, p)| p.to_owned()));
        }
        for (_, value) in &self.headers {
            secrets.push(value.expose().to_owned());
            secrets.extend(value.expose().split_whitespace().map(str::to_owned));
        }
        Redactor::new(secrets.iter().map(String::as_str))
    }
}

/// Base64 with padding (RFC 4648, 4).
fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = DIGITS[(group >> (18 - 6 * place) & 63) as usize];
            out.push(if place > chunk.len() {
                '='
            } else {
                digit.into()
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(door: &Door, dialect: Dialect) -> HeaderMap {
        let mut headers = HeaderMap::new();
        door.authorize(&mut headers, dialect, KeyStyle::ByDialect);
        headers
    }

    #[test]
    fn base64_is_that_of_the_standard() {
        for (text, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("Aladdin:open sesame", "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ] {
            assert_eq!(base64(text), expected);
        }
    }

    #[test]
    fn basic_takes_authorization_and_a_key_beside_it_goes_into_x_api_key() {
        let mut door = Door::from(Some(Secret::new("sk-1")));
        door.basic(Secret::new("Aladdin:open sesame")).unwrap();
        let headers = sent(&door, Dialect::OpenaiChat);
        assert_eq!(
            headers["authorization"],
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
        );
        assert_eq!(headers["x-api-key"], "sk-1");
        assert!(matches!(
            door.basic(Secret::new("anna")),
            Err(DoorError::NotAPair)
        ));
    }

    #[test]
    fn a_named_header_is_sent_and_wins() {
        let mut door = Door::from(Some(Secret::new("sk-1")));
        door.header("CF-Access-Client-Id", Secret::new("id"))
            .unwrap();
        door.header("Authorization", Secret::new("Custom x"))
            .unwrap();
        let headers = sent(&door, Dialect::AnthropicMessages);
        assert_eq!(headers["cf-access-client-id"], "id");
        assert_eq!(headers["authorization"], "Custom x");
        assert!(headers["cf-access-client-id"].is_sensitive());
        for (name, value, word) in [
            ("a b", "x", "not the name"),
            ("Host", "x", "flashrig itself"),
            ("X-A", "a\nb", "characters"),
        ] {
            let error = door.header(name, Secret::new(value)).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
    }

    #[test]
    fn every_form_of_what_opens_the_door_is_masked_and_debug_shows_none() {
        let mut door = Door::from(Some(Secret::new("sk-1234")));
        door.basic(Secret::new("anna:hunter22")).unwrap();
        door.header("X-Token", Secret::new("Token s3cr3t-word"))
            .unwrap();
        let masked = door.redactor();
        for secret in [
            "sk-1234",
            "hunter22",
            "anna:hunter22",
            "YW5uYTpodW50ZXIyMg==",
            "s3cr3t-word",
        ] {
            let text = masked.text(format!("no: {secret}!"));
            assert!(!text.contains(secret), "{text}");
            assert!(!format!("{door:?}").contains(secret), "{door:?}");
        }
    }
}
