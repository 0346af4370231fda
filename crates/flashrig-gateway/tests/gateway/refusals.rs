//! What servers refuse: their own words kept, the field named, a row for every attempt,
//! and the gateway's own answers where there is no server to give one.

use crate::gateway_rig::*;
use crate::upstream::RawResponse;
use flashrig_record::{Attempt, Dialect, Outcome, Role};

/// One exchange in which the server answers with `status` and `words`.
async fn answered(path: &str, body: &str, status: &str, message: &str) -> (RawResponse, Attempt) {
    let rig = Rig::new().await;
    let mut client = rig.post(path, body).await;
    let (mut server, _) = rig.server.request().await;
    server.answer(status, message).await;
    let response = client.response().await;
    (response, rig.row().await)
}

#[tokio::test]
async fn a_refused_request_shape_keeps_the_servers_words_and_names_the_field() {
    let message = r#"{"error":{"message":"messages[1].role: system is not allowed here","type":"invalid_request_error","code":400}}"#;
    let (response, row) = answered(CHAT, CHAT_BODY, "400 Bad Request", message).await;
    assert_eq!(
        (response.status, response.body.as_slice()),
        (400, message.as_bytes())
    );
    assert_eq!((row.outcome, row.status), (Outcome::Refused, Some(400)));
    let error = row.error.unwrap();
    assert_eq!(error.kind.as_deref(), Some("invalid_request_error"));
    assert_eq!(
        error.message,
        "messages[1].role: system is not allowed here"
    );
    assert_eq!(error.field.as_deref(), Some("messages[1].role"));
}

#[tokio::test]
async fn a_context_that_is_too_small_keeps_the_servers_words() {
    let message = r#"{"error":{"message":"'max_tokens' is too large: 32000. This model's maximum context length is 8192 tokens","code":400}}"#;
    let (response, row) = answered(CHAT, CHAT_BODY, "400 Bad Request", message).await;
    assert_eq!(response.body, message.as_bytes());
    let error = row.error.unwrap();
    assert!(error.message.contains("maximum context length is 8192"));
    assert_eq!(error.field.as_deref(), Some("max_tokens"));
}

#[tokio::test]
async fn a_probes_404_passes_through_and_is_a_probes() {
    let rig = Rig::new().await;
    for line in [
        "HEAD /",
        "HEAD /api/hello",
        "GET /v1/models",
        "GET /v1/unknown?x=1",
    ] {
        let mut client = rig.client().await;
        client
            .send(format!(
                "{line} HTTP/1.1\r\nHost: h\r\nx-api-key: {TOKEN}\r\n\r\n"
            ))
            .await;
        let (mut server, forwarded) = rig.server.request().await;
        assert_eq!(forwarded.line(), line);
        assert_eq!(forwarded.header("content-length"), None);
        let head_only = line.starts_with("HEAD");
        let message = if head_only {
            ""
        } else {
            "{\"detail\":\"Not Found\"}"
        };
        server
            .send(format!(
                "HTTP/1.1 404 Not Found\r\nContent-Length: 22\r\nConnection: close\r\n\r\n{message}"
            ))
            .await;
        let head = client.head().await.unwrap();
        assert!(head.starts_with("HTTP/1.1 404 Not Found\r\n"), "{head}");
        drop(client);
        rig.until(|activity| activity.in_flight == 0).await;
    }
    let rows = rig.rows(4).await;
    assert!(rows.iter().all(
        |row| (row.role, row.outcome, row.status) == (Role::Probe, Outcome::Refused, Some(404))
    ));
    let dialects: Vec<Dialect> = rows.iter().map(|row| row.dialect).collect();
    assert_eq!(
        dialects,
        [
            Dialect::Other,
            Dialect::Other,
            Dialect::Models,
            Dialect::Other
        ]
    );
    assert_eq!(rows[3].path, "/v1/unknown");
}

#[tokio::test]
async fn token_counting_is_a_probe_even_with_tools() {
    let (_, row) = answered(
        "/v1/messages/count_tokens?beta=true",
        MESSAGES_BODY,
        "404 Not Found",
        "{}",
    )
    .await;
    assert_eq!(
        (row.dialect, row.role, row.outcome),
        (Dialect::AnthropicCountTokens, Role::Probe, Outcome::Refused)
    );
}

#[tokio::test]
async fn overload_is_told_apart_from_refusal_and_from_failure() {
    for (status, code, end) in [
        ("429 Too Many Requests", 429, Outcome::Overloaded),
        ("503 Service Unavailable", 503, Outcome::Overloaded),
        ("529 Overloaded", 529, Outcome::Overloaded),
        ("500 Internal Server Error", 500, Outcome::UpstreamError),
        ("502 Bad Gateway", 502, Outcome::UpstreamError),
        ("422 Unprocessable Entity", 422, Outcome::Refused),
    ] {
        let message = r#"{"type":"error","error":{"type":"some_error","message":"words"}}"#;
        let (response, row) = answered(MESSAGES, MESSAGES_BODY, status, message).await;
        assert_eq!(
            (response.status, row.outcome, row.status),
            (code, end, Some(code))
        );
        assert!(
            response.head.starts_with(&format!("HTTP/1.1 {status}\r\n")),
            "{}",
            response.head
        );
        assert_eq!(row.error.unwrap().kind.as_deref(), Some("some_error"));
    }
}

#[tokio::test]
async fn a_second_request_refused_at_once_with_529_is_counted_beside_the_first() {
    let rig = Rig::new().await;
    let mut first = rig.post(MESSAGES, MESSAGES_BODY).await;
    let (mut serving, _) = rig.server.request().await;
    let mut second = rig.post(MESSAGES, MESSAGES_BODY).await;
    let (mut refusing, _) = rig.server.request().await;
    refusing.answer("529 Overloaded", "{}").await;
    assert_eq!(second.response().await.status, 529);
    serving.answer("200 OK", "{}").await;
    assert_eq!(first.response().await.status, 200);
    let rows = rig.rows(2).await;
    assert_eq!(
        (rows[0].outcome, rows[1].outcome),
        (Outcome::Complete, Outcome::Overloaded)
    );
    assert_eq!(
        (rows[0].repeats, rows[1].repeats),
        (None, Some(1)),
        "the same body is a repeat"
    );
}

#[tokio::test]
async fn a_servers_key_that_the_server_echoes_is_neither_passed_on_nor_recorded() {
    let message = format!("{{\"error\":\"bad key {KEY}\"}}");
    let (response, row) = answered(CHAT, CHAT_BODY, "401 Unauthorized", &message).await;
    let covered = "*".repeat(KEY.len());
    assert_eq!(response.body, message.replace(KEY, &covered).as_bytes());
    assert_eq!(row.error.unwrap().message, format!("bad key {covered}"));
}

#[tokio::test]
async fn an_unreachable_server_is_a_502_in_the_clients_dialect_and_a_row() {
    let url = {
        let gone = crate::upstream::Upstream::bind().await;
        gone.url()
    };
    let rig = Rig::with(Setup {
        url: Some(url),
        ..Setup::default()
    })
    .await;
    let response = rig.post(MESSAGES, MESSAGES_BODY).await.response().await;
    assert_eq!(
        (response.status, &response.json()["error"]["type"]),
        (502, &"api_error".into())
    );
    assert!(
        response.json()["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("cannot connect to the server at http://127.0.0.1:")
    );
    let row = rig.row().await;
    assert_eq!(
        (row.outcome, row.status, row.clocks.connected_s),
        (Outcome::Unreachable, Some(502), None)
    );
    assert_eq!(
        row.error.unwrap().kind.as_deref(),
        Some("server_unreachable")
    );
}

#[tokio::test]
async fn a_server_that_closes_or_talks_rubbish_before_its_head_is_a_502_and_is_not_asked_again() {
    for rubbish in ["", "HTTP/1.1 2", "SSH-2.0-OpenSSH_9.6\r\n"] {
        let rig = Rig::new().await;
        let mut client = rig.post(CHAT, CHAT_BODY).await;
        let (mut server, _) = rig.server.request().await;
        server.send(rubbish).await;
        drop(server);
        let response = client.response().await;
        assert_eq!(
            (response.status, &response.json()["error"]["code"]),
            (502, &"no_http_answer".into())
        );
        // The next connection is the next request's: nothing was sent twice.
        let _next = rig.post(CHAT, "{\"next\":1}").await;
        assert_eq!(rig.server.request().await.1.body, b"{\"next\":1}");
        let rows = rig.session.close().await;
        assert_eq!(
            (rows[0].outcome, rows[0].status),
            (Outcome::UpstreamError, Some(502))
        );
    }
}
