//! The standing gateway: many clients at one listener, told apart, counted, drained.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::standing_rig::*;
use crate::upstream::soon;
use flashrig_gateway::Gate;
use flashrig_gateway::standing::LogLine;
use flashrig_record::{GateOrder, Outcome, Role};

#[tokio::test]
async fn without_tokens_a_client_is_named_by_its_path_and_the_server_sees_the_rest_only() {
    let mut rig = Rig::new(&[]).await;
    for (path, name, forwarded) in [
        (
            "/client/anna/v1/chat/completions?x=1",
            "anna",
            "/v1/chat/completions?x=1",
        ),
        ("/v1/chat/completions", "default", "/v1/chat/completions"),
    ] {
        let mut client = rig.post(path, Some("whatever")).await;
        let (mut server, asked) = rig.server.request().await;
        assert_eq!(asked.line(), format!("POST {forwarded}"));
        assert_eq!(asked.header("authorization"), Some("Bearer server-key"));
        server.answer("200 OK", "{}").await;
        assert_eq!(client.response().await.status, 200);
        let finished = rig.finished().await;
        assert_eq!((&*finished.client, &*finished.attempt.path), (name, CHAT));
        assert_eq!(
            (finished.attempt.number, finished.attempt.role),
            (1, Role::Main)
        );
    }
}

#[tokio::test]
async fn with_tokens_a_client_is_named_by_its_own_and_nobody_else_comes_in() {
    let mut rig = Rig::new(&[("anna", "ta"), ("bert", "tb")]).await;
    for (path, token) in [
        (CHAT, None),
        (CHAT, Some("tx")),
        ("/client/anna/v1/chat/completions", None),
        ("/client/anna/v1/chat/completions", Some("tb")),
        ("/client/%22/v1/chat/completions", Some("tb")),
    ] {
        let mut client = rig.post(path, token).await;
        let response = client.response().await;
        assert_eq!(response.status, 401, "{path} {token:?}");
        let finished = rig.finished().await;
        assert_eq!(&*finished.client, "(unknown)");
        assert_eq!(finished.attempt.outcome, Outcome::RejectedByGateway);
    }
    for path in [CHAT, "/client/bert/v1/chat/completions"] {
        let mut client = rig.post(path, Some("tb")).await;
        let (mut server, asked) = rig.server.request().await;
        assert_eq!(asked.line(), format!("POST {CHAT}"));
        server.answer("200 OK", "{}").await;
        client.response().await;
        assert_eq!(&*rig.finished().await.client, "bert");
    }
}

#[tokio::test]
async fn the_gateways_own_pages_are_never_forwarded_and_where_there_are_tokens_metrics_want_one() {
    let rig = Rig::new(&[("anna", "ta")]).await;
    let health = rig.get("/flashrig/health", None).await;
    assert_eq!((health.status, &*health.body), (200, &b"ok\n"[..]));
    assert_eq!(rig.get("/metrics", None).await.status, 401);
    assert_eq!(rig.get("/metrics", Some("tx")).await.status, 401);
    assert_eq!(rig.get("/metrics", Some("ta")).await.status, 200);
    let mut posting = rig.post("/metrics", Some("ta")).await;
    assert_eq!(posting.response().await.status, 405);
    // None of these is a request to the server.
    assert!(
        rig.stats
            .snapshot()
            .clients
            .iter()
            .all(|c| c.figures.ended() == 0)
    );
}

#[tokio::test]
async fn metrics_are_well_formed_and_hold_what_happened() {
    let mut rig = Rig::new(&[]).await;
    let idle = rig.metrics().await;
    assert_eq!(
        idle.get("flashrig_event_loop_lag_seconds_count", &[]),
        Some(0.0)
    );

    let mut client = rig.post("/client/anna/v1/chat/completions", None).await;
    let (mut server, _) = rig.server.request().await;
    let anna = [("client", "anna")];
    let during = rig.metrics().await;
    assert_eq!(during.get("flashrig_in_flight", &anna), Some(1.0));
    assert_eq!(during.get("flashrig_waiting", &anna), Some(1.0));
    // Unknown is not 0.
    assert_eq!(during.get("flashrig_input_tokens_total", &anna), None);
    server.start_stream().await;
    for _ in 0..3 {
        server.send_chunk(TOKEN_EVENT).await;
    }
    client.head().await.unwrap();
    client.chunks_until("x").await;
    let generating = rig.metrics().await;
    assert_eq!(generating.get("flashrig_in_flight", &anna), Some(1.0));
    assert_eq!(generating.get("flashrig_waiting", &anna), Some(0.0));
    server.send_chunk(END).await;
    server.end_stream().await;
    client.chunks_until("[DONE]").await;
    assert_eq!(rig.finished().await.attempt.outcome, Outcome::Complete);

    // Whatever a server calls it, the label is one of flashrig's own kinds.
    let mut refused = rig.post("/client/anna/v1/chat/completions", None).await;
    let (mut server, _) = rig.server.request().await;
    let body = r#"{"error":{"type":"bad \"kind\"\\\n","message":"no"}}"#;
    server.answer("400 Bad Request", body).await;
    assert_eq!(refused.response().await.status, 400);
    rig.finished().await;

    let after = rig.metrics().await;
    let kind = [
        ("client", "anna"),
        ("dialect", "openai_chat"),
        ("role", "main"),
        ("end", "complete"),
    ];
    assert_eq!(after.get("flashrig_requests_total", &kind), Some(1.0));
    assert_eq!(after.of_client("flashrig_requests_total", "anna"), 2.0);
    let refusal = [("client", "anna"), ("kind", "other")];
    assert_eq!(after.get("flashrig_refusals_total", &refusal), Some(1.0));
    assert_eq!(after.get("flashrig_input_tokens_total", &anna), Some(100.0));
    assert_eq!(after.get("flashrig_cached_tokens_total", &anna), Some(80.0));
    assert_eq!(after.get("flashrig_output_tokens_total", &anna), Some(3.0));
    assert_eq!(after.get("flashrig_itl_seconds_count", &anna), Some(2.0));
    assert_eq!(
        after.get("flashrig_gate_wait_seconds_count", &anna),
        Some(2.0)
    );
    let main = [("client", "anna"), ("role", "main")];
    assert_eq!(after.get("flashrig_ttft_seconds_count", &main), Some(1.0));
    let longest = [("client", "anna"), ("role", "main"), ("le", "2560")];
    assert_eq!(
        after.get("flashrig_ttft_seconds_bucket", &longest),
        Some(1.0)
    );
}

#[tokio::test]
async fn one_gate_holds_all_clients_and_lets_a_side_request_of_another_client_go_first() {
    let gate = Gate::new(NonZeroU32::MIN, GateOrder::SideFirst);
    let mut rig = Rig::gated(&[], Some(Arc::clone(&gate))).await;
    let in_line = async |wanted| {
        let reached = async {
            while gate.counts() != (1, wanted) {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        };
        soon(reached).await;
    };
    let _first = rig.post("/client/anna/v1/chat/completions", None).await;
    let (mut serving, _) = rig.server.request().await;
    let _second = rig.post("/client/anna/v1/chat/completions", None).await;
    in_line(1).await;
    let side = r#"{"model":"m","messages":[{"role":"user","content":"title"}]}"#;
    let mut third = rig.client().await;
    let path = "/client/bert/v1/chat/completions";
    third.send(request("POST", path, None, side)).await;
    in_line(2).await;
    let metrics = rig.metrics().await;
    let waiting = |client| metrics.get("flashrig_waiting", &[("client", client)]);
    assert_eq!((waiting("anna"), waiting("bert")), (Some(2.0), Some(1.0)));

    serving.answer("200 OK", "{}").await;
    let (mut serving, asked) = rig.server.request().await;
    assert_eq!(asked.body, side.as_bytes());
    serving.answer("200 OK", "{}").await;
    let (mut serving, asked) = rig.server.request().await;
    assert_eq!(asked.body, CHAT_BODY.as_bytes());
    serving.answer("200 OK", "{}").await;
    for client in ["anna", "bert", "anna"] {
        assert_eq!(&*rig.finished().await.client, client);
    }
    let after = rig.metrics().await;
    let waits = after.get("flashrig_gate_wait_seconds_sum", &[("client", "bert")]);
    assert!(waits.unwrap() > 0.0);
}

#[tokio::test]
async fn made_up_names_cannot_fill_the_memory() {
    let mut rig = Rig::new(&[]).await;
    for number in 0..80 {
        let path = format!("/client/c{number}/v1/models");
        let mut client = rig.client().await;
        client.send(request("GET", &path, None, "")).await;
        let (mut server, _) = rig.server.request().await;
        server.answer("200 OK", "{}").await;
        client.response().await;
        rig.finished().await;
    }
    let snapshot = rig.stats.snapshot();
    assert!(snapshot.clients.len() <= 68, "{}", snapshot.clients.len());
    let others = snapshot.clients.iter().find(|c| &*c.name == "(others)");
    assert!(others.unwrap().figures.ended() >= 10);
    let all: u64 = snapshot.clients.iter().map(|c| c.figures.ended()).sum();
    assert_eq!(all, 80);
}

#[tokio::test]
async fn draining_takes_nothing_new_and_lets_a_stream_come_to_its_end() {
    let mut rig = Rig::new(&[]).await;
    let mut idle = rig.client().await;
    idle.send(request("GET", "/flashrig/health", None, ""))
        .await;
    assert_eq!(idle.response().await.status, 200);
    let mut client = rig.post(CHAT, None).await;
    let (mut server, _) = rig.server.request().await;
    server.start_stream().await;
    server.send_chunk(TOKEN_EVENT).await;
    client.head().await.unwrap();
    client.chunks_until("x").await;

    let addr = rig.standing.addr();
    let draining = tokio::spawn(async move {
        rig.standing.drain().await;
        rig.standing.close().await;
        rig.finished.recv().await.unwrap()
    });
    // A connection that only waits for its next request is closed, and the port is no more.
    idle.closed().await;
    assert!(soon(tokio::net::TcpStream::connect(addr)).await.is_err());
    assert!(!draining.is_finished());
    server.send_chunk(END).await;
    server.end_stream().await;
    client.chunks_until("[DONE]").await;
    assert_eq!(client.chunk().await.unwrap(), b"");
    assert_eq!(
        soon(draining).await.unwrap().attempt.outcome,
        Outcome::Complete
    );
}

#[tokio::test]
async fn closing_cuts_off_what_is_left_and_says_so_in_its_row() {
    let mut rig = Rig::new(&[]).await;
    let _client = rig.post(CHAT, None).await;
    let (mut server, _) = rig.server.request().await;
    soon(rig.standing.close()).await;
    server.closed().await;
    let finished = soon(rig.finished.recv()).await.unwrap();
    assert_eq!(finished.attempt.outcome, Outcome::ClientAborted);
    assert_eq!(
        finished.attempt.error.unwrap().kind.as_deref(),
        Some("session_closed")
    );
}

#[test]
fn a_log_line_is_an_attempt_with_its_client() {
    let schema = serde_json::to_value(schemars::schema_for!(LogLine)).unwrap();
    for field in ["client", "at", "number", "clocks", "end"] {
        assert!(schema["properties"][field].is_object(), "{field}");
    }
}
