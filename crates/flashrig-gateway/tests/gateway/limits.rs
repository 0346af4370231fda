//! What a standing listener does not wait for, and how much it takes at a time.

use std::time::Duration;

use crate::standing_rig::*;
use flashrig_gateway::{Limits, Unauthenticated};

const TOKENS: &[(&str, &str)] = &[("anna", "ta")];
const SHORT: Duration = Duration::from_millis(30);

fn unauthenticated(connections: usize, time: Duration) -> Limits {
    Limits {
        unauthenticated: Some(Unauthenticated { connections, time }),
        ..Limits::standing()
    }
}

/// A chat request whose body is `length` bytes, of which `sent` are sent.
fn partial(token: &str, length: usize, sent: usize) -> String {
    let body = "x".repeat(sent);
    format!(
        "POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn a_body_that_does_not_come_to_its_end_is_answered_408_and_the_connection_closed() {
    let limits = Limits {
        body_time: Some(SHORT),
        ..Limits::standing()
    };
    let mut rig = Rig::limited(TOKENS, limits).await;
    let mut client = rig.client().await;
    client.send(partial("ta", 10, 3)).await;
    let response = client.response().await;
    assert_eq!(
        (response.status, &response.json()["error"]["code"]),
        (408, &"slow_body".into())
    );
    client.closed().await;
    let finished = rig.finished().await;
    assert_eq!(&*finished.client, "anna");
    let error = finished.attempt.error.unwrap();
    assert_eq!(error.kind.as_deref(), Some("slow_body"));
    assert!(error.message.contains("not whole 0.03 s after its head"));
}

#[tokio::test]
async fn a_refused_body_that_does_not_come_to_its_end_is_not_waited_for() {
    let limits = Limits {
        discard_time: SHORT,
        ..Limits::standing()
    };
    let rig = Rig::limited(TOKENS, limits).await;
    let mut client = rig.client().await;
    client.send(partial("wrong", 10, 3)).await;
    assert_eq!(client.response().await.status, 401);
    client.closed().await;
}

#[tokio::test]
async fn a_connection_is_closed_unless_a_request_on_it_is_authenticated_in_time() {
    let rig = Rig::limited(TOKENS, unauthenticated(9, SHORT)).await;
    let metrics = || request("GET", "/metrics", Some("ta"), "");
    let mut known = rig.client().await;
    known.send(metrics()).await;
    assert_eq!(known.response().await.status, 200);
    // These come later, so that the time of the first one is over when theirs is.
    let (mut silent, mut wrong) = (rig.client().await, rig.client().await);
    wrong.send(request("GET", "/metrics", None, "")).await;
    assert_eq!(wrong.response().await.status, 401);
    silent.closed().await;
    wrong.closed().await;
    known.send(metrics()).await;
    assert_eq!(known.response().await.status, 200);
}

#[tokio::test]
async fn unauthenticated_connections_are_limited_in_number_and_those_above_it_are_answered_503() {
    let rig = Rig::limited(TOKENS, unauthenticated(1, Duration::from_secs(600))).await;
    let mut first = rig.client().await;
    let refused = rig.client().await.response().await;
    assert_eq!(
        (refused.status, &refused.json()["error"]["code"]),
        (503, &"gateway_busy".into())
    );
    first.send(request("GET", "/metrics", Some("ta"), "")).await;
    assert_eq!(first.response().await.status, 200);
    // The first one is known now, which makes room.
    let health = rig.get("/flashrig/health", None).await;
    assert_eq!(health.status, 200);
    let metrics = rig.get("/metrics", Some("ta")).await;
    let page = String::from_utf8(metrics.body).unwrap();
    assert!(
        page.contains(r#"flashrig_refusals_total{client="(unknown)",kind="gateway_busy"} 1"#),
        "{page}"
    );
}

#[tokio::test]
async fn no_more_bodies_are_held_at_a_time_than_is_set_and_the_room_comes_back() {
    let limits = Limits {
        held_body_bytes: Some(CHAT_BODY.len() as u64 + 10),
        ..Limits::standing()
    };
    let rig = Rig::limited(&[], limits).await;
    let mut first = rig.post(CHAT, None).await;
    let (mut server, _) = rig.server.request().await;
    let mut second = rig.post(CHAT, None).await;
    let response = second.response().await;
    assert_eq!(
        (response.status, &response.json()["error"]["code"]),
        (503, &"gateway_busy".into())
    );
    server.answer("200 OK", "{}").await;
    assert_eq!(first.response().await.status, 200);
    let mut third = rig.post(CHAT, None).await;
    let (mut server, _) = rig.server.request().await;
    server.answer("200 OK", "{}").await;
    assert_eq!(third.response().await.status, 200);
}
