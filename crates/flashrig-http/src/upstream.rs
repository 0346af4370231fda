//! An LLM server as requests reach it: address, path prefix, key.

use hyper::http::Uri;
use hyper::http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use llm_observe::Dialect;

use crate::redact::Redactor;
use crate::secret::Secret;

/// The name of the header in which Anthropic clients and servers carry keys.
pub const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

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

/// Why an upstream address is not usable.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// Not a URL.
    #[error("server address `{url}` is not a URL ({reason}); write it like http://127.0.0.1:8080")]
    NotAUrl {
        /// What was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A scheme that is not spoken here.
    #[error(
        "server address `{url}` uses {scheme}, and servers are reached over plain http only; \
         give the server's http:// address, or put a local TLS-terminating proxy before it"
    )]
    Scheme {
        /// What was given.
        url: String,
        /// The scheme found in it.
        scheme: String,
    },
    /// Parts that a base address must not have.
    #[error("server address `{url}` has {part}; leave it out")]
    Extra {
        /// What was given, with any password left out.
        url: String,
        /// The part in question.
        part: &'static str,
    },
    /// A key that cannot be put in a header.
    #[error(
        "the server's key holds characters that an HTTP header cannot carry; check where it is read from"
    )]
    Key,
}

/// A validated upstream.
#[derive(Clone, Debug)]
pub struct Upstream {
    host: String,
    port: u16,
    authority: HeaderValue,
    root: String,
    version: Option<String>,
    key: Option<Secret>,
    style: KeyStyle,
    redactor: Redactor,
}

impl Upstream {
    /// Validates a base address such as `http://host:8080`, `http://host:8080/v1` or
    /// `http://host/some/prefix/v1`. Whether `/v1` is there makes no difference.
    ///
    /// # Errors
    /// The address is not a URL, has another scheme than http or has parts that a base address
    /// must not have; or the key does not fit into a header.
    pub fn new(
        base_url: &str,
        key: Option<Secret>,
        style: KeyStyle,
    ) -> Result<Self, UpstreamError> {
        let not_a_url = |reason: &str| UpstreamError::NotAUrl {
            url: without_user_info(base_url),
            reason: reason.to_owned(),
        };
        let uri: Uri = base_url
            .trim()
            .parse()
            .map_err(|e: hyper::http::uri::InvalidUri| not_a_url(&e.to_string()))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some(other) => {
                return Err(UpstreamError::Scheme {
                    url: without_user_info(base_url),
                    scheme: other.to_owned(),
                });
            }
            None => return Err(not_a_url("it has no scheme")),
        }
        let authority = uri.authority().ok_or_else(|| not_a_url("it has no host"))?;
        let extra = |part| UpstreamError::Extra {
            url: without_user_info(base_url),
            part,
        };
        if authority.as_str().contains('@') {
            return Err(extra("a user name or password"));
        }
        if uri.query().is_some() {
            return Err(extra("a query"));
        }
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        if host.is_empty() {
            return Err(not_a_url("it has no host"));
        }
        if let Some(key) = &key {
            HeaderValue::from_str(&format!("Bearer {}", key.expose()))
                .map_err(|_| UpstreamError::Key)?;
        }
        let (root, version) = split_version(uri.path());
        Ok(Self {
            host,
            port: authority.port_u16().unwrap_or(80),
            authority: HeaderValue::from_str(authority.as_str())
                .map_err(|_| not_a_url("its host is unusable"))?,
            root,
            version,
            redactor: Redactor::new(key.as_ref().map(Secret::expose)),
            key,
            style,
        })
    }

    /// Where to connect: host (an IPv6 address without brackets) and port.
    pub fn host_and_port(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// The `Host` header.
    pub fn authority(&self) -> HeaderValue {
        self.authority.clone()
    }

    /// The request target for a client's path and query.
    ///
    /// Clients call `/v1/…`; that segment stands for the server's own version segment, when its
    /// base address names one, and is never doubled.
    ///
    /// # Errors
    /// The result is not a URI.
    pub fn target(
        &self,
        path: &str,
        query: Option<&str>,
    ) -> Result<Uri, hyper::http::uri::InvalidUri> {
        let rest = match (path.strip_prefix("/v1"), &self.version) {
            (Some(rest), Some(version)) if rest.is_empty() || rest.starts_with('/') => {
                format!("/{version}{rest}")
            }
            _ => path.to_owned(),
        };
        let query = query.map_or_else(String::new, |q| format!("?{q}"));
        format!("{}{rest}{query}", self.root).parse()
    }

    /// Puts the server's key into `headers`, which hold no credentials of the client any more.
    pub fn authorize(&self, headers: &mut HeaderMap, dialect: Dialect) {
        let Some(key) = &self.key else { return };
        let anthropic = matches!(
            dialect,
            Dialect::AnthropicMessages | Dialect::AnthropicCountTokens
        );
        let (bearer, x_api_key) = match self.style {
            KeyStyle::ByDialect => (true, anthropic),
            KeyStyle::Bearer => (true, false),
            KeyStyle::XApiKey => (false, true),
        };
        let mut put = |name: HeaderName, text: &str| {
            // Checked when the upstream was made: a key that fits after `Bearer ` fits alone.
            if let Ok(mut value) = HeaderValue::from_str(text) {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        };
        if bearer {
            put(AUTHORIZATION, &format!("Bearer {}", key.expose()));
        }
        if x_api_key {
            put(X_API_KEY, key.expose());
        }
    }

    /// Takes the server's key out of what the server says, should it repeat the key.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

/// Splits `/prefix/v1/` into `/prefix` and `v1`.
fn split_version(path: &str) -> (String, Option<String>) {
    let path = path.trim_end_matches('/');
    if let Some((root, last)) = path.rsplit_once('/')
        && let Some(digits) = last.strip_prefix('v')
        && !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
    {
        return (root.to_owned(), Some(last.to_owned()));
    }
    (path.to_owned(), None)
}

/// `url` with everything before an `@` in its authority removed, fit for an error message.
pub(crate) fn without_user_info(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let separator = if scheme.is_empty() { "" } else { "://" };
    format!("{scheme}{separator}{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(base: &str, path: &str) -> String {
        Upstream::new(base, None, KeyStyle::ByDialect)
            .unwrap()
            .target(path, None)
            .unwrap()
            .to_string()
    }

    #[test]
    fn a_version_segment_is_never_doubled() {
        assert_eq!(target("http://h:1", "/v1/messages"), "/v1/messages");
        assert_eq!(target("http://h:1/", "/v1/messages"), "/v1/messages");
        assert_eq!(target("http://h:1/v1", "/v1/messages"), "/v1/messages");
        assert_eq!(
            target("http://h:1/v1/", "/v1/chat/completions"),
            "/v1/chat/completions"
        );
        assert_eq!(
            target("http://h:1/api/v1", "/v1/messages"),
            "/api/v1/messages"
        );
        assert_eq!(
            target("http://h:1/paas/v4", "/v1/chat/completions"),
            "/paas/v4/chat/completions"
        );
        assert_eq!(target("http://h:1/api", "/v1/messages"), "/api/v1/messages");
        assert_eq!(target("http://h:1/v1", "/health"), "/health");
        assert_eq!(target("http://h:1/v1", "/v10/x"), "/v10/x");
    }

    #[test]
    fn the_query_is_kept() {
        let upstream = Upstream::new("http://h:1/v1", None, KeyStyle::ByDialect).unwrap();
        assert_eq!(
            upstream.target("/v1/messages", Some("beta=true")).unwrap(),
            "/v1/messages?beta=true"
        );
    }

    #[test]
    fn https_is_refused_with_the_reason() {
        let error =
            Upstream::new("https://api.example.com/v1", None, KeyStyle::ByDialect).unwrap_err();
        assert!(matches!(error, UpstreamError::Scheme { .. }));
        assert!(error.to_string().contains("plain http only"), "{error}");
    }

    #[test]
    fn addresses_that_cannot_work_are_refused() {
        for bad in [
            "",
            "localhost",
            "http://",
            "ftp://h",
            "http://u:hunter2@h:1",
            "http://h:1/?x=1",
        ] {
            let error = Upstream::new(bad, None, KeyStyle::ByDialect).unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn debug_output_never_shows_the_key() {
        let upstream = Upstream::new(
            "http://h:1",
            Some(Secret::new("sk-1234")),
            KeyStyle::ByDialect,
        )
        .unwrap();
        assert!(!format!("{upstream:?}").contains("sk-1234"));
        assert_eq!(
            upstream.redactor().text("key sk-1234 is bad"),
            "key ******* is bad"
        );
    }
}
