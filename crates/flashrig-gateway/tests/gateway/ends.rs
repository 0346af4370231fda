//! How streams end, and that a client sees the same end as the gateway.

use std::time::Duration;

use crate::gateway_rig::*;
use flashrig_gateway::Limits;
use flashrig_record::Outcome;

#[tokio::test]
async fn a_stream_that_closes_in_good_order_but_without_end_mark_is_truncated() {
    let hi = delta(r#"{"content":"hi"}"#);
    let (body, whole, row) = chat_stream(&[&hi]).await;
    assert_eq!(
        (body, whole),
        (hi.into_bytes(), true),
        "what the server framed is passed on as framed"
    );
    assert_eq!(row.outcome, Outcome::Truncated);
}

#[tokio::test]
async fn an_abnormal_close_is_passed_on_as_abnormal() {
    let rig = Rig::new().await;
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    let hi = delta(r#"{"content":"hi"}"#);
    server.start_stream().await;
    server.send_chunk(&hi).await;
    drop(server);
    let response = client.response().await;
    assert_eq!(
        (response.status, response.body, response.whole),
        (200, hi.into_bytes(), false)
    );
    let row = rig.row().await;
    assert_eq!((row.outcome, row.status), (Outcome::Truncated, Some(200)));
    assert!(row.error.is_some());
}

#[tokio::test]
async fn a_body_shorter_than_announced_is_passed_on_as_abnormal() {
    let rig = Rig::new().await;
    let mut client = rig.post(CHAT, r#"{"messages":[]}"#).await;
    let (mut server, _) = rig.server.request().await;
    server
        .send(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{\"cho",
        )
        .await;
    drop(server);
    let response = client.response().await;
    assert_eq!(
        (response.body.as_slice(), response.whole),
        (&b"{\"cho"[..], false)
    );
    assert_eq!(rig.row().await.outcome, Outcome::Truncated);
}

#[tokio::test]
async fn a_stream_framed_by_its_close_alone_is_whole_only_with_its_end_mark() {
    for (stream, end) in [
        (STOP, Outcome::Complete),
        ("data: {\"choices\":[]}\n\n", Outcome::Truncated),
    ] {
        let rig = Rig::new().await;
        let mut client = rig.post(CHAT, CHAT_BODY).await;
        let (mut server, _) = rig.server.request().await;
        server
            .send("HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
            .await;
        server.send(stream).await;
        drop(server);
        let response = client.response().await;
        assert_eq!(response.body, stream.as_bytes());
        assert_eq!(response.whole, end == Outcome::Complete);
        assert_eq!(rig.row().await.outcome, end);
    }
}

#[tokio::test]
async fn an_error_event_after_a_200_is_an_error_in_the_stream() {
    let overloaded =
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let (_, whole, row) = stream(MESSAGES, MESSAGES_BODY, &[&event("error", overloaded)]).await;
    assert!(whole);
    let error = row.error.unwrap();
    assert_eq!(
        (row.outcome, row.status),
        (Outcome::ErrorInStream, Some(200))
    );
    assert_eq!(
        (error.kind.as_deref(), error.message.as_str()),
        (Some("overloaded_error"), "Overloaded")
    );

    let fault = "data: {\"error\":{\"code\":500,\"message\":\"decode failed\"}}\n\n";
    let (_, _, row) =
        chat_stream(&[&delta(r#"{"content":"hi"}"#), fault, "data: [DONE]\n\n"]).await;
    assert_eq!(
        (row.outcome, row.error.unwrap().message.as_str()),
        (Outcome::ErrorInStream, "decode failed")
    );
}

#[tokio::test]
async fn silence_beyond_the_time_limit_is_a_stall_passed_on_as_abnormal() {
    let limits = Limits {
        time_limit: Some(Duration::from_millis(150)),
        ..Limits::default()
    };
    let rig = Rig::with(Setup {
        limits,
        ..Setup::default()
    })
    .await;
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    server.start_stream().await;
    server.send_chunk(delta(r#"{"content":"hi"}"#)).await;
    assert!(!client.response().await.whole);
    server.closed().await;
    let row = rig.row().await;
    assert_eq!((row.outcome, row.status), (Outcome::Stalled, Some(200)));
    assert_eq!(row.error.unwrap().kind.as_deref(), Some("time_limit"));
    assert!(row.clocks.end_s.0 - row.clocks.last_token_s.unwrap().0 >= 0.15);
}

/// Case D1: the server logs a 200 for each, and the client asks ten times.
#[tokio::test]
async fn the_same_body_again_after_a_200_that_lacks_a_field_is_a_retry_and_the_field_is_named() {
    let rig = Rig::new().await;
    for _ in 0..3 {
        let mut client = rig.post(MESSAGES, MESSAGES_BODY).await;
        let (mut server, _) = rig.server.request().await;
        server.start_stream().await;
        let start = r#"{"type":"message_start","message":{"id":"m1"}}"#;
        server.send_chunk(event("message_start", start)).await;
        let stop = event("message_stop", r#"{"type":"message_stop"}"#);
        server.send_chunk(stop).await;
        server.end_stream().await;
        assert_eq!(client.response().await.status, 200);
        rig.until(|activity| activity.in_flight == 0).await;
    }
    let rows = rig.rows(3).await;
    let reported: Vec<_> = rows.iter().map(|r| (r.status, r.repeats)).collect();
    let (ok, first) = (Some(200), Some(1));
    assert_eq!(reported, [(ok, None), (ok, first), (ok, first)]);
    for row in rows {
        assert_eq!(row.missing_fields, ["message_start.message.usage"]);
    }
}

/// Case D2, its five end states side by side: one begins like the other.
#[tokio::test]
async fn a_stream_that_began_ends_in_one_of_five_states_and_only_one_of_them_is_complete() {
    for end in [
        Outcome::Complete,
        Outcome::Truncated,
        Outcome::Stalled,
        Outcome::ErrorInStream,
        Outcome::ClientAborted,
    ] {
        // No other end comes from a timer.
        let limit = (end == Outcome::Stalled).then(|| Duration::from_millis(150));
        let limits = Limits {
            time_limit: limit,
            ..Limits::default()
        };
        let rig = Rig::with(Setup {
            limits,
            ..Setup::default()
        })
        .await;
        let mut client = rig.post(CHAT, CHAT_BODY).await;
        let (mut server, _) = rig.server.request().await;
        server.start_stream().await;
        server.send_chunk(delta(r#"{"content":"hi"}"#)).await;
        let head = client.head().await.unwrap();
        client.chunks_until("hi").await;
        // Whether the client's stream ends in good order.
        let whole = match end {
            Outcome::Complete => {
                server.send_chunk(STOP).await;
                server.end_stream().await;
                client.body(&head).await.1
            }
            Outcome::ErrorInStream => {
                let fault = "data: {\"error\":{\"message\":\"decode failed\"}}\n\n";
                server.send_chunk(fault).await;
                server.end_stream().await;
                client.body(&head).await.1
            }
            Outcome::Truncated => {
                drop(server);
                client.body(&head).await.1
            }
            Outcome::Stalled => client.body(&head).await.1,
            _ => {
                drop(client);
                server.closed().await;
                false
            }
        };
        let in_order = matches!(end, Outcome::Complete | Outcome::ErrorInStream);
        assert_eq!(whole, in_order, "{end:?}");
        let row = rig.row().await;
        assert_eq!((row.outcome, row.status), (end, Some(200)));
        assert_eq!(row.content_events, 1);
    }
}
