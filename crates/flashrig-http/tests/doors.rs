//! Servers behind doors: TLS with every kind of certificate, guards, Unix sockets, IPv6, base
//! paths, redirects. Each is asked over the real sockets.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use flashrig_clock::Stamp;
use flashrig_http::{Answer, Door, HttpError, KeyStyle, Pool, Secret, Upstream, ask};
use flashrig_testkit::doors::{Authority, Door as Front, Guard, Valid};
use flashrig_testkit::upstream::Upstream as Server;
use http_body_util::Full;
use hyper::Request;

const LIMIT: Duration = Duration::from_secs(30);
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue";

/// A plain server that answers each request with `answer`, and keeps the heads.
fn server(answer: &'static str) -> (SocketAddr, std::sync::mpsc::Receiver<String>) {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let (heads, seen) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut buffer = [0; 8192];
            let length = stream.read(&mut buffer).unwrap_or(0);
            let _ = heads.send(String::from_utf8_lossy(&buffer[..length]).into_owned());
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (addr, seen)
}

/// A file with the CA's certificate.
fn ca_file(authority: &Authority) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("ca.pem");
    fs::write(&file, &authority.pem).unwrap();
    (folder, file)
}

fn trusting(authority: &Authority) -> Door {
    let (_folder, file) = ca_file(authority);
    let mut door = Door::default();
    door.ca(&file).unwrap();
    door
}

async fn asked(url: &str, door: Door) -> Result<Answer, HttpError> {
    let upstream = Upstream::new(url, door, KeyStyle::ByDialect).unwrap();
    ask(&upstream, "/v1/models", None, LIMIT).await
}

#[tokio::test]
async fn an_https_server_with_a_ca_of_its_own_is_reached_by_name_by_address_and_with_a_base_path() {
    let authority = Authority::default();
    for (host, named, base) in [
        ("127.0.0.1", "127.0.0.1", ""),
        ("127.0.0.1", "localhost", "/v1"),
        ("::1", "[::1]", "/deep/llm/v1"),
    ] {
        let (to, seen) = server(OK);
        let leaf = authority.leaf(&["localhost", "127.0.0.1", "::1"], Valid::Now);
        let front = Front::tls(host, leaf, None, to);
        let url = format!("https://{named}:{}{base}", front.port);
        let answer = asked(&url, trusting(&authority)).await.unwrap();
        assert_eq!((answer.status, answer.label().as_str()), (200, "true"));
        let head = seen.recv().unwrap();
        let root = base.trim_end_matches("/v1");
        assert!(
            head.starts_with(&format!("GET {root}/v1/models ")),
            "{head}"
        );
        assert!(head.contains(&format!("{named}:{}", front.port)), "{head}");
    }
}

#[tokio::test]
async fn a_certificate_that_cannot_be_trusted_is_named_with_what_to_do() {
    let authority = Authority::default();
    let other = Authority::named("another CA");
    let again = Authority::default();
    let (to, _seen) = server(OK);
    for (leaf, words) in [
        (
            other.leaf(&["localhost"], Valid::Now),
            &["signed by nobody", "--ca FILE"][..],
        ),
        (
            again.leaf(&["localhost"], Valid::Now),
            &["with another key", "--ca FILE"],
        ),
        (
            authority.leaf(&["localhost"], Valid::Expired),
            &["expired", "days ago", "renew it"],
        ),
        (
            authority.leaf(&["localhost"], Valid::NotYet),
            &["not valid yet", "clocks"],
        ),
        (
            authority.leaf(&["other.example", "127.0.0.9"], Valid::Now),
            &["for other.example, 127.0.0.9 and", "not for localhost"],
        ),
    ] {
        let front = Front::tls("127.0.0.1", leaf, None, to);
        let url = format!("https://localhost:{}", front.port);
        let error = asked(&url, trusting(&authority)).await.unwrap_err();
        assert!(matches!(error, HttpError::Tls { .. }), "{error:?}");
        let said = error.to_string();
        for word in words.iter().chain([&url.as_str()]) {
            assert!(said.contains(word), "{said}");
        }
        // What the verifier says inside is not what people should read.
        assert!(!said.contains("invalid peer certificate"), "{said}");
    }
}

#[tokio::test]
async fn what_does_not_speak_tls_and_what_speaks_nothing_else_are_told() {
    let authority = Authority::default();
    let (to, _seen) = server(OK);
    let url = format!("https://localhost:{}", to.port());
    let said = asked(&url, trusting(&authority))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("does not speak TLS") && said.contains("http://"),
        "{said}"
    );

    let leaf = authority.leaf(&["localhost"], Valid::Now);
    let front = Front::tls("127.0.0.1", leaf, None, to);
    let url = format!("http://localhost:{}", front.port);
    let said = asked(&url, Door::default()).await.unwrap_err().to_string();
    assert!(said.contains("write https://"), "{said}");
}

#[test]
fn a_ca_file_that_cannot_be_used_is_named_with_the_reason() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("ca.pem");
    let name = file.display().to_string();
    let said = || Door::default().ca(&file).unwrap_err().to_string();
    assert!(said().contains("cannot be read") && said().contains(&name));
    for (text, word) in [
        ("", "holds no certificate"),
        (
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "private key",
        ),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "number 1",
        ),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n", "not proper PEM"),
    ] {
        fs::write(&file, text).unwrap();
        assert!(
            said().contains(word) && said().contains(&name),
            "{}",
            said()
        );
    }
}

#[tokio::test]
async fn a_guard_that_wants_basic_or_headers_is_passed_and_says_what_it_wants() {
    let (to, _seen) = server(OK);
    let guard = |line: &str, refusal: &str| {
        let guard = Guard {
            line: line.to_owned(),
            refusal: refusal.to_owned(),
        };
        let front = Front::plain("127.0.0.1", Some(guard), to);
        let url = format!("localhost:{}", front.port);
        (front, url)
    };
    let basic =
        "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n";
    // anna:hunter22
    let (_front, at) = guard("authorization: Basic YW5uYTpodW50ZXIyMg==\r\n", basic);
    let answer = asked(&format!("http://anna:hunter22@{at}"), Door::default()).await;
    assert_eq!(answer.unwrap().status, 200);
    let mut door = Door::default();
    door.basic(Secret::new("anna:hunter22")).unwrap();
    assert_eq!(
        asked(&format!("http://{at}"), door).await.unwrap().status,
        200
    );
    let refused = asked(&format!("http://{at}"), Door::default())
        .await
        .unwrap();
    let wants = refused.turned_away.unwrap().to_string();
    assert!(wants.contains("--basic-env"), "{wants}");

    let page = "HTTP/1.1 403 No\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>";
    let (_front, at) = guard("x-door: open-1234\r\n", page);
    let mut door = Door::default();
    door.header("X-Door", Secret::new("open-1234")).unwrap();
    assert_eq!(
        asked(&format!("http://{at}"), door).await.unwrap().status,
        200
    );
    let refused = asked(&format!("http://{at}"), Door::default())
        .await
        .unwrap();
    let wants = refused.turned_away.unwrap().to_string();
    assert!(wants.contains("--header-env"), "{wants}");
}

#[tokio::test]
async fn a_unix_socket_is_reached_with_and_without_a_base_path() {
    let folder = tempfile::TempDir::new().unwrap();
    let socket = folder.path().join("llm.sock");
    let (to, seen) = server(OK);
    let _front = Front::unix(&socket, to);
    for (base, path) in [("", "/v1/models"), (":/deep/v1", "/deep/v1/models")] {
        let url = format!("unix:{}{base}", socket.display());
        let answer = asked(&url, Door::default()).await.unwrap();
        assert_eq!(answer.status, 200);
        let head = seen.recv().unwrap();
        assert!(head.starts_with(&format!("GET {path} ")), "{head}");
        assert!(
            head.to_lowercase().contains("host: localhost\r\n"),
            "{head}"
        );
    }
    let gone = format!("unix:{}", folder.path().join("gone.sock").display());
    let error = asked(&gone, Door::default()).await.unwrap_err();
    assert!(matches!(error, HttpError::Unreachable { .. }), "{error:?}");
}

#[tokio::test]
async fn a_redirect_is_named_and_not_followed() {
    let (to, seen) = server(
        "HTTP/1.1 307 Go\r\nLocation: https://llm.example/v1/models\r\nContent-Length: 0\r\n\r\n",
    );
    let error = asked(&format!("http://{to}"), Door::default())
        .await
        .unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("answers 307") && said.contains("give https://llm.example with --server"),
        "{said}"
    );
    assert_eq!(seen.try_iter().count(), 1);
}

/// The client waits for the handshake before it has a connection, and no byte of the answer is
/// stamped before the server sent it.
#[tokio::test]
async fn the_handshake_is_a_part_of_connecting_and_the_first_byte_is_that_of_the_socket() {
    let authority = Authority::default();
    let backend = Server::bind().await;
    let to: SocketAddr = backend.url().trim_start_matches("http://").parse().unwrap();
    let front = Front::tls(
        "127.0.0.1",
        authority.leaf(&["localhost"], Valid::Now),
        None,
        to,
    );
    let url = format!("https://localhost:{}", front.port);
    let upstream = Upstream::new(&url, trusting(&authority), KeyStyle::ByDialect).unwrap();
    let request = Request::get("/").header("host", upstream.authority());
    let request = request.body(Full::default()).unwrap();
    let pool = Pool::new(upstream);
    let begun = Stamp::now();
    let (mut connected, mut answered) = (None, None);
    let sending = pool.send(request, Some(LIMIT), |step| {
        if let flashrig_http::Sending::Sent(clocks) = step {
            connected = Some(clocks.connected);
        }
    });
    let serving = async {
        let (mut peer, _) = backend.request().await;
        answered = Some(Stamp::now());
        peer.send(OK.as_bytes()).await;
        peer
    };
    let (sent, _peer) = tokio::join!(sending, serving);
    let (response, connection) = sent.unwrap();
    assert_eq!(response.status(), 200);
    let (connected, answered) = (connected.unwrap(), answered.unwrap());
    assert!(begun < connected && connected < answered);
    assert!(connection.last_read() > answered);
}
