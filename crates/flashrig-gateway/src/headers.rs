//! Headers: what belongs to one hop only, and the credentials that come in and go out.

use hyper::http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap,
    HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};

use flashrig_http::{Secret, Upstream, X_API_KEY};
use flashrig_record::Dialect;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// What a request's credentials are worth here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Credentials {
    /// They hold the session's token.
    Valid,
    /// They hold something else.
    Wrong,
    /// There are none.
    Absent,
}

/// Compares the request's credentials with the session's token.
pub(super) fn check(headers: &HeaderMap, token: &Secret) -> Credentials {
    let bearers = headers
        .get_all(AUTHORIZATION)
        .iter()
        .map(|value| bearer(value.as_bytes()));
    let keys = headers.get_all(X_API_KEY).iter().map(HeaderValue::as_bytes);
    let mut found = Credentials::Absent;
    for offered in bearers.chain(keys) {
        if same(offered, token.expose().as_bytes()) {
            return Credentials::Valid;
        }
        found = Credentials::Wrong;
    }
    found
}

/// The token of an `Authorization: Bearer` value; the whole value for any other scheme.
fn bearer(value: &[u8]) -> &[u8] {
    match value.split_at_checked(7) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => token.trim_ascii(),
        _ => value,
    }
}

/// Equality that takes as long for a near miss as for a far one.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |acc, (x, y)| acc | (x ^ y)) == 0
}

/// Removes headers that concern one connection only (RFC 9110, 7.6.1).
pub(super) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // A client must not be able to have these removed by naming them.
        .filter(|name| *name != HOST && *name != CONTENT_LENGTH)
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in [
        CONNECTION,
        KEEP_ALIVE,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        PROXY_CONNECTION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ] {
        headers.remove(name);
    }
}

/// Turns the client's headers into those for the server. `length` is the body's length, `None`
/// for a request without a body.
pub(super) fn for_server(
    headers: &mut HeaderMap,
    upstream: &Upstream,
    dialect: Dialect,
    with_key: bool,
    length: Option<usize>,
) {
    strip_hop_by_hop(headers);
    headers.remove(AUTHORIZATION);
    headers.remove(X_API_KEY);
    // The whole body is here already, there is nothing left to expect.
    headers.remove(EXPECT);
    headers.insert(HOST, upstream.authority());
    match length {
        Some(length) => {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        None => {
            headers.remove(CONTENT_LENGTH);
        }
    }
    if !upstream.redactor().is_empty() {
        // In a compressed answer the key could not be found, should the server repeat it.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    if with_key {
        upstream.authorize(headers, dialect);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_http::KeyStyle;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn the_token_counts_in_either_header() {
        let token = Secret::new("t0ken");
        let check = |pairs: &[(&str, &str)]| super::check(&headers(pairs), &token);
        assert_eq!(
            check(&[("authorization", "Bearer t0ken")]),
            Credentials::Valid
        );
        assert_eq!(
            check(&[("authorization", "bearer t0ken")]),
            Credentials::Valid
        );
        assert_eq!(check(&[("x-api-key", "t0ken")]), Credentials::Valid);
        assert_eq!(
            check(&[("x-api-key", "other"), ("authorization", "Bearer t0ken")]),
            Credentials::Valid
        );
        assert_eq!(
            check(&[("authorization", "Bearer t0ke")]),
            Credentials::Wrong
        );
        assert_eq!(check(&[("authorization", "")]), Credentials::Wrong);
        assert_eq!(check(&[("accept", "*/*")]), Credentials::Absent);
    }

    #[test]
    fn hop_by_hop_headers_go_and_the_rest_stays() {
        let mut map = headers(&[
            ("connection", "keep-alive, X-Private"),
            ("x-private", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("accept-encoding", "gzip, br"),
            ("anthropic-beta", "a,b"),
        ]);
        strip_hop_by_hop(&mut map);
        assert_eq!(
            map,
            headers(&[("accept-encoding", "gzip, br"), ("anthropic-beta", "a,b")])
        );
    }

    #[test]
    fn the_clients_token_is_replaced_by_the_servers_key() {
        let key = Some(Secret::new("sk-0123456789"));
        let upstream = Upstream::new("http://h:8080/v1", key, KeyStyle::ByDialect).unwrap();
        let mut map = headers(&[("authorization", "Bearer t"), ("host", "127.0.0.1:1")]);
        for_server(
            &mut map,
            &upstream,
            Dialect::AnthropicMessages,
            true,
            Some(3),
        );
        let want = [
            ("host", "h:8080"),
            ("accept-encoding", "identity"),
            ("content-length", "3"),
            ("authorization", "Bearer sk-0123456789"),
            ("x-api-key", "sk-0123456789"),
        ];
        assert_eq!(map, headers(&want));

        let mut map = headers(&[("x-api-key", "t")]);
        for_server(&mut map, &upstream, Dialect::Other, false, None);
        let want = [("host", "h:8080"), ("accept-encoding", "identity")];
        assert_eq!(map, headers(&want));
    }
}
