//! Sessions as a whole: clients that leave, time limits, connections, many at once, the close.

use std::time::Duration;

use crate::gateway_rig::*;
use crate::upstream::Peer;
use flashrig_gateway::{GatewayEvent, Limits};
use flashrig_record::{Outcome, Role};

const DONE: &str = "data: [DONE]\n\n";

#[tokio::test]
async fn a_client_that_leaves_before_the_answer_takes_the_servers_request_along() {
    let rig = Rig::new().await;
    let client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    drop(client);
    server.closed().await;
    let row = rig.row().await;
    assert_eq!(
        (row.outcome, row.status, row.error),
        (Outcome::ClientAborted, None, None)
    );
}

#[tokio::test]
async fn a_client_that_leaves_within_the_stream_takes_the_servers_request_along() {
    let rig = Rig::new().await;
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    server.start_stream().await;
    server.send_chunk(delta(r#"{"content":"hi"}"#)).await;
    client.head().await.unwrap();
    client.chunks_until("hi").await;
    drop(client);
    server.closed().await;
    let row = rig.row().await;
    assert_eq!(
        (row.outcome, row.status, row.content_events),
        (Outcome::ClientAborted, Some(200), 1)
    );
}

#[tokio::test]
async fn a_client_that_leaves_after_the_end_mark_had_a_complete_answer() {
    let rig = Rig::new().await;
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    server.start_stream().await;
    server.send_chunk(DONE).await;
    client.head().await.unwrap();
    client.chunks_until("[DONE]").await;
    drop(client);
    assert_eq!(rig.row().await.outcome, Outcome::Complete);
}

#[tokio::test]
async fn the_one_time_limit_holds_before_the_head_and_is_answered_in_the_dialect() {
    let limits = Limits {
        time_limit: Some(Duration::from_millis(150)),
        ..Limits::default()
    };
    let rig = Rig::with(Setup {
        limits,
        ..Setup::default()
    })
    .await;
    let mut client = rig.post(MESSAGES, MESSAGES_BODY).await;
    let (mut server, _) = rig.server.request().await;
    let response = client.response().await;
    assert_eq!(
        (response.status, &response.json()["error"]["type"]),
        (504, &"timeout_error".into())
    );
    server.closed().await;
    let row = rig.row().await;
    assert_eq!((row.outcome, row.status), (Outcome::Stalled, Some(504)));
    assert!(row.clocks.end_s.0 - row.clocks.sent_s.unwrap().0 >= 0.15);
}

#[tokio::test]
async fn the_time_limit_is_on_silence_and_not_on_the_whole() {
    let limits = Limits {
        time_limit: Some(Duration::from_secs(1)),
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
    let began = tokio::time::Instant::now();
    while began.elapsed() < Duration::from_millis(1600) {
        server.send_chunk(": keepalive\n\n").await;
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    server.send_chunk(DONE).await;
    server.end_stream().await;
    assert!(client.response().await.whole);
    assert_eq!(rig.row().await.outcome, Outcome::Complete);
}

#[tokio::test]
async fn without_a_time_limit_there_is_no_timer_that_could_be_a_hidden_one() {
    // In a runtime without timers, arming any would panic and break the exchange off.
    let untimed = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_io()
        .build()
        .unwrap();
    let rig = Rig::with(Setup {
        runtime: Some(untimed.handle().clone()),
        ..Setup::default()
    })
    .await;
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    server
        .send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    client.head().await.unwrap();
    server.send_chunk(delta(r#"{"content":"hi"}"#)).await;
    client.chunks_until("hi").await;
    server.send_chunk(DONE).await;
    server.end_stream().await;
    client.chunks_until("[DONE]").await;
    assert_eq!(client.chunk().await.unwrap(), b"");
    assert_eq!(rig.row().await.outcome, Outcome::Complete);
    untimed.shutdown_background();
}

#[tokio::test]
async fn a_client_keeps_its_connection_while_every_request_reaches_the_server_over_a_new_one() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for n in 1..=3 {
        client.send(post(CHAT, format!("{{\"n\":{n}}}"))).await;
        let (mut server, request) = rig.server.request().await;
        assert_eq!(request.body, format!("{{\"n\":{n}}}").into_bytes());
        server.answer("200 OK", "{}").await;
        assert_eq!(client.response().await.status, 200);
        // No idle connection is left for a server to hold a thread for.
        server.closed().await;
    }
    let rows = rig.rows(3).await;
    assert!(rows.iter().all(|row| row.outcome == Outcome::Complete));
}

#[tokio::test]
async fn an_answer_that_asks_to_close_ends_that_connection_only() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for _ in 0..2 {
        client.send(post(CHAT, "{}")).await;
        let (mut server, _) = rig.server.request().await;
        server
            .send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
            .await;
        let response = client.response().await;
        assert_eq!(crate::upstream::header(&response.head, "connection"), None);
    }
    assert_eq!(rig.rows(2).await.len(), 2);
}

#[tokio::test]
async fn requests_without_tools_are_the_main_thread_of_a_session_that_has_no_other() {
    let plain = r#"{"model":"m","messages":[{"role":"user","content":"title?"}]}"#;
    for (bodies, roles) in [
        ([plain, plain], [Role::Main, Role::Main]),
        ([plain, CHAT_BODY], [Role::Side, Role::Main]),
    ] {
        let rig = Rig::new().await;
        let mut client = rig.client().await;
        for body in bodies {
            client.send(post(CHAT, body)).await;
            let mut server = rig.server.accept().await;
            server.request().await;
            server
                .send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
                .await;
            client.response().await;
        }
        let rows = rig.rows(2).await;
        assert_eq!([rows[0].role, rows[1].role], roles);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ninety_six_streams_at_once_all_arrive_whole() {
    const STREAMS: usize = 96;
    let rig = Rig::new().await;
    let mut clients = Vec::new();
    let mut servers = Vec::new();
    for n in 0..STREAMS {
        clients.push(
            rig.post(CHAT, format!("{{\"stream\":true,\"n\":{n}}}"))
                .await,
        );
        servers.push(rig.server.request().await);
    }
    assert_eq!(rig.session.activity().in_flight as usize, STREAMS);
    let serving = servers.into_iter().map(|(mut server, request)| {
        tokio::spawn(async move {
            let request: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
            server.start_stream().await;
            for event in 0..50 {
                server
                    .send_chunk(delta(&format!(
                        "{{\"content\":\"{}-{event} \"}}",
                        request["n"]
                    )))
                    .await;
            }
            server.send_chunk(DONE).await;
            server.end_stream().await;
            server
        })
    });
    let serving: Vec<_> = serving.collect();
    let reading: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(n, mut client): (usize, Peer)| {
            tokio::spawn(async move {
                let response = client.response().await;
                let text = String::from_utf8(response.body).unwrap();
                let mut want: String = (0..50)
                    .map(|event| delta(&format!("{{\"content\":\"{n}-{event} \"}}")))
                    .collect();
                want.push_str(DONE);
                assert!(response.whole && text == want);
            })
        })
        .collect();
    for task in reading {
        task.await.unwrap();
    }
    for task in serving {
        task.await.unwrap();
    }
    let rows = rig.rows(u32::try_from(STREAMS).unwrap()).await;
    assert!(
        rows.iter()
            .all(|row| row.outcome == Outcome::Complete && row.content_events == 50)
    );
    let numbers: Vec<u32> = rows.iter().map(|row| row.number).collect();
    assert_eq!(numbers, (1..=96).collect::<Vec<u32>>());
}

#[tokio::test]
async fn closing_cuts_off_what_is_in_flight_and_loses_no_row() {
    let rig = Rig::new().await;
    let mut finished = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    server.answer("200 OK", "{\"choices\":[]}").await;
    finished.response().await;
    drop(server);
    // One streams, one waits for its head, one is still being sent, one was rejected.
    let mut streaming = rig.post(CHAT, CHAT_BODY).await;
    let (mut first, _) = rig.server.request().await;
    first.start_stream().await;
    first.send_chunk(delta(r#"{"content":"hi"}"#)).await;
    streaming.head().await.unwrap();
    streaming.chunks_until("hi").await;
    let _waiting = rig.post(CHAT, CHAT_BODY).await;
    let (mut second, _) = rig.server.request().await;
    let mut sending = rig.client().await;
    sending.send(&post(CHAT, CHAT_BODY)[..160]).await;
    rig.until(|activity| activity.attempts == 4).await;
    let mut rejected = rig.client().await;
    rejected
        .send(format!(
            "POST {CHAT} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"
        ))
        .await;
    assert_eq!(rejected.response().await.status, 401);

    let events = std::sync::Arc::clone(&rig.events);
    let addr = rig.session.addr();
    let rows = crate::upstream::soon(rig.session.close()).await;
    let ends: Vec<Outcome> = rows.iter().map(|row| row.outcome).collect();
    let cut = Outcome::ClientAborted;
    assert_eq!(
        ends,
        [Outcome::Complete, cut, cut, cut, Outcome::RejectedByGateway]
    );
    for row in &rows[1..4] {
        assert_eq!(
            row.error.as_ref().unwrap().kind.as_deref(),
            Some("session_closed")
        );
    }
    assert_eq!(
        rows.iter().map(|row| row.number).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5]
    );
    first.closed().await;
    second.closed().await;
    assert!(
        !crate::upstream::soon(async {
            streaming
                .body("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n")
                .await
                .1
        })
        .await
    );
    assert!(
        tokio::net::TcpStream::connect(addr).await.is_err(),
        "nobody listens any more"
    );
    let ended = events
        .lock()
        .unwrap()
        .iter()
        .filter(|event| matches!(event, GatewayEvent::Finished(_)))
        .count();
    assert_eq!(ended, 5);
}

#[tokio::test]
async fn activity_tells_when_requests_begin_and_end() {
    let rig = Rig::new().await;
    let opened = rig.session.activity();
    assert_eq!(
        (opened.in_flight, opened.attempts, opened.first_request),
        (0, 0, None)
    );
    let mut client = rig.client().await;
    client
        .send(format!(
            "GET /v1/models HTTP/1.1\r\nHost: h\r\nx-api-key: {TOKEN}\r\n\r\n"
        ))
        .await;
    let (mut server, _) = rig.server.request().await;
    let during = rig.session.activity();
    assert_eq!((during.in_flight, during.attempts), (1, 1));
    assert!(during.first_request.is_some() && during.first_generation.is_none());
    assert!(during.last_change >= opened.last_change);
    server
        .send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
        .await;
    client.response().await;
    rig.until(|activity| activity.in_flight == 0).await;
    client.send(post(CHAT, CHAT_BODY)).await;
    let _server = rig.server.request().await;
    let after = rig.session.activity();
    assert!(after.first_generation.unwrap() >= after.first_request.unwrap());
    assert_eq!(after.first_request, during.first_request);
}

#[tokio::test]
async fn the_nonce_is_constant_at_the_start_and_the_rest_is_byte_identical() {
    let rig = Rig::with(Setup {
        nonce: Some("n-42".into()),
        ..Setup::default()
    })
    .await;
    let line = r"[cache nonce n-42]\n";
    for body in [MESSAGES_BODY, MESSAGES_BODY] {
        let mut client = rig.post(MESSAGES, body).await;
        let mut server = rig.server.accept().await;
        let request = server.request().await;
        let want = body.replace("be good", &format!("{line}be good"));
        assert_eq!(std::str::from_utf8(&request.body).unwrap(), want);
        assert_eq!(
            request.header("content-length").unwrap(),
            want.len().to_string()
        );
        server
            .send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
            .await;
        client.response().await;
    }
    let rows = rig.rows(2).await;
    assert!(
        rows.iter()
            .all(|row| row.body_changed && row.request_bytes as usize == MESSAGES_BODY.len())
    );
    assert_eq!(
        rows[0].body_hash, rows[1].body_hash,
        "the hash is of what the client sent"
    );
    assert_eq!(rows[1].repeats, Some(1));
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_its_server_back() {
    // A client that does not read must not make the gateway buffer the stream without bound.
    let rig = Rig::new().await;
    let client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    server.start_stream().await;
    let chunk = format!("{:x}\r\n{}\r\n", 65536, "x".repeat(65536));
    let mut sent = 0_usize;
    let stalled = loop {
        match tokio::time::timeout(Duration::from_millis(500), server.send(&chunk)).await {
            Ok(()) => sent += 65536,
            Err(_) => break true,
        }
        if sent > 256 * 1024 * 1024 {
            break false;
        }
    };
    assert!(
        stalled,
        "the server could send {sent} bytes that nobody read"
    );
    drop(client);
    server.closed().await;
    assert_eq!(rig.row().await.outcome, Outcome::ClientAborted);
}
