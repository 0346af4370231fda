//! Which connection to the server a request takes.

#![cfg(target_os = "linux")]

use crate::gateway_rig::*;
use crate::upstream::{Peer, let_connections_settle, soon};
use flashrig_record::Outcome;

/// An answer after which the connection stays open.
async fn answer(server: &mut Peer) {
    server
        .send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
        .await;
}

#[tokio::test]
async fn the_next_request_takes_the_connection_of_the_one_before() {
    let rig = Rig::new().await;
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    for number in 0..3 {
        answer(&mut server).await;
        assert_eq!(client.response().await.status, 200);
        if number < 2 {
            let_connections_settle().await;
            client.send(post(CHAT, CHAT_BODY)).await;
            server.request().await;
        }
    }
    let rows = rig.rows(3).await;
    assert!(rows.iter().all(|row| row.outcome == Outcome::Complete));
}

#[tokio::test]
async fn streams_leave_their_connection_to_the_next_request_too() {
    let rig = Rig::new().await;
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    for number in 0..2 {
        server
            .send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            .await;
        server.send_chunk(STOP).await;
        server.end_stream().await;
        assert!(client.response().await.whole);
        if number == 0 {
            let_connections_settle().await;
            client.send(post(CHAT, CHAT_BODY)).await;
            server.request().await;
        }
    }
    assert_eq!(rig.rows(2).await.len(), 2);
}

#[tokio::test]
async fn requests_at_one_time_each_have_a_connection() {
    let rig = Rig::new().await;
    let mut one = rig.post(CHAT, CHAT_BODY).await;
    let (mut first, _) = rig.server.request().await;
    let mut two = rig.post(CHAT, r#"{"messages":[]}"#).await;
    let (mut second, _) = rig.server.request().await;
    answer(&mut second).await;
    assert_eq!(two.response().await.status, 200);
    answer(&mut first).await;
    assert_eq!(one.response().await.status, 200);
}

#[tokio::test]
async fn a_connection_that_the_server_closes_while_it_is_idle_costs_no_request() {
    let rig = Rig::new().await;
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    answer(&mut server).await;
    client.response().await;
    drop(server);
    let_connections_settle().await;
    // The close is heard in order with this connection's, which comes after it.
    let mut other = rig.client().await;
    other.send("GET /x HTTP/1.1\r\nHost: g\r\n\r\n").await;
    assert_eq!(other.response().await.status, 401);

    client.send(post(CHAT, CHAT_BODY)).await;
    let (mut server, _) = rig.server.request().await;
    answer(&mut server).await;
    assert_eq!(client.response().await.status, 200);
}

#[tokio::test]
async fn no_connection_is_used_again_after_an_answer_that_broke_off() {
    let rig = Rig::new().await;
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    server
        .send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\nrubbish\r\n")
        .await;
    assert!(!client.response().await.whole);
    soon(server.closed()).await;

    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    answer(&mut server).await;
    assert_eq!(client.response().await.status, 200);
}

#[tokio::test]
async fn a_connection_that_nobody_needs_is_closed() {
    let rig = Rig::new().await;
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    answer(&mut server).await;
    client.response().await;
    soon(server.closed()).await;
}

#[tokio::test]
async fn closing_the_session_closes_kept_connections() {
    let rig = Rig::new().await;
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    answer(&mut server).await;
    client.response().await;
    drop(client);
    let rows = rig.session.close().await;
    assert_eq!(rows.len(), 1);
    soon(server.closed()).await;
}
