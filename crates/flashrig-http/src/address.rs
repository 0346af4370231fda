//! A server's address as people write it, validated.

use std::fmt;
use std::path::PathBuf;

use hyper::http::Uri;
use percent_encoding::percent_decode_str;

use crate::secret::Secret;

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
        "server address `{url}` uses {scheme}; write it like http://127.0.0.1:8080, \
         https://host/v1 or unix:/path/to.sock"
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
    /// A user name without a password.
    #[error(
        "server address `{url}` has a user name without a password; write it like \
         http://user:pass@host, or name a variable that holds user:pass with --basic-env"
    )]
    NoPassword {
        /// What was given, without the user name.
        url: String,
    },
    /// A key that cannot be put in a header.
    #[error(
        "the server's key holds characters that an HTTP header cannot carry; check where it is read from"
    )]
    Key,
    /// Two pairs of user name and password.
    #[error(
        "the server's address has a user name and password, and --basic-env (or `basic_env`) gives \
         others; leave one of them out"
    )]
    TwoBasics,
    /// The certificates of this machine cannot be used.
    #[error("server address `{url}` is https, and {reason}")]
    Roots {
        /// The address.
        url: String,
        /// What is wrong.
        reason: String,
    },
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A host (an IPv6 address without brackets) and a port.
    Tcp {
        host: String,
        port: u16,
        /// Whether TLS is spoken there.
        tls: bool,
    },
    /// A Unix socket.
    Unix(PathBuf),
}

/// A server's address: `http://host:8080`, `https://host/llm/v1`, `http://[::1]:8080`,
/// `http://user:pass@host` or `unix:/path/to.sock`, the last with a base path behind a second
/// colon if there is one, `unix:/path/to.sock:/llm/v1` (the form that nginx has). Whether `/v1` is
/// there makes no difference.
///
/// It is shown without user name and password, and without `/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub(crate) place: Place,
    /// The value of the `Host` header.
    pub(crate) authority: String,
    /// What stands before the version segment, without a slash at its end.
    pub(crate) root: String,
    /// The version segment, where the address has one.
    pub(crate) version: Option<String>,
    /// `user:pass`, decoded.
    pub(crate) basic: Option<Secret>,
    /// Scheme and place, for people.
    shown: String,
}

impl Address {
    /// Whether `text` is meant as an address, and not as a name.
    pub fn is_meant(text: &str) -> bool {
        text.contains("://") || text.starts_with("unix:")
    }

    /// Reads an address.
    ///
    /// # Errors
    /// It is not a URL, has another scheme than http, https or unix, or has parts that a base
    /// address must not have.
    pub fn parse(text: &str) -> Result<Self, UpstreamError> {
        let text = text.trim();
        if let Some(path) = text.strip_prefix("unix:") {
            return Self::unix(text, path);
        }
        let not_a_url = |reason: &str| UpstreamError::NotAUrl {
            url: without_user_info(text),
            reason: reason.to_owned(),
        };
        let uri: Uri = text
            .parse()
            .map_err(|e: hyper::http::uri::InvalidUri| not_a_url(&e.to_string()))?;
        let (scheme, tls) = match uri.scheme_str() {
            Some("http") => ("http", false),
            Some("https") => ("https", true),
            Some(other) => {
                return Err(UpstreamError::Scheme {
                    url: without_user_info(text),
                    scheme: other.to_owned(),
                });
            }
            None => return Err(not_a_url("it has no scheme")),
        };
        let authority = uri.authority().ok_or_else(|| not_a_url("it has no host"))?;
        if uri.query().is_some() {
            return Err(UpstreamError::Extra {
                url: without_user_info(text),
                part: "a query",
            });
        }
        let (user_info, place) = match authority.as_str().rsplit_once('@') {
            Some((user_info, place)) => (Some(user_info), place),
            None => (None, authority.as_str()),
        };
        let basic = match user_info.map(|pair| pair.split_once(':')) {
            None => None,
            Some(Some((user, password))) => {
                let decoded = |part| percent_decode_str(part).decode_utf8();
                let (Ok(user), Ok(password)) = (decoded(user), decoded(password)) else {
                    return Err(not_a_url("its user name or password is not UTF-8"));
                };
                Some(Secret::new(format!("{user}:{password}")))
            }
            Some(None) => {
                return Err(UpstreamError::NoPassword {
                    url: without_user_info(text),
                });
            }
        };
        let (host, port) = match place.rsplit_once(':') {
            // The colon is within the brackets of an IPv6 address.
            Some((_, rest)) if rest.ends_with(']') => (place, None),
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        };
        let host = host.trim_matches(['[', ']']).to_owned();
        if host.is_empty() {
            return Err(not_a_url("it has no host"));
        }
        let port = match port.map(str::parse) {
            None if tls => 443,
            None => 80,
            Some(Ok(port)) if port > 0 => port,
            Some(_) => return Err(not_a_url("its port is not a number from 1 to 65535")),
        };
        let (root, version) = split_version(uri.path());
        Ok(Self {
            place: Place::Tcp { host, port, tls },
            authority: place.to_owned(),
            root,
            version,
            basic,
            shown: format!("{scheme}://{place}"),
        })
    }

    fn unix(text: &str, path: &str) -> Result<Self, UpstreamError> {
        let not_a_url = |reason: &str| UpstreamError::NotAUrl {
            url: text.to_owned(),
            reason: reason.to_owned(),
        };
        let path = path.strip_prefix("//").unwrap_or(path);
        let (socket, base) = path.split_once(":/").unwrap_or((path, ""));
        if !socket.starts_with('/') || socket.ends_with('/') {
            return Err(not_a_url(
                "a unix socket is written with its whole path: unix:/path/to.sock, or \
                 unix:/path/to.sock:/base/path",
            ));
        }
        if base.contains(['?', '#']) {
            return Err(UpstreamError::Extra {
                url: text.to_owned(),
                part: "a query",
            });
        }
        let (root, version) = split_version(&format!("/{base}"));
        Ok(Self {
            place: Place::Unix(PathBuf::from(socket)),
            authority: "localhost".to_owned(),
            root,
            version,
            basic: None,
            shown: format!("unix:{socket}"),
        })
    }

    /// Whether it leads to the same server, whoever asks.
    pub fn is_same(&self, other: &Self) -> bool {
        let named_v1 = |address: &Self| match address.version.as_deref() {
            None | Some("v1") => None,
            Some(version) => Some(version.to_owned()),
        };
        let place = |address: &Self| match &address.place {
            Place::Tcp { host, port, tls } => Place::Tcp {
                host: host.to_lowercase(),
                port: *port,
                tls: *tls,
            },
            unix => unix.clone(),
        };
        place(self) == place(other) && self.root == other.root && named_v1(self) == named_v1(other)
    }

    /// The request target for a path and a query of clients.
    ///
    /// Clients call `/v1/…`; that segment stands for the server's own version segment, when its
    /// base address names one, and is never doubled.
    pub(crate) fn target(&self, path: &str, query: Option<&str>) -> String {
        let rest = match (path.strip_prefix("/v1"), &self.version) {
            (Some(rest), Some(version)) if rest.is_empty() || rest.starts_with('/') => {
                format!("/{version}{rest}")
            }
            _ => path.to_owned(),
        };
        let query = query.map_or_else(String::new, |q| format!("?{q}"));
        format!("{}{rest}{query}", self.root)
    }

    /// The place with a request target on it, for people.
    pub(crate) fn with(&self, target: &str) -> String {
        let colon = match self.place {
            Place::Unix(_) if !target.is_empty() => ":",
            _ => "",
        };
        format!("{}{colon}{target}", self.shown)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version.as_deref().filter(|version| *version != "v1");
        let slash = if version.is_some() { "/" } else { "" };
        let base = format!("{}{slash}{}", self.root, version.unwrap_or_default());
        f.write_str(&self.with(&base))
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
        return (root.trim_end_matches('/').to_owned(), Some(last.to_owned()));
    }
    (path.to_owned(), None)
}

/// `text` with what stands before an `@` in the authority of each URL in it removed, fit to be
/// shown and stored.
pub fn without_user_info(text: &str) -> String {
    let Some((before, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let end = rest
        .find(|c: char| matches!(c, '/' | '?' | '#') || c.is_whitespace())
        .unwrap_or(rest.len());
    let (authority, after) = rest.split_at(end);
    let host = authority.rsplit_once('@').map_or(authority, |(_, h)| h);
    format!("{before}://{host}{}", without_user_info(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(base: &str, path: &str) -> String {
        Address::parse(base).unwrap().target(path, None)
    }

    #[test]
    fn a_version_segment_is_never_doubled() {
        for (base, path, expected) in [
            ("http://h:1", "/v1/messages", "/v1/messages"),
            ("http://h:1/", "/v1/messages", "/v1/messages"),
            ("http://h:1/v1", "/v1/messages", "/v1/messages"),
            ("http://h:1/v1/", "/v1/completions", "/v1/completions"),
            ("http://h:1/api/v1", "/v1/messages", "/api/v1/messages"),
            ("http://h:1/paas/v4", "/v1/messages", "/paas/v4/messages"),
            ("http://h:1/api", "/v1/messages", "/api/v1/messages"),
            ("http://h:1/v1", "/health", "/health"),
            ("http://h:1/v1", "/v10/x", "/v10/x"),
            ("unix:/a.sock", "/v1/messages", "/v1/messages"),
            ("unix:/a.sock:/llm/v1", "/v1/messages", "/llm/v1/messages"),
        ] {
            assert_eq!(target(base, path), expected, "{base}");
        }
    }

    #[test]
    fn every_form_of_an_address_leads_to_its_place_and_is_shown_without_v1_and_password() {
        let tcp = |host: &str, port, tls| Place::Tcp {
            host: host.to_owned(),
            port,
            tls,
        };
        for (text, place, authority, shown) in [
            ("http://h", tcp("h", 80, false), "h", "http://h"),
            ("https://h/v1", tcp("h", 443, true), "h", "https://h"),
            (
                "https://h:1/a/v1/",
                tcp("h", 1, true),
                "h:1",
                "https://h:1/a",
            ),
            ("http://h/a/v4", tcp("h", 80, false), "h", "http://h/a/v4"),
            (
                "http://[::1]:8/v1",
                tcp("::1", 8, false),
                "[::1]:8",
                "http://[::1]:8",
            ),
            ("http://u:p@h:1", tcp("h", 1, false), "h:1", "http://h:1"),
            (
                "https://u:p@[::1]",
                tcp("::1", 443, true),
                "[::1]",
                "https://[::1]",
            ),
            (
                "unix:/a/b.sock",
                Place::Unix("/a/b.sock".into()),
                "localhost",
                "unix:/a/b.sock",
            ),
            (
                "unix:///b.sock:/v1",
                Place::Unix("/b.sock".into()),
                "localhost",
                "unix:/b.sock",
            ),
            (
                "unix:/b:/llm/v1",
                Place::Unix("/b".into()),
                "localhost",
                "unix:/b:/llm",
            ),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.place, place, "{text}");
            assert_eq!(address.authority, authority, "{text}");
            assert_eq!(address.to_string(), shown, "{text}");
            assert_eq!(Address::parse(shown).unwrap().place, place, "{text}");
        }
        let basic = Address::parse("http://anna:p%40ss:word@h").unwrap().basic;
        assert_eq!(basic.unwrap().expose(), "anna:p@ss:word");
    }

    #[test]
    fn addresses_that_cannot_work_are_refused_without_repeating_a_password() {
        for (bad, why) in [
            ("", "not a URL"),
            ("localhost", "no scheme"),
            ("http://", "not a URL"),
            ("ftp://h", "uses ftp"),
            ("http://hunter2@h:1", "without a password"),
            ("http://u:hunter2@h:1/?x=1", "a query"),
            ("http://u:hunter2@h:99999", "port"),
            ("http://u:hunter2@", "not a URL"),
            ("unix:a.sock", "whole path"),
            ("unix:/dir/", "whole path"),
            ("unix:/a:/v1?x", "a query"),
        ] {
            let error = Address::parse(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn user_names_and_passwords_are_taken_out_of_texts() {
        for (text, shown) in [
            ("http://u:p@h/x@y", "http://h/x@y"),
            ("vllm@https://u:p@h:1", "vllm@https://h:1"),
            (
                "ask http://a:b@c or http://d:e@f",
                "ask http://c or http://f",
            ),
            ("http://h/?mail=a@b", "http://h/?mail=a@b"),
            ("name", "name"),
        ] {
            assert_eq!(without_user_info(text), shown);
        }
    }
}
