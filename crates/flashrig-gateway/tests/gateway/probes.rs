//! Case C3: probes that the gateway answers in the server's place, when it is told to.

use crate::gateway_rig::*;
use crate::upstream::RawResponse;
use flashrig_record::{Outcome, OwnAnswer, RefusalKind, Role};

const COUNT: &str = "/v1/messages/count_tokens?beta=true";

async fn rig() -> Rig {
    Rig::with(Setup {
        answer_probes: Some("org/m".to_owned()),
        ..Setup::default()
    })
    .await
}

async fn get(rig: &Rig, line: &str) -> RawResponse {
    let mut client = rig.client().await;
    client
        .send(format!(
            "{line} HTTP/1.1\r\nHost: h\r\nx-api-key: {TOKEN}\r\n\r\n"
        ))
        .await;
    client.response().await
}

#[tokio::test]
async fn greetings_models_and_counts_are_answered_and_nothing_of_them_reaches_the_server() {
    // Whatever were passed on would be a 502.
    let gone = crate::upstream::Upstream::bind().await.url();
    let rig = Rig::with(Setup {
        answer_probes: Some("org/m".to_owned()),
        url: Some(gone),
        ..Setup::default()
    })
    .await;
    let mut head = rig.client().await;
    // As some agents send it, without credentials.
    head.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    let head = head.head().await.unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    for line in ["GET /", "GET /api/hello"] {
        assert_eq!(get(&rig, line).await.status, 200, "{line}");
    }
    let models = get(&rig, "GET /v1/models?limit=1000").await.json();
    // What clients of each dialect look for.
    let first = &models["data"][0];
    assert_eq!(
        (&models["object"], &first["object"]),
        (&"list".into(), &"model".into())
    );
    assert_eq!(
        (&models["has_more"], &first["type"]),
        (&false.into(), &"model".into())
    );
    assert_eq!(
        (&models["first_id"], &models["last_id"]),
        (&"org/m".into(), &"org/m".into())
    );
    assert_eq!(
        (&first["id"], &first["display_name"]),
        (&"org/m".into(), &"org/m".into())
    );
    assert!(first["created"].is_u64() && first["created_at"].is_string());
    assert_eq!(models["data"].as_array().unwrap().len(), 1);
    for path in ["/v1/models/org/m", "/v1/models/org%2Fm"] {
        let one = get(&rig, &format!("GET {path}")).await;
        assert_eq!((one.status, &one.json()), (200, first));
    }
    let count = rig.post(COUNT, MESSAGES_BODY).await.response().await;
    let bytes = MESSAGES_BODY.len() as u64;
    assert_eq!(
        count.json(),
        serde_json::json!({"input_tokens": bytes.div_ceil(4)})
    );

    let rows = rig.rows(7).await;
    for row in &rows {
        assert_eq!(
            (row.role, row.outcome, row.status),
            (Role::Probe, Outcome::Complete, Some(200))
        );
        assert!(row.clocks.connected_s.is_none() && row.clocks.sent_s.is_none());
    }
    let reported: Vec<OwnAnswer> = rows
        .iter()
        .map(|r| r.answered_by_gateway.unwrap())
        .collect();
    let tokens = bytes.div_ceil(4);
    let (greeting, models) = (OwnAnswer::Greeting, OwnAnswer::Models);
    let estimate = OwnAnswer::TokenEstimate { tokens };
    assert_eq!(
        reported,
        [
            greeting, greeting, greeting, models, models, models, estimate
        ]
    );
    // An estimate is not the server's count.
    assert_eq!(rows[6].input_tokens, None);
    assert_eq!(
        (rows[0].response_bytes, rows[1].response_bytes > 0),
        (0, true)
    );
}

#[tokio::test]
async fn a_model_that_is_not_served_is_a_404_that_clients_of_both_dialects_can_read() {
    let rig = rig().await;
    let response = get(&rig, "GET /v1/models/gpt-5").await;
    let error = &response.json()["error"];
    assert_eq!(response.status, 404);
    assert_eq!(
        (&error["type"], &error["code"]),
        (&"not_found_error".into(), &"model_not_found".into())
    );
    let row = rig.row().await;
    assert_eq!(
        (row.outcome, row.refusal),
        (Outcome::Refused, Some(RefusalKind::UnknownModel))
    );
    assert_eq!(row.answered_by_gateway, Some(OwnAnswer::Models));
}

#[tokio::test]
async fn a_count_is_estimated_by_what_the_server_has_told_of_earlier_prompts() {
    let rig = rig().await;
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    let usage = format!(
        r#"{{"choices":[],"usage":{{"prompt_tokens":{},"completion_tokens":1}}}}"#,
        CHAT_BODY.len() / 2
    );
    server.answer("200 OK", &usage).await;
    client.response().await;
    rig.until(|a| a.in_flight == 0).await;
    let count = rig.post(COUNT, MESSAGES_BODY).await.response().await;
    let reported = count.json()["input_tokens"].as_u64().unwrap();
    let half = MESSAGES_BODY.len() as u64 / 2;
    assert!(reported.abs_diff(half) <= 2, "{reported} of {half}");
}

#[tokio::test]
async fn what_is_no_probe_is_the_servers_to_answer() {
    let rig = rig().await;
    for (line, body) in [
        ("GET /v1/files", ""),
        ("POST /", "{}"),
        ("POST /v1/messages", MESSAGES_BODY),
        ("POST /v1/chat/completions", CHAT_BODY),
    ] {
        let mut client = rig.client().await;
        let length = body.len();
        client
            .send(format!(
                "{line} HTTP/1.1\r\nHost: h\r\nx-api-key: {TOKEN}\r\nContent-Length: {length}\r\n\r\n{body}"
            ))
            .await;
        let (mut server, asked) = rig.server.request().await;
        assert_eq!(asked.line(), line);
        server.answer("404 Not Found", "{}").await;
        assert_eq!(client.response().await.status, 404);
    }
    let rows = rig.rows(4).await;
    assert!(rows.iter().all(|row| row.answered_by_gateway.is_none()));
}

#[tokio::test]
async fn who_has_no_token_gets_no_answer_but_to_head() {
    let rig = rig().await;
    let mut client = rig.client().await;
    client
        .send("GET /v1/models HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer x\r\n\r\n")
        .await;
    assert_eq!(client.response().await.status, 401);
    let row = rig.row().await;
    assert_eq!(
        (row.outcome, row.answered_by_gateway),
        (Outcome::RejectedByGateway, None)
    );
}
