//! Requests that a web page made, at a listener without tokens.
//!
//! Every page that a browser shows may send requests to this machine, and by a name that it makes
//! point here (DNS rebinding) read the answers too. Where no token tells the machine's own clients
//! from such pages, these two headers do, which pages cannot choose.

use std::net::IpAddr;

use hyper::http::Uri;
use hyper::http::header::{HOST, HeaderMap, ORIGIN};
use hyper::http::uri::Authority;

/// Why the request is refused; `None` when it may go on. `listen` is the address that is
/// listened on.
pub(super) fn violation(uri: &Uri, headers: &HeaderMap, listen: IpAddr) -> Option<String> {
    const NEXT: &str = "if this is meant, give its client a token with --client NAME=TOKEN";
    for origin in headers.get_all(ORIGIN) {
        let origin = String::from_utf8_lossy(origin.as_bytes());
        if is_page(&origin) {
            let shown: String = origin.chars().take(100).collect();
            return Some(format!(
                "this request was made by a web page (origin {shown}), and web pages may not use \
                 this gateway; {NEXT}"
            ));
        }
    }
    let named = headers.get_all(HOST).iter().map(|host| host.to_str().ok());
    let named = named.map(|host| host.and_then(|host| host.parse().ok()));
    for authority in named.chain(uri.authority().map(|authority| Some(authority.clone()))) {
        if !authority.as_ref().is_some_and(|host| is_here(host, listen)) {
            let shown = authority.map_or_else(|| "unreadable".to_owned(), |host| host.to_string());
            let shown: String = shown.chars().take(100).collect();
            return Some(format!(
                "this request is for the host {shown}, which is not this gateway's; use \
                 http://127.0.0.1 or http://localhost with its port, or, {NEXT}"
            ));
        }
    }
    None
}

/// Whether an origin is that of a web page. Pages without one of their own say `null`. Other
/// schemes are those of programs (an editor's panels, say) and of browser extensions.
fn is_page(origin: &str) -> bool {
    let origin = origin.trim().to_ascii_lowercase();
    match origin.split_once("://") {
        Some((scheme, _)) => matches!(scheme, "http" | "https"),
        None => true,
    }
}

/// Whether a host can only be this one: no other name can be made to point here by somebody else.
fn is_here(authority: &Authority, listen: IpAddr) -> bool {
    let host = authority.host();
    let host = host.strip_suffix('.').unwrap_or(host);
    let address = host.trim_start_matches('[').trim_end_matches(']');
    match address.parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || address == listen,
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_told_from_programs_by_their_origin() {
        for page in ["https://evil.example", "HTTP://localhost:3000", "null", ""] {
            assert!(is_page(page), "{page}");
        }
        for program in ["vscode-webview://1a2b", "app://-", "file://"] {
            assert!(!is_page(program), "{program}");
        }
    }

    #[test]
    fn only_addresses_of_this_machine_and_localhost_are_its_names() {
        let listen = "10.1.2.3".parse().unwrap();
        let here = |host: &str| is_here(&host.parse().unwrap(), listen);
        for own in [
            "127.0.0.1:8081",
            "127.9.9.9",
            "[::1]:8081",
            "LocalHost:1",
            "localhost.",
            "10.1.2.3:8081",
        ] {
            assert!(here(own), "{own}");
        }
        for other in [
            "evil.example:8081",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.1.2.4",
            "0.0.0.0:8081",
        ] {
            assert!(!here(other), "{other}");
        }
    }
}
