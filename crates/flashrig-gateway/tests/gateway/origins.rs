//! A standing gateway without tokens: web pages do not get in, the machine's own programs do.

use crate::standing_rig::*;
use crate::upstream::RawResponse;
use flashrig_record::Outcome;

const MESSAGES: &str = "/client/anna/v1/messages";

/// Sends a request with these headers.
async fn ask(rig: &Rig, line: &str, headers: &str, body: &str) -> RawResponse {
    let mut client = rig.client().await;
    let length = body.len();
    client
        .send(format!(
            "{line} HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        ))
        .await;
    client.response().await
}

#[tokio::test]
async fn what_a_web_page_sends_is_a_403_in_the_clients_dialect_and_a_row_and_never_forwarded() {
    let mut rig = Rig::new(&[]).await;
    for headers in [
        // A page that posts to this machine, and one whose own name points here.
        "Host: 127.0.0.1:8081\r\nOrigin: https://evil.example\r\n",
        "Host: 127.0.0.1:8081\r\nOrigin: null\r\n",
        "Host: localhost\r\nOrigin: http://localhost:3000\r\n",
        "Host: evil.example:8081\r\nOrigin: http://evil.example:8081\r\n",
        "Host: evil.example:8081\r\n",
        "Host: localhost\r\nHost: evil.example\r\n",
        "Host: [::\r\n",
    ] {
        let line = format!("POST {MESSAGES}");
        let response = ask(&rig, &line, headers, CHAT_BODY).await;
        assert_eq!(response.status, 403, "{headers}");
        let error = &response.json()["error"];
        assert_eq!(error["type"], "permission_error", "{headers}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("--client NAME=TOKEN"), "{message}");
        let finished = rig.finished().await;
        assert_eq!(&*finished.client, "(unknown)");
        let row = &finished.attempt;
        assert_eq!(
            (row.outcome, row.status),
            (Outcome::RejectedByGateway, Some(403))
        );
        assert_eq!(row.path, "/v1/messages");
        let kind = row.error.as_ref().unwrap().kind.as_deref();
        assert_eq!(kind, Some("web_page_or_other_host"));
        assert_eq!(row.clocks.sent_s, None);
    }
    // The question that a browser asks before it posts anything of another form.
    let preflight = "Host: localhost\r\nOrigin: https://evil.example\r\n";
    let response = ask(&rig, &format!("OPTIONS {CHAT}"), preflight, "").await;
    assert_eq!(response.status, 403);
    assert_eq!(
        response.json()["error"]["code"],
        "web_page_or_other_host",
        "in the form of the other dialect"
    );
    assert!(!response.head.to_lowercase().contains("access-control"));
}

#[tokio::test]
async fn a_page_that_points_its_own_name_here_reads_no_metrics() {
    let rig = Rig::new(&[]).await;
    for path in ["/metrics", "/flashrig/health"] {
        let page = ask(
            &rig,
            &format!("GET {path}"),
            "Host: evil.example:8081\r\n",
            "",
        )
        .await;
        assert_eq!(page.status, 403);
        assert!(!String::from_utf8(page.body).unwrap().contains("flashrig_"));
        assert_eq!(rig.get(path, None).await.status, 200);
    }
}

#[tokio::test]
async fn programs_of_this_machine_come_in_by_every_name_that_it_has() {
    let rig = Rig::new(&[]).await;
    for headers in [
        "Host: 127.0.0.1:8081\r\n",
        "Host: [::1]:9999\r\n",
        "Host: LOCALHOST\r\n",
        "Host: localhost\r\nOrigin: vscode-webview://1a2b\r\n",
        "",
    ] {
        let mut client = rig.client().await;
        client
            .send(format!(
                "POST {CHAT} HTTP/1.1\r\n{headers}Content-Length: 2\r\n\r\n{{}}"
            ))
            .await;
        let (mut server, asked) = rig.server.request().await;
        assert_eq!(asked.line(), format!("POST {CHAT}"), "{headers}");
        server.answer("200 OK", "{}").await;
        assert_eq!(client.response().await.status, 200, "{headers}");
    }
}

#[tokio::test]
async fn with_tokens_the_token_tells_and_a_page_that_has_one_is_somebodys_own() {
    let mut rig = Rig::new(&[("anna", "ta")]).await;
    let headers = "Host: llm.example\r\nOrigin: https://chat.example\r\n";
    let mut client = rig.client().await;
    let bearer = "Authorization: Bearer ta\r\n";
    client
        .send(format!(
            "POST {CHAT} HTTP/1.1\r\n{headers}{bearer}Content-Length: 2\r\n\r\n{{}}"
        ))
        .await;
    let (mut server, _) = rig.server.request().await;
    server.answer("200 OK", "{}").await;
    assert_eq!(client.response().await.status, 200);
    assert_eq!(&*rig.finished().await.client, "anna");
}
