//! An LLM server as requests reach it: its address, and what opens its door.

use hyper::http::Uri;
use hyper::http::header::{HeaderMap, HeaderValue};

use llm_observe::Dialect;

use crate::address::{Address, Place, UpstreamError};
use crate::door::{Door, KeyStyle};
use crate::redact::Redactor;
use crate::tls::Tls;

/// A validated upstream.
#[derive(Clone, Debug)]
pub struct Upstream {
    address: Address,
    authority: HeaderValue,
    tls: Option<Tls>,
    door: Door,
    style: KeyStyle,
    redactor: Redactor,
}

impl Upstream {
    /// Validates a base address, see [`Address`], and what opens its door (a key, if nothing else).
    ///
    /// # Errors
    /// The address cannot be used, the key does not fit into a header, or there is nobody whose
    /// certificates are trusted.
    pub fn new(
        base_url: &str,
        door: impl Into<Door>,
        style: KeyStyle,
    ) -> Result<Self, UpstreamError> {
        Self::to(Address::parse(base_url)?, door, style)
    }

    /// The same for an address that was read already.
    ///
    /// # Errors
    /// See [`Upstream::new`].
    pub fn to(
        address: Address,
        door: impl Into<Door>,
        style: KeyStyle,
    ) -> Result<Self, UpstreamError> {
        let mut door = door.into();
        door.check()?;
        if address.basic.is_some() {
            if door.basic.is_some() {
                return Err(UpstreamError::TwoBasics);
            }
            door.basic.clone_from(&address.basic);
        }
        let tls = match &address.place {
            Place::Tcp {
                host, tls: true, ..
            } => {
                let ca = door.ca.as_deref().map(Vec::as_slice);
                let tls = Tls::new(host, ca).map_err(|reason| UpstreamError::Roots {
                    url: address.to_string(),
                    reason,
                })?;
                Some(tls)
            }
            _ => None,
        };
        let authority =
            HeaderValue::from_str(&address.authority).map_err(|_| UpstreamError::NotAUrl {
                url: address.to_string(),
                reason: "its host is unusable".to_owned(),
            })?;
        Ok(Self {
            address,
            authority,
            tls,
            redactor: door.redactor(),
            door,
            style,
        })
    }

    /// The address, without user name and password.
    pub fn url(&self) -> String {
        self.address.to_string()
    }

    /// The address of a path that clients name, `/v1/models` for instance, for people.
    pub fn url_of(&self, path: &str) -> String {
        self.address.with(&self.address.target(path, None))
    }

    /// The address of a request target, for people.
    pub(crate) fn url_at(&self, target: &str) -> String {
        self.address.with(target)
    }

    /// What of a request target's path stands below the base path, the version segment with it.
    pub(crate) fn below_base<'p>(&self, path: &'p str) -> &'p str {
        path.strip_prefix(self.address.root.as_str())
            .unwrap_or(path)
    }

    /// Where to connect.
    pub(crate) fn place(&self) -> &Place {
        &self.address.place
    }

    /// How TLS is spoken there, if it is.
    pub(crate) fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// What opens its door.
    pub(crate) fn door(&self) -> &Door {
        &self.door
    }

    /// Host (an IPv6 address without brackets) and port; `None` for a Unix socket.
    pub fn host_and_port(&self) -> Option<(&str, u16)> {
        match &self.address.place {
            Place::Tcp { host, port, .. } => Some((host, *port)),
            Place::Unix(_) => None,
        }
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
        self.address.target(path, query).parse()
    }

    /// Puts what opens the server's door into `headers`, which hold no credentials of the client
    /// any more.
    pub fn authorize(&self, headers: &mut HeaderMap, dialect: Dialect) {
        self.door.authorize(headers, dialect, self.style);
    }

    /// Takes the server's key and the like out of what the server says, should it repeat them.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    #[test]
    fn the_query_is_kept() {
        let upstream = Upstream::new("http://h:1/v1", None, KeyStyle::ByDialect).unwrap();
        assert_eq!(
            upstream.target("/v1/messages", Some("beta=true")).unwrap(),
            "/v1/messages?beta=true"
        );
        assert_eq!(upstream.url_of("/v1/models"), "http://h:1/v1/models");
    }

    #[test]
    fn a_user_name_and_password_are_given_once() {
        let mut door = Door::default();
        door.basic(Secret::new("a:b")).unwrap();
        let error = Upstream::new("http://a:b@h", door, KeyStyle::ByDialect).unwrap_err();
        assert!(error.to_string().contains("leave one"), "{error}");
    }

    #[test]
    fn debug_output_never_shows_key_or_password() {
        let key = Some(Secret::new("sk-1234"));
        let upstream = Upstream::new("http://u:hunter22@h:1", key, KeyStyle::ByDialect).unwrap();
        let shown = format!("{upstream:?}");
        assert!(
            !shown.contains("sk-1234") && !shown.contains("hunter22"),
            "{shown}"
        );
        assert_eq!(
            upstream.redactor().text("key sk-1234 of hunter22"),
            "key ******* of ********"
        );
    }
}
