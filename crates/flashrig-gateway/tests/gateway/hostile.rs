//! Hostile and broken input on both sides, at byte level: a clear status to the client, a row,
//! bounded memory, never a panic.

use std::time::Duration;

use crate::gateway_rig::*;
use flashrig_gateway::Limits;
use flashrig_record::{Attempt, Outcome};

async fn with_head_time(millis: u64) -> Rig {
    let limits = Limits {
        head_time: Duration::from_millis(millis),
        ..Limits::default()
    };
    Rig::with(Setup {
        limits,
        ..Setup::default()
    })
    .await
}

#[tokio::test]
async fn a_head_that_does_not_come_to_its_end_is_a_408_and_a_row() {
    let rig = with_head_time(100).await;
    let mut client = rig.client().await;
    client
        .send("POST /v1/messages HTTP/1.1\r\nHost: h\r\nX-Slow: ")
        .await;
    let response = client.response().await;
    assert_eq!(
        (response.status, &response.json()["error"]["code"]),
        (408, &"slow_head".into())
    );
    client.closed().await;
    let row = rig.row().await;
    assert_eq!(
        (row.outcome, row.status, row.error.unwrap().kind.as_deref()),
        (Outcome::RejectedByGateway, Some(408), Some("slow_head"))
    );
}

#[tokio::test]
async fn a_head_that_drips_byte_by_byte_is_limited_as_a_whole() {
    let rig = with_head_time(200).await;
    let mut client = rig.client().await;
    for byte in b"GET /v1/models HTTP/1.1\r\nX: "
        .iter()
        .chain([b'x'; 10_000].iter())
    {
        if !client.is_quiet() {
            break;
        }
        client.send([*byte]).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(client.response().await.status, 408);
    assert_eq!(rig.row().await.status, Some(408));
}

#[tokio::test]
async fn a_connection_that_rests_has_no_slow_head() {
    let rig = with_head_time(100).await;
    let mut fresh = rig.client().await;
    let mut used = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    // A slow answer is not a slow head either.
    // That the limit has passed shows on a connection whose head is slow.
    let passed = async || {
        let mut slow = rig.client().await;
        slow.send("POST / HT").await;
        assert_eq!(slow.response().await.status, 408);
    };
    passed().await;
    server.answer("200 OK", "{}").await;
    assert_eq!(used.response().await.status, 200);
    passed().await;
    for client in [&mut fresh, &mut used] {
        client.send(post(CHAT, CHAT_BODY)).await;
        let (mut server, _) = rig.server.request().await;
        server.answer("200 OK", "{}").await;
        assert_eq!(client.response().await.status, 200);
    }
    // And the limit holds on a connection that was used before.
    used.send("POST / HT").await;
    assert_eq!(used.response().await.status, 408);
    let rows = rig.rows(6).await;
    let (slow, fine): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.status == Some(408));
    assert_eq!(slow.len(), 3);
    assert!(fine.iter().all(|row| row.outcome == Outcome::Complete));
}

#[tokio::test]
async fn whatever_is_no_request_gets_the_status_that_its_row_has() {
    let long = |bytes: usize| "x".repeat(bytes);
    let heads = [
        format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", long(70_000)),
        format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", long(65_520)),
        format!(
            "GET / HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n",
            long(1_000_000)
        ),
        format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(300)),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost h\r\n\r\n".to_owned(),
        "GET  / HTTP/1.1\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}tls hello\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nX: \0\r\n\r\n".to_owned(),
        "POST /v1/messages HTTP/1.1\r\nContent-Length: -1\r\n\r\n".to_owned(),
        "POST /v1/messages HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}".to_owned(),
        "POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n".to_owned(),
    ];
    let rig = Rig::new().await;
    let mut reported = Vec::new();
    for (at, head) in heads.iter().enumerate() {
        let mut client = rig.client().await;
        client.send(head).await;
        let answer = client
            .head()
            .await
            .unwrap_or_else(|| panic!("{at}: no status"));
        let status: u16 = answer.split(' ').nth(1).unwrap().parse().unwrap();
        assert!((400..600).contains(&status), "{at}: {answer}");
        reported.push(Some(status));
        let seen = u32::try_from(at + 1).unwrap();
        rig.until(|a| a.attempts == seen && a.in_flight == 0).await;
    }
    let rows = rig.rows(u32::try_from(heads.len()).unwrap()).await;
    let stored: Vec<_> = rows.iter().map(|row| row.status).collect();
    assert_eq!(stored, reported);
    assert!(
        rows.iter()
            .all(|row| row.outcome == Outcome::RejectedByGateway && row.error.is_some())
    );
}

#[tokio::test]
async fn a_body_of_64_mebibytes_passes_and_one_byte_more_is_a_413() {
    let full = 64 * 1024 * 1024;
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let sending = tokio::spawn(async move {
        client.send(post(CHAT, vec![b' '; full])).await;
        client
    });
    let (mut server, request) = rig.server.request().await;
    assert_eq!(request.body.len(), full);
    server
        .answer("400 Bad Request", "{\"error\":\"empty\"}")
        .await;
    let mut client = sending.await.unwrap();
    assert_eq!(client.response().await.status, 400);

    let mut over = rig.client().await;
    let sending = tokio::spawn(async move {
        over.send(post(CHAT, vec![b' '; full + 1])).await;
        over
    });
    let mut over = sending.await.unwrap();
    assert_eq!(over.response().await.status, 413);
    let rows = rig.rows(2).await;
    assert_eq!(
        (rows[0].request_bytes, rows[1].request_bytes),
        (full as u64, full as u64 + 1)
    );
    assert_eq!(
        (rows[0].outcome, rows[1].outcome),
        (Outcome::Refused, Outcome::RejectedByGateway)
    );
}

/// One chat exchange with these bytes as the server's whole answer, after which it closes.
async fn answered_with(bytes: &[u8]) -> (Option<u16>, Vec<u8>, bool, Attempt) {
    let rig = Rig::new().await;
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    server.send(bytes).await;
    drop(server);
    let response = client.response().await;
    (
        Some(response.status),
        response.body,
        response.whole,
        rig.row().await,
    )
}

#[tokio::test]
async fn rubbish_in_place_of_a_response_head_is_a_502_and_a_row() {
    let head = "HTTP/1.1 200 OK\r\n";
    for rubbish in [
        "220 smtp ready\r\n".to_owned(),
        "\0\0\0\0".to_owned(),
        "HTTP/1.1 abc\r\n\r\n".to_owned(),
        "HTTP/1.1 99 Low\r\n\r\n".to_owned(),
        "{\"choices\":[]}".to_owned(),
        format!("{head}no colon\r\n\r\n"),
        format!("{head}Content-Length: many\r\n\r\n"),
        format!("{head}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
        format!("{head}{}\r\n", "X: y\r\n".repeat(400)),
        format!("{head}X: {}\r\n\r\n", "x".repeat(1_000_000)),
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n".to_owned(),
    ] {
        let (status, body, _, row) = answered_with(rubbish.as_bytes()).await;
        let start: String = rubbish.chars().take(60).collect();
        assert_eq!(status, Some(502), "{start:?}");
        assert!(body.starts_with(b"{\"error\""), "{start:?}");
        assert_eq!(
            (row.outcome, row.status),
            (Outcome::UpstreamError, Some(502)),
            "{start:?}"
        );
        assert!(row.error.is_some());
    }
}

#[tokio::test]
async fn rubbish_within_a_stream_breaks_it_off_for_the_client_as_the_server_did() {
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let hi = delta(r#"{"content":"hi"}"#);
    let good = format!("{head}{:x}\r\n{hi}\r\n", hi.len());
    for rubbish in [
        "zz\r\n",
        "fffffffffffffffff\r\n",
        "5\r\nab",
        "-1\r\n",
        "4\r\nabcdefgh\r\n",
    ] {
        let (status, body, whole, row) = answered_with(format!("{good}{rubbish}").as_bytes()).await;
        assert_eq!((status, whole), (Some(200), false), "{rubbish:?}");
        assert!(body.starts_with(hi.as_bytes()), "{rubbish:?}");
        assert_eq!(
            (row.outcome, row.content_events),
            (Outcome::Truncated, 1),
            "{rubbish:?}"
        );
    }
}

#[tokio::test]
async fn frames_that_are_no_json_or_no_utf8_pass_and_are_flagged() {
    let rig = Rig::new().await;
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    server.start_stream().await;
    let frames: [&[u8]; 5] = [
        b"data: \xff\xfe\x00\n\n",
        b"data: {\"choices\":[{\"delta\":{\"content\":\"\xc3\x28\"}}]}\n\n",
        b"\x00\x01\x02: nothing\n\n",
        b"data: [[[[[[\n\ndata: 1\n\ndata: null\n\ndata: \"x\"\n\n",
        STOP.as_bytes(),
    ];
    for frame in frames {
        server.send_chunk(frame).await;
    }
    server.end_stream().await;
    let response = client.response().await;
    assert_eq!((response.body, response.whole), (frames.concat(), true));
    let row = rig.row().await;
    assert_eq!(row.outcome, Outcome::Complete);
    assert_eq!(row.missing_fields, ["(a frame is not JSON)", "choices"]);
}

#[tokio::test]
async fn json_nested_without_end_is_no_frame_and_no_overflow() {
    let deep = format!("data: {}\n\n", "[".repeat(200_000));
    let request = format!("{{\"messages\":{}", "[".repeat(200_000));
    let rig = Rig::new().await;
    let mut client = rig.post(CHAT, &request).await;
    let (mut server, forwarded) = rig.server.request().await;
    assert_eq!(forwarded.body, request.as_bytes());
    server
        .send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    server.send_chunk(&deep).await;
    server.send_chunk(STOP).await;
    server.end_stream().await;
    assert!(client.response().await.whole);
    assert_eq!(rig.row().await.missing_fields, ["(a frame is not JSON)"]);
}

#[tokio::test]
async fn a_request_sent_again_while_the_first_still_runs_is_called_out() {
    let rig = Rig::new().await;
    let _first = rig.post(CHAT, CHAT_BODY).await;
    let (mut one, _) = rig.server.request().await;
    let mut second = rig.post(CHAT, CHAT_BODY).await;
    let (mut two, _) = rig.server.request().await;
    one.answer("200 OK", "{}").await;
    two.answer("200 OK", "{}").await;
    assert_eq!(second.response().await.status, 200);
    rig.until(|a| a.attempts == 2 && a.in_flight == 0).await;
    // Over by now: this one is a repeat, but not of anything open.
    let mut third = rig.post(CHAT, CHAT_BODY).await;
    let (mut three, _) = rig.server.request().await;
    three.answer("200 OK", "{}").await;
    assert_eq!(third.response().await.status, 200);
    let rows = rig.rows(3).await;
    let reported: Vec<_> = rows.iter().map(|r| (r.repeats, r.repeats_open)).collect();
    assert_eq!(reported, [(None, false), (Some(1), true), (Some(1), false)]);
}

#[tokio::test]
async fn a_client_that_gives_up_and_asks_again_takes_its_first_request_along() {
    let rig = Rig::new().await;
    let first = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    drop(first);
    server.closed().await;
    rig.until(|a| a.in_flight == 0).await;
    let _second = rig.post(CHAT, CHAT_BODY).await;
    let (_server, _) = rig.server.request().await;
    let rows = rig.session.close().await;
    assert_eq!(rows[0].outcome, Outcome::ClientAborted);
    assert_eq!((rows[1].repeats, rows[1].repeats_open), (Some(1), false));
}
