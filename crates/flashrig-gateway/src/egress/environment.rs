//! The variables in which programs look for a proxy.

/// Loopback by its literal names: what must not go through a proxy.
pub const LOOPBACK_NAMES: &str = "127.0.0.1,localhost,::1,[::1]";

/// Variables that name a proxy by its URL. Programs differ in which they read, and in whether the
/// large or the small one wins.
const BY_URL: [&str; 14] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "FTP_PROXY",
    "ftp_proxy",
    "WS_PROXY",
    "WSS_PROXY",
    "npm_config_proxy",
    "npm_config_https_proxy",
    "YARN_HTTP_PROXY",
    "YARN_HTTPS_PROXY",
];

/// Everything that leads a program to the proxy at `url`, and past it to loopback.
pub fn proxy_environment(url: &str) -> Vec<(&'static str, String)> {
    let mut env: Vec<(&'static str, String)> =
        BY_URL.iter().map(|name| (*name, url.to_owned())).collect();
    for name in ["NO_PROXY", "no_proxy", "npm_config_noproxy"] {
        env.push((name, LOOPBACK_NAMES.to_owned()));
    }
    // Node's own fetch and http read none of these unless told to.
    env.push(("NODE_USE_ENV_PROXY", "1".to_owned()));
    env
}
