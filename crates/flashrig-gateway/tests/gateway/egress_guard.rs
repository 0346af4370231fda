//! The egress guard at byte level: who is refused, how, and what is written down.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use flashrig_clock::Origin;
use flashrig_gateway::egress::{AllowList, EgressGuard, GuardConfig, Pattern};
use flashrig_record::{EgressFact, EgressOutcome};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Long enough for the slowest machine; nothing waits for it unless something is wrong.
const PATIENCE: Duration = Duration::from_secs(60);

async fn guard(allowed: &[&str]) -> EgressGuard {
    let patterns: Vec<Pattern> = allowed.iter().map(|p| p.parse().unwrap()).collect();
    EgressGuard::open(GuardConfig {
        label: "add-flag".into(),
        allow: AllowList::of(&patterns),
        origin: Origin::now(),
    })
    .await
    .unwrap()
}

/// Sends bytes, ends the sending side, and reads to the end.
async fn say(addr: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    // A guard that has heard enough may close before everything is written.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, async {
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut chunk).await {
            answer.extend_from_slice(&chunk[..count]);
        }
    })
    .await
    .expect("the guard neither answers nor closes");
    answer
}

async fn ask(addr: SocketAddr, text: &str) -> String {
    String::from_utf8_lossy(&say(addr, text.as_bytes()).await).into_owned()
}

fn rows(facts: &[EgressFact]) -> Vec<(String, String, u64, EgressOutcome)> {
    let mut rows: Vec<_> = facts
        .iter()
        .map(|f| {
            let to = match (&f.host, f.port) {
                (Some(host), Some(port)) => format!("{host}:{port}"),
                _ => String::new(),
            };
            (to, f.method.clone(), f.count, f.outcome)
        })
        .collect();
    rows.sort();
    rows
}

fn row(
    to: &str,
    method: &str,
    count: u64,
    outcome: EgressOutcome,
) -> (String, String, u64, EgressOutcome) {
    (to.to_owned(), method.to_owned(), count, outcome)
}

/// A server that answers every connection's first bytes with a whole answer, and tells them.
async fn plain_server(ip: IpAddr) -> (SocketAddr, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind((ip, 0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (seen, reported) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let seen = seen.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).await.is_ok() {
                    head.push(byte[0]);
                }
                let _ = seen.send(String::from_utf8_lossy(&head).into_owned());
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
                    .await;
            });
        }
    });
    (addr, reported)
}

/// This machine's address on its network, which is not loopback.
fn outside_address() -> Option<IpAddr> {
    // Connecting a datagram socket sends nothing; it only asks for a route.
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip)
}

#[tokio::test]
async fn a_tunnel_to_a_public_host_is_refused_with_words_that_say_who_and_why() {
    let guard = guard(&[]).await;
    let begun = Instant::now();
    let answer = ask(
        guard.addr(),
        "CONNECT Statsig.example.com:443 HTTP/1.1\r\nHost: statsig.example.com:443\r\n\r\n",
    )
    .await;
    eprintln!(
        "refused after {:.3} ms",
        begun.elapsed().as_secs_f64() * 1e3
    );
    assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
    for message in [
        "flashrig's egress guard refused CONNECT statsig.example.com:443",
        "session add-flag",
        "--allow-egress statsig.example.com:443",
        "egress_allow",
    ] {
        assert!(answer.contains(message), "{answer}");
    }
    assert!(
        answer
            .to_lowercase()
            .contains("proxy-status: flashrig; error=http_request_denied")
    );
    let facts = guard.close().await;
    assert_eq!(
        rows(&facts),
        [row(
            "statsig.example.com:443",
            "CONNECT",
            1,
            EgressOutcome::Refused
        )]
    );
}

#[tokio::test]
async fn a_prompt_posted_in_the_clear_is_refused_and_the_refusal_arrives_though_the_body_is_large()
{
    let guard = guard(&[]).await;
    let body = "p".repeat(3_000_000);
    let answer = ask(
        guard.addr(),
        &format!(
            "POST http://user:secret@collect.example.com/v1?key=secret HTTP/1.1\r\n\
             Host: collect.example.com\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        ),
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(!answer.contains("secret"), "{answer}");
    let facts = guard.close().await;
    assert_eq!(
        rows(&facts),
        [row(
            "collect.example.com:80",
            "POST",
            1,
            EgressOutcome::Refused
        )]
    );
    assert!(!serde_json::to_string(&facts).unwrap().contains("secret"));
}

#[tokio::test]
async fn a_refused_post_is_answered_before_its_body_is_there() {
    let guard = guard(&[]).await;
    let mut stream = TcpStream::connect(guard.addr()).await.unwrap();
    let head = "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut answer))
        .await
        .expect("the refusal waits for the body")
        .unwrap();
    assert_eq!(&answer, b"HTTP/1.1 403");
}

#[tokio::test]
async fn requests_on_one_connection_are_each_refused_and_counted_by_host_port_and_method() {
    let guard = guard(&[]).await;
    let get = |host: &str| format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let asked = [
        get("a.example"),
        get("a.example:8080"),
        get("A.example."),
        get("[2001:db8::7]"),
    ];
    let answer = ask(guard.addr(), &asked.concat()).await;
    assert_eq!(answer.matches("HTTP/1.1 403 ").count(), 4, "{answer}");
    assert_eq!(
        rows(&guard.close().await),
        [
            row("2001:db8::7:80", "GET", 1, EgressOutcome::Refused),
            row("a.example:80", "GET", 2, EgressOutcome::Refused),
            row("a.example:8080", "GET", 1, EgressOutcome::Refused),
        ]
    );
}

#[tokio::test]
async fn what_is_refused_is_never_connected_to() {
    let Some(ip) = outside_address() else {
        eprintln!("skipped: this machine has no address but loopback");
        return;
    };
    let (server, mut seen) = plain_server(ip).await;
    let guard = guard(&[]).await;
    for text in [
        format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
        format!("GET http://{server}/ HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ] {
        let answer = ask(guard.addr(), &text).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
    drop(guard);
    // The server is there, and this is the first that it hears.
    TcpStream::connect(server)
        .await
        .unwrap()
        .write_all(b"first\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(seen.recv().await.unwrap(), "first\r\n\r\n");
}

#[tokio::test]
async fn what_is_allowed_is_tunnelled_and_forwarded_and_counted_apart() {
    let Some(ip) = outside_address() else {
        eprintln!("skipped: this machine has no address but loopback");
        return;
    };
    let (server, mut seen) = plain_server(ip).await;
    let guard = guard(&[&server.to_string()]).await;
    let tunnelled = ask(
        guard.addr(),
        &format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\nraw\r\n\r\n"),
    )
    .await;
    assert!(tunnelled.starts_with("HTTP/1.1 200 "), "{tunnelled}");
    assert!(tunnelled.ends_with("hello"), "{tunnelled}");
    assert_eq!(seen.recv().await.unwrap(), "raw\r\n\r\n");
    let forwarded = ask(
        guard.addr(),
        &format!(
            "GET http://u:p@{server}/x?y=1 HTTP/1.1\r\nHost: other.example\r\n\
             Proxy-Authorization: Basic eA==\r\nConnection: close, x-hop\r\nX-Hop: 1\r\n\r\n"
        ),
    )
    .await;
    assert!(forwarded.starts_with("HTTP/1.1 200 "), "{forwarded}");
    assert!(forwarded.ends_with("hello"), "{forwarded}");
    let head = seen.recv().await.unwrap().to_lowercase();
    assert!(head.starts_with("get /x?y=1 http/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("host: {server}\r\n")), "{head}");
    for gone in ["proxy-authorization", "x-hop", "other.example", "u:p"] {
        assert!(!head.contains(gone), "{head}");
    }
    let refused = ask(guard.addr(), "CONNECT a.example:443 HTTP/1.1\r\n\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
    let server = server.to_string();
    let mut want = [
        row(&server, "CONNECT", 1, EgressOutcome::Allowed),
        row(&server, "GET", 1, EgressOutcome::Allowed),
        row("a.example:443", "CONNECT", 1, EgressOutcome::Refused),
    ];
    want.sort();
    assert_eq!(rows(&guard.close().await), want);
}

#[tokio::test]
async fn loopback_passes_for_programs_that_ask_the_proxy_for_it_too() {
    let (server, _seen) = plain_server("127.0.0.1".parse().unwrap()).await;
    let guard = guard(&[]).await;
    let port = server.port();
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}")] {
        let answer = ask(
            guard.addr(),
            &format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\nx\r\n\r\n"),
        )
        .await;
        assert!(answer.ends_with("hello"), "{answer}");
        let answer = ask(
            guard.addr(),
            &format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
        )
        .await;
        assert!(answer.ends_with("hello"), "{answer}");
    }
    let facts = guard.close().await;
    assert_eq!(facts.iter().map(|f| f.count).sum::<u64>(), 4);
    assert!(facts.iter().all(|f| f.outcome == EgressOutcome::Local));
}

#[tokio::test]
async fn a_loopback_port_where_nobody_listens_is_a_bad_gateway_and_not_a_refusal() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = free.local_addr().unwrap();
    drop(free);
    let guard = guard(&[]).await;
    let answer = ask(
        guard.addr(),
        &format!("CONNECT {addr} HTTP/1.1\r\nHost: {addr}\r\n\r\n"),
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
}

#[tokio::test]
async fn a_request_split_at_every_byte_is_refused_all_the_same() {
    let guard = guard(&[]).await;
    let mut stream = TcpStream::connect(guard.addr()).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for byte in b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n" {
        stream.write_all(&[*byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 403");
}

#[tokio::test]
async fn what_is_no_request_to_a_proxy_gets_a_clear_status_and_a_row_but_marks_nobody() {
    for text in [
        "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "CONNECT a.example HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "CONNECT a.example:0 HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "CONNECT a.example:99999 HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET gopher://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "NOT HTTP AT ALL\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\u{7f}\x03\x03",
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\n\
         Content-Length: 2\r\n\r\nxx",
        "GET http://a.example/ HTTP/1.1\r\nbroken header\r\n\r\n",
    ] {
        let guard = guard(&[]).await;
        let answer = ask(guard.addr(), text).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{text:?}: {answer}");
        let facts = guard.close().await;
        assert_eq!(facts.len(), 1, "{text:?}: {facts:?}");
        assert_eq!(facts[0].outcome, EgressOutcome::Unserved, "{text:?}");
        assert_eq!(facts[0].host, None, "{text:?}");
    }
}

#[tokio::test]
async fn heads_without_end_are_cut_off_and_not_kept() {
    for (endless, status) in [
        (format!("GET http://a.example/{}", "x".repeat(1 << 20)), "4"),
        (
            format!(
                "CONNECT a.example:1 HTTP/1.1\r\n{}",
                "A: b\r\n".repeat(200_000)
            ),
            "431",
        ),
        ("\r\n".repeat(1 << 20), "4"),
    ] {
        let guard = guard(&[]).await;
        let answer = ask(guard.addr(), &endless).await;
        let start = &endless[..20];
        // Bytes that the guard did not wait for may take its last words along in a reset.
        assert!(
            answer.is_empty() || answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{start:?}: {answer}"
        );
        let facts = guard.close().await;
        assert_eq!(
            rows(&facts),
            [row("", "", 1, EgressOutcome::Unserved)],
            "{start:?}"
        );
    }
}

#[tokio::test]
async fn socks_clients_are_refused_in_their_own_protocol_and_their_destination_is_written_down() {
    let guard = guard(&[]).await;
    let name = b"a.example";
    let five = [&[5, 1, 0, 5, 1, 0, 3, 9][..], name, &[1, 187]].concat();
    assert_eq!(
        say(guard.addr(), &five).await,
        [5, 0, 5, 2, 0, 1, 0, 0, 0, 0, 0, 0]
    );
    let four_a = [&[4, 1, 1, 187, 0, 0, 0, 1, b'u', 0][..], name, &[0]].concat();
    assert_eq!(
        say(guard.addr(), &four_a).await,
        [0, 0x5b, 0, 0, 0, 0, 0, 0]
    );
    let four = [4, 1, 0, 80, 192, 0, 2, 7, 0];
    assert_eq!(say(guard.addr(), &four).await, [0, 0x5b, 0, 0, 0, 0, 0, 0]);
    let with_password_only = [5, 1, 2];
    assert_eq!(say(guard.addr(), &with_password_only).await, [5, 0xff]);
    let mut want = [
        row("a.example:443", "SOCKS5", 1, EgressOutcome::Refused),
        row("a.example:443", "SOCKS4", 1, EgressOutcome::Refused),
        row("192.0.2.7:80", "SOCKS4", 1, EgressOutcome::Refused),
        row("", "SOCKS5", 1, EgressOutcome::Unserved),
    ];
    want.sort();
    assert_eq!(rows(&guard.close().await), want);
}

#[tokio::test]
async fn closing_the_guard_cuts_what_is_open() {
    let quiet = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = quiet.local_addr().unwrap();
    let guard = guard(&[]).await;
    let mut client = TcpStream::connect(guard.addr()).await.unwrap();
    let asked = format!("CONNECT {addr} HTTP/1.1\r\nHost: {addr}\r\n\r\n");
    client.write_all(asked.as_bytes()).await.unwrap();
    let (mut server, _) = quiet.accept().await.unwrap();
    let mut head = [0; 12];
    client.read_exact(&mut head).await.unwrap();
    guard.close().await;
    let mut rest = Vec::new();
    tokio::time::timeout(PATIENCE, server.read_to_end(&mut rest))
        .await
        .expect("the tunnel outlived its guard")
        .ok();
    assert_eq!(rest, b"");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_whatever_make_the_guard_connect_or_stop_it(
        bytes in proptest::collection::vec(
            prop_oneof![
                any::<u8>(),
                proptest::sample::select(b"CONNECT a.example:443 HTTP/1.1\r\n\0\x05\x04".to_vec()),
            ],
            0..300,
        )
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let guard = guard(&[]).await;
            say(guard.addr(), &bytes).await;
            let answer = ask(guard.addr(), "CONNECT b.example:1 HTTP/1.1\r\n\r\n").await;
            assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
            let facts = guard.close().await;
            assert!(facts.iter().all(|f| matches!(
                f.outcome,
                EgressOutcome::Refused | EgressOutcome::Unserved
            )), "{facts:?}");
        });
    }
}
