//! The gate between sessions and server, and the longest prompt that passes.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::gateway_rig::*;
use crate::upstream::{Peer, soon};
use flashrig_gateway::{Gate, GatewayEvent, Limits};
use flashrig_record::{GateFact, GateOrder, Outcome, Role};

/// A chat request without tools: a side request, where others have tools.
const TITLE_BODY: &str =
    r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"name this"}]}"#;

fn gate(limit: u32, order: GateOrder) -> Arc<Gate> {
    Gate::new(NonZeroU32::new(limit).unwrap(), order)
}

/// Two sessions on one server behind one gate; requests arrive at the first one's `server`.
async fn two(gate: &Arc<Gate>) -> (Rig, Rig) {
    let one = Rig::with(Setup {
        gate: Some(Arc::clone(gate)),
        ..Setup::default()
    })
    .await;
    let other = Rig::with(Setup {
        gate: Some(Arc::clone(gate)),
        url: Some(one.server.url()),
        ..Setup::default()
    })
    .await;
    (one, other)
}

/// Waits until so many are let in and in line.
async fn until(gate: &Gate, counts: (u32, u32)) {
    soon(async {
        while gate.counts() != counts {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    })
    .await;
}

async fn answer(mut server: Peer) {
    server.start_stream().await;
    server.send_chunk(delta(r#"{"content":"hi"}"#)).await;
    server.send_chunk(STOP).await;
    server.end_stream().await;
}

#[tokio::test]
async fn one_at_a_time_holds_the_second_session_until_the_first_answer_has_ended() {
    let gate = gate(1, GateOrder::Fifo);
    let (one, other) = two(&gate).await;
    let mut first = one.post(CHAT, CHAT_BODY).await;
    let (server, _) = one.server.request().await;
    let mut second = other.post(CHAT, CHAT_BODY).await;
    until(&gate, (1, 1)).await;
    {
        let events = other.events.lock().unwrap();
        assert!(
            matches!(
                events[..],
                [GatewayEvent::Held {
                    number: 1,
                    role: Role::Main,
                    ..
                }]
            ),
            "{events:?}"
        );
    }
    answer(server).await;
    assert!(first.response().await.whole);
    let (server, _) = one.server.request().await;
    answer(server).await;
    assert!(second.response().await.whole);
    let (first, second) = (one.row().await, other.row().await);
    assert_eq!(first.gate.unwrap().let_in, 0);
    let found = GateFact {
        let_in: 1,
        in_line: 0,
        overtaken: 0,
    };
    assert_eq!(second.gate, Some(found));
    // One clock for both sessions would be needed to compare them; each has its own here.
    let clocks = second.clocks;
    assert!(clocks.permit_s.unwrap().0 > clocks.body_s.unwrap().0);
    assert!(clocks.permit_s.unwrap().0 <= clocks.connected_s.unwrap().0);
    assert_eq!(gate.counts(), (0, 0));
}

#[tokio::test]
async fn side_requests_pass_main_ones_that_came_before_them() {
    let gate = gate(1, GateOrder::SideFirst);
    let (one, other) = two(&gate).await;
    let mut running = one.post(CHAT, CHAT_BODY).await;
    let (server, _) = one.server.request().await;
    let mut main = other.post(CHAT, CHAT_BODY).await;
    until(&gate, (1, 1)).await;
    let mut side = one.post(CHAT, TITLE_BODY).await;
    until(&gate, (1, 2)).await;
    answer(server).await;
    assert!(running.response().await.whole);
    let (server, asked) = one.server.request().await;
    assert_eq!(asked.body, TITLE_BODY.as_bytes());
    answer(server).await;
    assert!(side.response().await.whole);
    let (server, asked) = one.server.request().await;
    assert_eq!(asked.body, CHAT_BODY.as_bytes());
    answer(server).await;
    assert!(main.response().await.whole);
    assert_eq!(other.row().await.gate.unwrap().overtaken, 1);
}

#[tokio::test]
async fn a_client_that_leaves_the_line_is_passed_over_and_its_row_says_that_it_stood_there() {
    let gate = gate(1, GateOrder::Fifo);
    let (one, other) = two(&gate).await;
    let mut running = one.post(CHAT, CHAT_BODY).await;
    let (server, _) = one.server.request().await;
    let leaves = other.post(CHAT, CHAT_BODY).await;
    until(&gate, (1, 1)).await;
    drop(leaves);
    until(&gate, (1, 0)).await;
    answer(server).await;
    assert!(running.response().await.whole);
    until(&gate, (0, 0)).await;
    let row = other.row().await;
    assert_eq!((row.outcome, row.status), (Outcome::ClientAborted, None));
    assert_eq!((row.clocks.permit_s, row.clocks.sent_s), (None, None));
    assert!(row.gate.is_some());
}

#[tokio::test]
async fn a_client_that_leaves_the_server_lets_the_next_one_in() {
    let gate = gate(1, GateOrder::Fifo);
    let (one, other) = two(&gate).await;
    let leaves = one.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = one.server.request().await;
    let mut next = other.post(CHAT, CHAT_BODY).await;
    until(&gate, (1, 1)).await;
    drop(leaves);
    server.closed().await;
    let (server, _) = one.server.request().await;
    answer(server).await;
    assert!(next.response().await.whole);
    assert_eq!(one.row().await.outcome, Outcome::ClientAborted);
}

#[tokio::test]
async fn refusals_breaks_and_the_end_of_a_session_free_their_places() {
    let gate = gate(1, GateOrder::Fifo);
    let (one, other) = two(&gate).await;
    let mut refused = one.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = one.server.request().await;
    server.answer("529 Overloaded", "{}").await;
    assert_eq!(refused.response().await.status, 529);
    until(&gate, (0, 0)).await;
    // No answer at all.
    let mut lost = one.post(CHAT, CHAT_BODY).await;
    let (server, _) = one.server.request().await;
    drop(server);
    assert_eq!(lost.response().await.status, 502);
    until(&gate, (0, 0)).await;
    // A session that is closed takes its request along, and the other's is let in.
    let _cut = one.post(CHAT, CHAT_BODY).await;
    let (_server, _) = one.server.request().await;
    let mut next = other.post(CHAT, CHAT_BODY).await;
    until(&gate, (1, 1)).await;
    let Rig {
        server, session, ..
    } = one;
    session.close().await;
    let (peer, _) = server.request().await;
    answer(peer).await;
    assert!(next.response().await.whole);
    until(&gate, (0, 0)).await;
}

#[tokio::test]
async fn probes_and_token_counts_do_not_stand_in_line() {
    let gate = gate(1, GateOrder::Fifo);
    let (one, other) = two(&gate).await;
    let _running = one.post(CHAT, CHAT_BODY).await;
    let (_server, _) = one.server.request().await;
    let mut count = other.post("/v1/messages/count_tokens", MESSAGES_BODY).await;
    let (mut server, _) = one.server.request().await;
    server.answer("200 OK", r#"{"input_tokens":7}"#).await;
    assert_eq!(count.response().await.status, 200);
    let row = other.row().await;
    assert_eq!((row.role, row.gate), (Role::Probe, None));
    assert_eq!(row.clocks.permit_s, row.clocks.body_s);
    assert_eq!(gate.counts(), (1, 0));
}

/// A session that lets prompts of so many tokens through.
async fn capped(prompt_tokens: u64) -> Rig {
    Rig::with(Setup {
        limits: Limits {
            prompt_tokens: Some(prompt_tokens),
            ..Limits::default()
        },
        ..Setup::default()
    })
    .await
}

#[tokio::test]
async fn a_prompt_above_the_limit_is_refused_in_the_clients_own_dialect() {
    let refusal = |tokens: usize| format!("prompt is too long: {tokens} tokens > 10 maximum");
    for (path, body) in [
        (MESSAGES, MESSAGES_BODY),
        (CHAT, CHAT_BODY),
        (
            RESPONSES,
            r#"{"model":"m","input":"a question that is by no means short"}"#,
        ),
    ] {
        let rig = capped(10).await;
        let mut client = rig.post(path, body).await;
        let response = client.response().await;
        assert_eq!(response.status, 400);
        let said: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
        let error = &said["error"];
        assert_eq!(error["type"], "invalid_request_error");
        if path == MESSAGES {
            assert_eq!(said["type"], "error");
        } else {
            assert_eq!(error["code"], "context_length_exceeded");
        }
        let message = error["message"].as_str().unwrap();
        assert!(
            message.starts_with(&refusal(body.len().div_ceil(4))),
            "{message}"
        );
        let row = rig.row().await;
        assert_eq!(
            (row.outcome, row.status),
            (Outcome::RejectedByGateway, Some(400))
        );
        assert!(row.is_long_prompt());
        assert_eq!(row.error.unwrap().message, message);
        assert_eq!(row.clocks.sent_s, None);
    }
}

#[tokio::test]
async fn the_length_of_a_prompt_is_taken_from_what_the_session_has_shown() {
    // At four bytes a token this body is above the limit; the server counts fewer.
    let limit = CHAT_BODY.len() as u64 / 4 + 10;
    let rig = capped(limit).await;
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    server
        .answer(
            "200 OK",
            r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":1}}"#,
        )
        .await;
    assert_eq!(client.response().await.status, 200);
    rig.until(|activity| activity.in_flight == 0).await;
    // The same body again: a thousand tokens now, by the server's own count.
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let response = client.response().await;
    let said = String::from_utf8(response.body).unwrap();
    assert!(said.contains("prompt is too long: 1000 tokens"), "{said}");
    let rows = rig.rows(2).await;
    assert_eq!(rows[0].outcome, Outcome::Complete);
    assert!(rows[1].is_long_prompt());
}

#[tokio::test]
async fn token_counts_of_long_prompts_are_asked_for_all_the_same() {
    let rig = capped(1).await;
    let mut client = rig.post("/v1/messages/count_tokens", MESSAGES_BODY).await;
    let (mut server, _) = rig.server.request().await;
    server.answer("200 OK", r#"{"input_tokens":700}"#).await;
    assert_eq!(client.response().await.status, 200);
}
