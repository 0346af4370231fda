//! What the gateway takes in: tokens, headers, paths, limits, and requests that are none.

use crate::gateway_rig::*;
use crate::upstream::Peer;
use flashrig_gateway::Limits;
use flashrig_record::Outcome;

#[tokio::test]
async fn a_wrong_token_is_refused_in_the_clients_dialect_and_has_a_row() {
    let rig = Rig::new().await;
    let wrong = |path| {
        String::from_utf8(post(path, "{}"))
            .unwrap()
            .replace(TOKEN, "other")
    };
    let mut client = rig.client().await;
    client.send(wrong(MESSAGES)).await;
    let response = client.response().await;
    assert_eq!(
        (response.status, &response.json()["error"]["type"]),
        (401, &"authentication_error".into())
    );
    assert_eq!(response.json()["type"], "error");
    // The connection lives on.
    client.send(wrong(CHAT)).await;
    let response = client.response().await;
    assert_eq!(
        (response.status, &response.json()["error"]["code"]),
        (401, &"invalid_api_key".into())
    );
    let mut nothing = rig.client().await;
    nothing
        .send("GET /v1/models HTTP/1.1\r\nHost: h\r\n\r\n")
        .await;
    assert_eq!(nothing.response().await.status, 401);
    assert_eq!(
        rig.session.activity().first_request,
        None,
        "none of them is the session's"
    );
    let rows = rig.rows(3).await;
    assert!(
        rows.iter()
            .all(|row| (row.outcome, row.status) == (Outcome::RejectedByGateway, Some(401)))
    );
    assert!(
        rows[2]
            .error
            .as_ref()
            .unwrap()
            .message
            .starts_with("no token")
    );
}

#[tokio::test]
async fn a_head_probe_without_credentials_reaches_the_server_without_its_key() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client
        .send("HEAD /api/hello HTTP/1.1\r\nHost: h\r\n\r\n")
        .await;
    let (mut server, request) = rig.server.request().await;
    assert_eq!(
        (request.header("authorization"), request.header("x-api-key")),
        (None, None)
    );
    server
        .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .await;
    assert!(client.head().await.unwrap().starts_with("HTTP/1.1 200"));
    assert_eq!(rig.row().await.outcome, Outcome::Complete);
}

#[tokio::test]
async fn the_servers_key_replaces_the_clients_token_and_other_headers_stay() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let head = format!(
        "POST /v1/messages?beta=true HTTP/1.1\r\nHost: h\r\nX-Api-Key: {TOKEN}\r\nAnthropic-Beta: a,b\r\n\
         X-Claude-Code-Session-Id: s\r\nAccept-Encoding: gzip, br\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    client.send(head).await;
    let (mut server, request) = rig.server.request().await;
    assert_eq!(request.line(), "POST /v1/messages?beta=true");
    assert_eq!(request.header("authorization"), Some("Bearer server-key-1"));
    assert_eq!(request.header("x-api-key"), Some("server-key-1"));
    // A key that the server may repeat can only be covered in what is not compressed.
    assert_eq!(request.header("accept-encoding"), Some("identity"));
    assert_eq!(
        format!("http://{}", request.header("host").unwrap()),
        rig.server.url()
    );
    assert!(
        request.head.contains("\r\nX-Claude-Code-Session-Id: s\r\n"),
        "names keep their case: {}",
        request.head
    );
    assert!(!request.head.contains(TOKEN) && request.header("connection").is_none());
    server.answer("200 OK", "{}").await;
    client.response().await;
}

#[tokio::test]
async fn a_base_address_with_v1_is_not_doubled() {
    let rig = Rig::new().await;
    let url = format!("{}/v1/", rig.server.url());
    let other = Rig::with(Setup {
        url: Some(url),
        ..Setup::default()
    })
    .await;
    let _client = other.post(CHAT, CHAT_BODY).await;
    let (_server, request) = rig.server.request().await;
    assert_eq!(request.line(), "POST /v1/chat/completions");
}

#[tokio::test]
async fn a_body_above_the_limit_is_a_413_in_the_clients_dialect_and_a_row() {
    let limits = Limits {
        body_bytes: 1000,
        ..Limits::default()
    };
    let rig = Rig::with(Setup {
        limits,
        ..Setup::default()
    })
    .await;
    let response = rig.post(MESSAGES, vec![b' '; 1500]).await.response().await;
    assert_eq!(
        (response.status, &response.json()["error"]["type"]),
        (413, &"request_too_large".into())
    );
    let row = rig.row().await;
    assert_eq!(
        (row.outcome, row.status, row.request_bytes),
        (Outcome::RejectedByGateway, Some(413), 1500)
    );
    assert_eq!(row.body_hash, None);
}

#[tokio::test]
async fn a_body_that_is_not_json_is_forwarded_all_the_same() {
    let rig = Rig::new().await;
    let mut client = rig.post(CHAT, b"{\"model\": \xff").await;
    let (mut server, request) = rig.server.request().await;
    assert_eq!(request.body, b"{\"model\": \xff");
    server.answer("400 Bad Request", "not json").await;
    assert_eq!(client.response().await.body, b"not json");
    let row = rig.row().await;
    assert_eq!((row.model, row.tools, row.messages), (None, None, None));
    assert_eq!(row.error.unwrap().message, "not json");
}

#[tokio::test]
async fn what_is_not_http_gets_a_clear_status_and_a_row() {
    let huge = format!(
        "GET / HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n",
        "x".repeat(200_000)
    );
    let rig = Rig::new().await;
    for (bytes, status) in [
        ("rubbish\r\n\r\n", 400),
        ("GET / HTTP/9.9\r\n\r\n", 400),
        (huge.as_str(), 431),
    ] {
        let mut client = rig.client().await;
        client.send(bytes).await;
        let head = client.head().await.unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    }
    let rows = rig.rows(3).await;
    assert!(
        rows.iter()
            .all(|row| row.outcome == Outcome::RejectedByGateway && row.error.is_some())
    );
    assert_eq!(
        rows.iter()
            .map(|row| row.status.unwrap())
            .collect::<Vec<_>>(),
        [400, 400, 431]
    );
}

#[tokio::test]
async fn both_content_length_and_transfer_encoding_reach_the_server_as_one_unambiguous_length() {
    let lengths = [
        "Content-Length: 99\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 1",
    ];
    for both in lengths {
        let rig = Rig::new().await;
        let mut client = rig.client().await;
        let head = format!(
            "POST {CHAT} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {TOKEN}\r\n{both}\r\n\r\n"
        );
        // Whatever a confused client sends behind it is not a request: the connection closes.
        client
            .send(format!(
                "{head}2\r\n{{}}\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
            ))
            .await;
        let (mut server, request) = rig.server.request().await;
        assert_eq!(
            (
                request.header("content-length"),
                request.header("transfer-encoding")
            ),
            (Some("2"), None)
        );
        assert_eq!(request.body, b"{}");
        server.answer("200 OK", "{}").await;
        let response = client.response().await;
        assert_eq!(
            (
                response.status,
                crate::upstream::header(&response.head, "connection")
            ),
            (200, Some("close"))
        );
        client.closed().await;
        assert_eq!(rig.rows(1).await.len(), 1);
    }
}

#[tokio::test]
async fn a_malformed_chunk_is_rejected_and_a_body_cut_short_is_the_clients_leaving() {
    let head = format!("POST {CHAT} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {TOKEN}\r\n");
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client
        .send(format!("{head}Transfer-Encoding: chunked\r\n\r\nzz\r\n"))
        .await;
    assert_eq!(client.response().await.status, 400);
    let mut client = rig.client().await;
    client
        .send(format!("{head}Content-Length: 10\r\n\r\n{{"))
        .await;
    rig.until(|activity| activity.attempts == 2).await;
    drop(client);
    let rows = rig.rows(2).await;
    assert_eq!(
        (rows[0].outcome, rows[1].outcome),
        (Outcome::RejectedByGateway, Outcome::ClientAborted)
    );
    assert_eq!(
        (rows[1].request_bytes, rows[1].clocks.body_s, rows[1].status),
        (1, None, None)
    );
}

#[tokio::test]
async fn a_proxy_request_is_told_that_this_is_none() {
    let rig = Rig::new().await;
    let mut client: Peer = rig.client().await;
    client
        .send("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n")
        .await;
    assert_eq!(client.response().await.status, 405);
    assert_eq!(rig.row().await.outcome, Outcome::RejectedByGateway);
}
