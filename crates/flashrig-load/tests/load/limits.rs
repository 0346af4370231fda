//! Servers that stop answering, and clients that leave.

use std::time::Duration;

use flashrig_load::{Ask, LoadDialect, Meter};
use flashrig_record::{Outcome, Role};

use super::upstream::{Peer, Upstream};
use super::with_limits;

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
const TOKEN: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";

/// Waits until the runtime has heard of every close up to now: it hears of them in order.
async fn closes_are_heard(upstream: &Upstream) {
    let addr = upstream.url()["http://".len()..].parse().unwrap();
    let (mut peer, accepted) = tokio::join!(Peer::connect(addr), upstream.accept());
    drop(accepted);
    peer.closed().await;
}

fn ask() -> Ask {
    Ask {
        session: "s".to_owned(),
        role: Role::Main,
        body: "{}".into(),
        messages: 1,
        max_tokens: 8,
    }
}

#[tokio::test]
async fn a_server_that_sends_keep_alives_and_no_token_has_stalled() {
    let upstream = Upstream::bind().await;
    // One second is the least there is.
    let client = with_limits(&upstream.url(), LoadDialect::OpenaiChat, Duration::ZERO);
    let serving = tokio::spawn(async move {
        let (mut peer, _) = upstream.request().await;
        peer.send(HEAD).await;
        // Until the client leaves.
        let mut tick = tokio::time::interval(Duration::from_millis(50));
        loop {
            tokio::select! {
                () = peer.closed() => return,
                _ = tick.tick() => peer.send(b": keep-alive\n\n").await,
            }
        }
    });
    let answer = client.ask(ask()).await;
    assert_eq!(answer.attempt.outcome, Outcome::Stalled);
    assert_eq!(answer.attempt.status, Some(200));
    let message = answer.attempt.error.unwrap().message;
    assert!(message.contains("no token within 1.0 s"), "{message}");
    drop(client);
    serving.await.unwrap();
}

#[tokio::test]
async fn a_server_that_accepts_and_says_nothing_has_stalled_too() {
    let upstream = Upstream::bind().await;
    let client = with_limits(&upstream.url(), LoadDialect::OpenaiChat, Duration::ZERO);
    let (answer, _held) = tokio::join!(client.ask(ask()), upstream.request());
    assert_eq!(
        (answer.attempt.outcome, answer.attempt.status),
        (Outcome::Stalled, None)
    );
}

#[tokio::test]
async fn silence_in_the_middle_of_an_answer_is_a_stall_that_keeps_what_came() {
    let upstream = Upstream::bind().await;
    let client = with_limits(&upstream.url(), LoadDialect::OpenaiChat, Duration::ZERO);
    let serving = async {
        let (mut peer, _) = upstream.request().await;
        peer.send(HEAD).await;
        peer.send(TOKEN).await;
        peer
    };
    let (answer, _held) = tokio::join!(client.ask(ask()), serving);
    assert_eq!(answer.attempt.outcome, Outcome::Stalled);
    assert_eq!(
        (answer.text.as_str(), answer.attempt.content_events),
        ("a", 1)
    );
    let message = answer.attempt.error.unwrap().message;
    assert!(message.contains("no token for 1 s"), "{message}");
}

#[tokio::test]
async fn a_stream_that_closes_early_is_truncated_and_an_error_in_it_is_one() {
    for (tail, end) in [
        (&b""[..], Outcome::Truncated),
        (
            b"data: {\"error\":{\"message\":\"boom\"}}\n\n",
            Outcome::ErrorInStream,
        ),
    ] {
        let upstream = Upstream::bind().await;
        let limit = Duration::from_secs(60);
        let client = with_limits(&upstream.url(), LoadDialect::OpenaiChat, limit);
        let serving = async {
            let (mut peer, _) = upstream.request().await;
            peer.send(&[HEAD, TOKEN, tail].concat()).await;
        };
        let (answer, ()) = tokio::join!(client.ask(ask()), serving);
        assert_eq!(answer.attempt.outcome, end);
    }
}

#[tokio::test]
async fn a_request_that_is_given_up_closes_its_connection_and_leaves_a_row() {
    let upstream = Upstream::bind().await;
    let limit = Duration::from_secs(60);
    let client = with_limits(&upstream.url(), LoadDialect::OpenaiChat, limit);
    let asking = tokio::spawn({
        let client = client.clone();
        async move { client.ask(ask()).await }
    });
    let (mut peer, _) = upstream.request().await;
    peer.send(HEAD).await;
    assert_eq!(client.in_flight(), 1);
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    peer.closed().await;
    assert_eq!(client.in_flight(), 0);
    let rows = client.take_rows();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].attempt.outcome, Outcome::ClientAborted);
}

#[tokio::test]
async fn the_requests_said_to_be_open_at_once_are_those_that_the_server_has() {
    let upstream = Upstream::bind().await;
    let limit = Duration::from_secs(60);
    let client = with_limits(&upstream.url(), LoadDialect::OpenaiChat, limit);
    let meter = Meter::start(&client, false).unwrap();
    let all = async {
        tokio::join!(client.ask(ask()), client.ask(ask()), client.ask(ask()));
    };
    let serving = async {
        let mut peers = Vec::new();
        for _ in 0..3 {
            peers.push(upstream.request().await.0);
        }
        assert_eq!(client.in_flight(), 3);
        for mut peer in peers {
            peer.send([HEAD, TOKEN, b"data: [DONE]\n\n"].concat()).await;
        }
    };
    tokio::join!(all, serving);
    let honesty = meter.finish();
    assert_eq!((honesty.max_in_flight, client.in_flight()), (Some(3), 0));
    assert!(
        honesty.cpu_s.is_some() && honesty.cpu_share.is_some(),
        "{honesty:?}"
    );
}

#[tokio::test]
async fn a_kept_connection_that_the_server_closed_is_replaced_without_a_word() {
    let upstream = Upstream::bind().await;
    let limit = Duration::from_secs(60);
    let client = with_limits(&upstream.url(), LoadDialect::OpenaiChat, limit);
    let whole = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 14\r\n\r\ndata: [DONE]\n\n";
    let (answer, peer) = tokio::join!(client.ask(ask()), async {
        let (mut peer, _) = upstream.request().await;
        peer.send(whole).await;
        peer
    });
    assert_eq!(answer.attempt.outcome, Outcome::Complete);
    drop(peer);
    closes_are_heard(&upstream).await;
    let (answer, ()) = tokio::join!(client.ask(ask()), async {
        let (mut peer, _) = upstream.request().await;
        peer.send(whole).await;
    });
    assert_eq!(answer.attempt.outcome, Outcome::Complete);
    let ends: Vec<Outcome> = client
        .take_rows()
        .iter()
        .map(|row| row.attempt.outcome)
        .collect();
    assert_eq!(ends, [Outcome::Complete, Outcome::Complete]);
}
