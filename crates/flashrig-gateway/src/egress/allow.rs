//! Where a request wants to go, and whether it may.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The longest host name there is, by the rules of DNS.
const LONGEST_NAME: usize = 255;

/// Host and port, normalized: lower case, no brackets, no dot at the end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination {
    host: String,
    port: u16,
}

impl Destination {
    /// Reads a host as it stands in a request. `None` when it cannot be one.
    pub fn new(host: &str, port: u16) -> Option<Self> {
        let bare = host
            .strip_prefix('[')
            .and_then(|h| h.strip_suffix(']'))
            .unwrap_or(host);
        let bare = bare.strip_suffix('.').unwrap_or(bare);
        let fits = !bare.is_empty()
            && bare.len() <= LONGEST_NAME
            && bare.chars().all(|c| c.is_ascii_graphic());
        // Numeric addresses are written in many ways; the standard's own is recorded.
        let host = match bare.parse::<IpAddr>() {
            Ok(ip) => ip.to_canonical().to_string(),
            Err(_) => bare.to_ascii_lowercase(),
        };
        (fits && port != 0).then_some(Self { host, port })
    }

    /// The host.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The loopback addresses it stands for; empty when it is not on this machine. Decided
    /// without asking a resolver, whose answer could lead elsewhere.
    pub fn loopback(&self) -> Vec<SocketAddr> {
        let ips = match self.host.parse::<IpAddr>() {
            Ok(ip) if ip.is_loopback() => vec![ip],
            // The unspecified address as a destination means this machine.
            Ok(IpAddr::V4(ip)) if ip.is_unspecified() => vec![Ipv4Addr::LOCALHOST.into()],
            Ok(IpAddr::V6(ip)) if ip.is_unspecified() => vec![Ipv6Addr::LOCALHOST.into()],
            Ok(_) => Vec::new(),
            Err(_) if self.host == "localhost" || self.host.ends_with(".localhost") => {
                vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
            }
            Err(_) => Vec::new(),
        };
        ips.into_iter()
            .map(|ip| SocketAddr::new(ip, self.port))
            .collect()
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// One allowed destination: `HOST` or `HOST:PORT`, where HOST may be `*.example.com` for every
/// name below it, and an IPv6 address stands in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    host: String,
    below: bool,
    port: Option<u16>,
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a HOST or HOST:PORT ({reason}); write it like packages.example.org:443")]
pub struct PatternError {
    text: String,
    reason: &'static str,
}

impl std::str::FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let bad = |reason| PatternError {
            text: text.to_owned(),
            reason,
        };
        if text.contains('/') {
            return Err(bad("it has a scheme or a path"));
        }
        let (host, port) = match text.rsplit_once(':') {
            // The colons of `[::1]` are the address's own.
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (text, None),
        };
        if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
            return Err(bad("an IPv6 address needs brackets"));
        }
        let port = port
            .map(|p| match p.parse::<u16>() {
                Ok(p) if p != 0 => Ok(p),
                _ => Err(bad("the port is not one of 1 to 65535")),
            })
            .transpose()?;
        let (host, below) = match host.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (host, false),
        };
        if host.contains('*') {
            return Err(bad(
                "a * may only stand for everything before the first dot",
            ));
        }
        let known = Destination::new(host, 1).ok_or_else(|| bad("there is no host in it"))?;
        Ok(Self {
            host: known.host,
            below,
            port,
        })
    }
}

impl Pattern {
    fn allows(&self, to: &Destination) -> bool {
        let host = if self.below {
            to.host
                .strip_suffix(&self.host)
                .is_some_and(|before| before.len() > 1 && before.ends_with('.'))
        } else {
            to.host == self.host
        };
        host && self.port.is_none_or(|port| port == to.port)
    }
}

/// Every destination that may be reached beside loopback. The default allows none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(Vec<Pattern>);

impl AllowList {
    /// From several lists.
    pub fn of<'p>(patterns: impl IntoIterator<Item = &'p Pattern>) -> Self {
        Self(patterns.into_iter().cloned().collect())
    }

    /// Whether it names this destination.
    pub fn allows(&self, to: &Destination) -> bool {
        self.0.iter().any(|pattern| pattern.allows(to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(host: &str, port: u16) -> Destination {
        Destination::new(host, port).unwrap()
    }

    fn allows(pattern: &str, host: &str, port: u16) -> bool {
        AllowList(vec![pattern.parse().unwrap()]).allows(&to(host, port))
    }

    #[test]
    fn a_pattern_allows_its_host_on_its_port_and_nothing_that_merely_looks_like_it() {
        assert!(allows(
            "packages.example.org:443",
            "Packages.EXAMPLE.org.",
            443
        ));
        assert!(!allows(
            "packages.example.org:443",
            "packages.example.org",
            80
        ));
        assert!(allows("packages.example.org", "packages.example.org", 80));
        assert!(!allows("example.org", "packages.example.org", 443));
        assert!(!allows("example.org", "evilexample.org", 443));
        assert!(!allows("example.org", "example.org.evil.example", 443));
        assert!(allows("*.example.org", "a.b.example.org", 443));
        assert!(!allows("*.example.org", "example.org", 443));
        assert!(!allows("*.example.org", "evilexample.org", 443));
        assert!(!allows("*.example.org", ".example.org", 443));
        assert!(allows("[2001:db8::1]:443", "[2001:DB8:0::1]", 443));
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_its_reason() {
        for (text, reason) in [
            ("", "no host"),
            ("https://a.example", "scheme"),
            ("a.example/x", "path"),
            ("a.example:0", "port"),
            ("a.example:https", "port"),
            ("a.example:70000", "port"),
            ("2001:db8::1", "brackets"),
            ("*", "*"),
            ("a*.example", "*"),
            ("*.*.example", "*"),
            ("a b", "no host"),
        ] {
            let error = text.parse::<Pattern>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn loopback_is_known_by_literal_names_and_addresses_only() {
        for host in [
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "127.0.0.1",
            "127.8.9.1",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "0.0.0.0",
        ] {
            assert!(!to(host, 1).loopback().is_empty(), "{host}");
        }
        for host in [
            "localhost.example.com",
            "notlocalhost",
            "127.0.0.1.nip.io",
            "127.1",
            "2130706433",
            "10.0.0.1",
            "169.254.169.254",
            "[::ffff:8.8.8.8]",
            "[fe80::1]",
        ] {
            assert!(to(host, 1).loopback().is_empty(), "{host}");
        }
    }

    #[test]
    fn a_name_that_cannot_be_one_is_none() {
        for host in [
            "",
            "[]",
            ".",
            "a b",
            "a\u{7f}",
            "ü.example",
            &"a".repeat(256),
        ] {
            assert_eq!(Destination::new(host, 1), None, "{host:?}");
        }
        assert_eq!(Destination::new("a.example", 0), None);
    }
}
