//! Servers behind doors, reached through the gateway: TLS, headers, a base path; redirects.

use std::net::SocketAddr;

use flashrig_http::{Door as Opens, KeyStyle, Secret, Upstream as Target};
use flashrig_record::Outcome;
use flashrig_testkit::doors::{Authority, Door, Guard, Valid};

use crate::gateway_rig::{CHAT, CHAT_BODY, MESSAGES, MESSAGES_BODY, Rig, Setup};
use crate::upstream::Upstream;

const HEADERS: &str = "x-door: open-1234\r\n";

/// A gateway to `server` through a door whose certificate is valid, or not.
async fn behind_a_door(server: &Upstream, valid: Valid) -> (Rig, Door) {
    let authority = Authority::default();
    let folder = tempfile::TempDir::new().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, &authority.pem).unwrap();
    let to: SocketAddr = server.url()["http://".len()..].parse().unwrap();
    let guard = Guard {
        line: HEADERS.to_owned(),
        refusal: "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n".to_owned(),
    };
    let door = Door::tls("::1", authority.leaf(&["::1"], valid), Some(guard), to);
    let mut opens = Opens::default();
    opens.ca(&ca).unwrap();
    opens.basic(Secret::new("anna:hunter22")).unwrap();
    opens.header("X-Door", Secret::new("open-1234")).unwrap();
    let url = format!("https://[::1]:{}/llm/v1", door.port);
    let target = Target::new(&url, opens, KeyStyle::ByDialect).unwrap();
    let setup = Setup {
        target: Some(target),
        ..Setup::default()
    };
    (Rig::with(setup).await, door)
}

#[tokio::test]
async fn a_client_speaks_plain_http_and_the_server_is_reached_through_its_door() {
    let server = Upstream::bind().await;
    let (rig, _door) = behind_a_door(&server, Valid::Now).await;
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut peer, request) = server.request().await;
    assert_eq!(request.line(), "POST /v1/chat/completions");
    assert_eq!(request.body, CHAT_BODY.as_bytes());
    assert_eq!(request.header("x-door"), Some("open-1234"));
    let basic = request.header("authorization");
    assert_eq!(basic, Some("Basic YW5uYTpodW50ZXIyMg=="));
    let echo = r#"{"error":{"message":"open-1234 hunter22 YW5uYTpodW50ZXIyMg=="}}"#;
    peer.answer("400 Bad Request", echo).await;
    let response = client.response().await;
    let body = String::from_utf8(response.body).unwrap();
    for secret in ["open-1234", "hunter22", "YW5uYTp"] {
        assert!(!body.contains(secret), "{body}");
    }
    let row = rig.row().await;
    assert_eq!(row.outcome, Outcome::Refused);
    assert!(row.clocks.connected_s <= row.clocks.sent_s);
    assert!(row.clocks.sent_s < row.clocks.response_head_s);
}

#[tokio::test]
async fn a_certificate_that_has_expired_is_a_502_that_says_so_and_nothing_is_sent() {
    let server = Upstream::bind().await;
    let (rig, _door) = behind_a_door(&server, Valid::Expired).await;
    let response = rig.post(CHAT, CHAT_BODY).await.response().await;
    assert_eq!(response.status, 502);
    let message = response.json()["error"]["message"].to_string();
    assert!(
        message.contains("cannot connect securely") && message.contains("expired"),
        "{message}"
    );
    let row = rig.row().await;
    assert_eq!(
        (row.outcome, row.clocks.connected_s),
        (Outcome::Unreachable, None)
    );
}

#[tokio::test]
async fn a_redirect_is_an_error_in_the_clients_dialect_that_gives_it_nowhere_to_go() {
    for (path, body) in [(MESSAGES, MESSAGES_BODY), (CHAT, CHAT_BODY)] {
        let rig = Rig::new().await;
        let mut client = rig.post(path, body).await;
        let (mut peer, request) = rig.server.request().await;
        let target = request.line().split(' ').nth(1).unwrap().to_owned();
        let to = format!("http://127.0.0.9:1{target}");
        peer.send(format!(
            "HTTP/1.1 307 Go\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n"
        ))
        .await;
        let response = client.response().await;
        assert_eq!(response.status, 502);
        assert_eq!(crate::upstream::header(&response.head, "location"), None);
        let message = response.json()["error"]["message"].to_string();
        assert!(
            message.contains("answers 307") && message.contains("give http://127.0.0.9:1 with"),
            "{message}"
        );
        let row = rig.row().await;
        assert_eq!(
            (row.outcome, row.status),
            (Outcome::UpstreamError, Some(502))
        );
        assert!(row.redirect().unwrap().contains("http://127.0.0.9:1/v1/"));
    }
}
