//! Servers that cannot be measured: what is said of each.

use std::time::Duration;

use flashrig_load::{LoadDialect, LoadError, calibrate, choose_dialect};

use super::counting::{Counting, Manner};
use super::upstream::Upstream;
use super::{client, upstream_of};

/// Reached only when something is wrong.
const LIMIT: Duration = Duration::from_secs(60);

/// Serves the same bytes to every request, and then closes.
async fn saying(answer: impl Into<Vec<u8>>) -> String {
    let upstream = Upstream::bind().await;
    let (url, answer) = (upstream.url(), answer.into());
    tokio::spawn(async move {
        loop {
            let (mut peer, _) = upstream.request().await;
            peer.send(&answer).await;
        }
    });
    url
}

fn http(status: &str, content_type: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn trouble(url: &str) -> LoadError {
    choose_dialect(&upstream_of(url), "m", LIMIT)
        .await
        .unwrap_err()
}

#[tokio::test]
async fn a_server_that_streams_is_spoken_to_in_its_dialect() {
    let server = Counting::start(Manner::default()).await;
    let dialect = choose_dialect(&upstream_of(&server.url), "m", LIMIT).await;
    assert_eq!(dialect, Ok(LoadDialect::OpenaiChat));

    let upstream = Upstream::bind().await;
    let url = upstream.url();
    let serving = tokio::spawn(async move {
        let (mut peer, request) = upstream.request().await;
        assert_eq!(request.line(), "POST /v1/chat/completions");
        peer.send(
            http(
                "404 Not Found",
                "application/json",
                "{\"detail\":\"Not Found\"}",
            )
            .as_bytes(),
        )
        .await;
        drop(peer);
        let (mut peer, request) = upstream.request().await;
        assert_eq!(request.line(), "POST /v1/messages");
        let stream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":3}}}\n\n\
                      event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"ready\"}}\n\n\
                      event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
        peer.send(http("200 OK", "text/event-stream", stream).as_bytes())
            .await;
    });
    let dialect = choose_dialect(&upstream_of(&url), "m", LIMIT).await;
    assert_eq!(dialect, Ok(LoadDialect::AnthropicMessages));
    serving.await.unwrap();
}

#[tokio::test]
async fn a_web_page_is_called_one() {
    let url = saying(http(
        "200 OK",
        "text/html; charset=utf-8",
        "<html><b>Open WebUI</b></html>",
    ))
    .await;
    let error = trouble(&url).await;
    assert!(matches!(error, LoadError::Html { .. }), "{error:?}");
    let message = error.to_string();
    assert!(
        message.contains("Open WebUI") && message.contains("API address"),
        "{message}"
    );
}

#[tokio::test]
async fn an_answer_in_one_piece_is_no_stream() {
    let answer = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"ready"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;
    let error = trouble(&saying(http("200 OK", "application/json", answer)).await).await;
    assert_eq!(
        error,
        LoadError::NotStreamed {
            path: "/v1/chat/completions"
        }
    );
}

#[tokio::test]
async fn a_server_without_usage_cannot_be_measured() {
    let manner = Manner {
        usage: false,
        ..Manner::default()
    };
    let server = Counting::start(manner).await;
    let client = client(&server.url, LoadDialect::OpenaiChat);
    let error = calibrate(&client, 1).await.unwrap_err();
    assert_eq!(
        error,
        LoadError::NoUsage {
            path: "/v1/chat/completions"
        }
    );
    assert!(error.to_string().contains("stream_options.include_usage"));
}

#[tokio::test]
async fn another_model_name_is_answered_with_the_servers_words_and_the_option() {
    let body = r#"{"error":{"message":"The model `m` does not exist.","type":"NotFoundError","code":404}}"#;
    let error = trouble(&saying(http("404 Not Found", "application/json", body)).await).await;
    assert!(matches!(error, LoadError::UnknownModel { .. }), "{error:?}");
    let message = error.to_string();
    assert!(
        message.contains("does not exist") && message.ends_with("--model"),
        "{message}"
    );
}

#[tokio::test]
async fn a_wrong_key_is_answered_with_the_option() {
    let body = r#"{"error":"Unauthorized"}"#;
    let error = trouble(&saying(http("401 Unauthorized", "application/json", body)).await).await;
    assert!(error.to_string().contains("--key-env"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_busy_is_quoted() {
    let body = r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#;
    let error =
        trouble(&saying(http("503 Service Unavailable", "application/json", body)).await).await;
    assert!(error.to_string().contains("503: Loading model"), "{error}");
}

#[tokio::test]
async fn a_server_that_closes_at_once_gave_no_answer() {
    let error = trouble(&saying("").await).await;
    assert!(matches!(error, LoadError::Failed { .. }), "{error:?}");
    assert!(error.to_string().contains("no HTTP answer"), "{error}");
}

#[tokio::test]
async fn a_server_that_accepts_and_generates_nothing_is_called_stalled() {
    let upstream = Upstream::bind().await;
    let to = upstream_of(&upstream.url());
    let limit = Duration::from_millis(1);
    let (dialect, _held) = tokio::join!(choose_dialect(&to, "m", limit), upstream.request());
    let error = dialect.unwrap_err();
    assert!(matches!(error, LoadError::Stalled { .. }), "{error:?}");
    assert!(error.to_string().contains("generates nothing"), "{error}");
}

#[tokio::test]
async fn a_server_that_speaks_no_dialect_is_quoted_twice() {
    let error = trouble(&saying(http("404 Not Found", "text/plain", "Not Found")).await).await;
    assert!(matches!(error, LoadError::NoDialect { .. }), "{error:?}");
    assert_eq!(
        error.to_string().matches("404: Not Found").count(),
        2,
        "{error}"
    );
}

#[tokio::test]
async fn nobody_there_is_said_at_once() {
    let gone = Upstream::bind().await;
    let url = gone.url();
    drop(gone);
    let error = trouble(&url).await;
    assert!(matches!(error, LoadError::Unreachable(_)), "{error:?}");
    assert!(
        error
            .to_string()
            .contains("cannot connect to the server at http://127.0.0.1"),
        "{error}"
    );
}
