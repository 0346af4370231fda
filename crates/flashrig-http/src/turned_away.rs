//! A server, or what stands before it, that does not let a request in: redirects, and what a
//! refusal asks for. Redirects are never followed: what answers elsewhere is not the server that is
//! measured.

use std::fmt;

use hyper::header::{CONTENT_TYPE, HeaderMap, LOCATION, WWW_AUTHENTICATE};
use hyper::{StatusCode, Uri};

use crate::address::without_user_info;
use crate::door::Door;
use crate::upstream::Upstream;

/// Parts of addresses at which people log in.
const LOGIN: [&str; 8] = [
    "login",
    "signin",
    "sign-in",
    "sign_in",
    "oauth",
    "sso",
    "/auth",
    "cdn-cgi/access",
];

/// A redirect that was not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// The status.
    pub status: u16,
    /// Where it points to, without query and without a user name.
    pub to: String,
    /// Whether that is a page at which people log in, by its address.
    pub is_login: bool,
    /// The base address to give instead; `None` when it is no other than the one that was asked.
    pub address: Option<String>,
}

impl Redirect {
    /// The redirect in an answer to a request for `target`, if it is one.
    pub(crate) fn of(
        status: StatusCode,
        headers: &HeaderMap,
        target: &Uri,
        upstream: &Upstream,
    ) -> Option<Self> {
        if !status.is_redirection() {
            return None;
        }
        let location = String::from_utf8_lossy(headers.get(LOCATION)?.as_bytes()).into_owned();
        let location = location.split(['?', '#']).next().unwrap_or_default().trim();
        let shown = match location {
            absolute if absolute.contains("://") => without_user_info(absolute),
            same_scheme if same_scheme.starts_with("//") => {
                let scheme = upstream.url();
                let scheme = scheme.split(':').next().unwrap_or_default().to_owned();
                without_user_info(&format!("{scheme}:{same_scheme}"))
            }
            path => upstream.url_at(&beside(target.path(), path)),
        };
        let shown = upstream.redactor().text(shown).into_owned();
        let path = target.path();
        // Below the base path stands what the client asked for; the new base is what is left.
        let asked = upstream.below_base(path);
        let base = shown.strip_suffix(asked).unwrap_or(&shown);
        let address = Some(base.trim_end_matches('/').to_owned());
        let own = upstream.url_at(path.strip_suffix(asked).unwrap_or_default());
        let lower = shown.to_lowercase();
        Some(Self {
            status: status.as_u16(),
            is_login: LOGIN.iter().any(|part| lower.contains(part)),
            address: address.filter(|address| *address != own && shown.ends_with(asked)),
            to: shown,
        })
    }
}

/// A path that is relative to another one.
fn beside(asked: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let folder = asked.rsplit_once('/').map_or("", |(folder, _)| folder);
    format!("{folder}/{path}")
}

impl fmt::Display for Redirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, to, .. } = self;
        if self.is_login {
            return write!(
                f,
                "the server answers {status} and points to a login page, {to}: it does not know who \
                 asks; give what it wants with --key-env, --header-env or --basic-env, or give an \
                 address that needs no login"
            );
        }
        write!(f, "the server answers {status} and points to {to}: ")?;
        match &self.address {
            Some(address) => write!(
                f,
                "give {address} with --server (flashrig gateway: --upstream)"
            ),
            None => f.write_str(
                "flashrig follows no redirects; check the server's base path, and the proxy before it",
            ),
        }
    }
}

/// What a refusal (401 or 403) asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnedAway {
    /// 401 with `WWW-Authenticate: Basic`: a user name and a password.
    WantsBasic {
        /// Whether they were given.
        given: bool,
    },
    /// An HTML page: something before the server refuses, and may want headers.
    Page {
        /// The status.
        status: u16,
    },
    /// Anything else: a key.
    WantsKey {
        /// Whether one was given.
        given: bool,
    },
}

impl TurnedAway {
    /// What an answer asks for, if it is a refusal.
    pub(crate) fn of(status: StatusCode, headers: &HeaderMap, door: &Door) -> Option<Self> {
        if !matches!(status.as_u16(), 401 | 403 | 407) {
            return None;
        }
        let begins = |value: &[u8], with: &[u8]| {
            let start = value.get(..with.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(with))
        };
        let challenges = headers.get_all(WWW_AUTHENTICATE).iter();
        let mut schemes = challenges.flat_map(|value| value.as_bytes().split(|b| *b == b','));
        if schemes.any(|scheme| begins(scheme.trim_ascii(), b"basic")) {
            return Some(Self::WantsBasic {
                given: door.basic.is_some(),
            });
        }
        let html = headers.get(CONTENT_TYPE);
        if html.is_some_and(|of| begins(of.as_bytes(), b"text/html")) {
            return Some(Self::Page {
                status: status.as_u16(),
            });
        }
        Some(Self::WantsKey {
            given: door.key.is_some(),
        })
    }
}

impl fmt::Display for TurnedAway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WantsBasic { given: false } => f.write_str(
                "it wants a user name and a password (HTTP Basic); put user:pass into a variable and \
                 name it with --basic-env",
            ),
            Self::WantsBasic { given: true } => f.write_str(
                "it does not take the user name and password that it was given (HTTP Basic); check \
                 them",
            ),
            Self::Page { status } => write!(
                f,
                "it refuses ({status}) with an HTML page, so a proxy or a gate before the server \
                 refuses; if that wants headers, give each with --header-env NAME=VARIABLE"
            ),
            Self::WantsKey { given: false } => f.write_str("give the key with --key-env NAME"),
            Self::WantsKey { given: true } => f.write_str(
                "it does not take the key that it was given; check the variable that --key-env names",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyStyle, Secret};

    fn headers(name: hyper::header::HeaderName, value: &str) -> HeaderMap {
        [(name, value.parse().unwrap())].into_iter().collect()
    }

    fn redirect(base: &str, target: &str, to: &str) -> Redirect {
        let upstream = Upstream::new(base, None, KeyStyle::ByDialect).unwrap();
        let status = StatusCode::TEMPORARY_REDIRECT;
        Redirect::of(
            status,
            &headers(LOCATION, to),
            &target.parse().unwrap(),
            &upstream,
        )
        .unwrap()
    }

    #[test]
    fn a_redirect_names_the_address_to_give_in_every_form_of_a_location() {
        for (base, target, to, address) in [
            (
                "http://h",
                "/v1/models",
                "https://h/v1/models",
                Some("https://h"),
            ),
            (
                "http://h",
                "/v1/models",
                "https://g:2/llm/v1/models?k=secret",
                Some("https://g:2/llm"),
            ),
            (
                "http://h",
                "/v1/models",
                "/llm/v1/models",
                Some("http://h/llm"),
            ),
            ("http://h", "/v1/models", "//g/v1/models", Some("http://g")),
            (
                "http://h/a/v1",
                "/a/v1/models",
                "https://h/a/v1/models",
                Some("https://h/a"),
            ),
            ("http://h", "/v1/models", "http://h/v1/models", None),
            ("http://h", "/v1/models", "/v1/models", None),
            ("http://h", "/v1/models", "models", None),
            ("http://h", "/v1/models", "/v1/models/", None),
            ("http://h", "/v1/models", "https://u:hunter22@g/", None),
        ] {
            let found = redirect(base, target, to);
            assert_eq!(found.address.as_deref(), address, "{to}");
            let said = found.to_string();
            assert!(
                !said.contains("secret") && !said.contains("hunter"),
                "{said}"
            );
            assert!(said.contains("answers 307 and points to http"), "{said}");
            if let Some(address) = address {
                assert!(
                    said.contains(&format!("give {address} with --server")),
                    "{said}"
                );
            }
        }
    }

    #[test]
    fn a_login_page_is_told_from_another_address() {
        for to in [
            "/login?next=/v1",
            "https://sso.example.com/x",
            "https://h/oauth2/start",
        ] {
            let said = redirect("http://h", "/v1/models", to).to_string();
            assert!(
                said.contains("login page") && said.contains("--header-env"),
                "{said}"
            );
        }
    }

    #[test]
    fn a_refusal_says_which_flag_gives_what_it_asks_for() {
        let of = |status, headers: &HeaderMap, door: &Door| {
            let status = StatusCode::from_u16(status).unwrap();
            TurnedAway::of(status, headers, door).map(|found| found.to_string())
        };
        let basic = headers(WWW_AUTHENTICATE, "Negotiate, BASIC realm=\"x\"");
        let html = headers(CONTENT_TYPE, "text/html; charset=utf-8");
        let none = HeaderMap::new();
        let closed = Door::default();
        let mut open = Door::from(Some(Secret::new("k")));
        open.basic(Secret::new("a:b")).unwrap();
        for (status, headers, door, word) in [
            (401, &basic, &closed, "--basic-env"),
            (401, &basic, &open, "does not take the user name"),
            (403, &html, &closed, "--header-env"),
            (401, &none, &closed, "give the key with --key-env NAME"),
            (403, &none, &open, "does not take the key"),
        ] {
            let said = of(status, headers, door).unwrap();
            assert!(said.contains(word), "{said}");
        }
        assert_eq!(of(404, &html, &closed), None);
    }
}
