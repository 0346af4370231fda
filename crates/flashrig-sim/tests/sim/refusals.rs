//! How the simulated server refuses, and how it fails when it is set to.

use crate::sim_support::*;
use flashrig_sim::{Faults, Sim, SimError, SimProfile, StreamFault, StreamFaultKind};
use http_body_util::BodyExt;
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

#[tokio::test]
async fn refusals_are_worded_as_each_dialect_words_them() {
    let sim = start(vec![]);
    let cases = [
        ("{", StatusCode::BAD_REQUEST, "not valid json"),
        (
            "{\"model\":\"flashrig-sim\",\"max_tokens\":5}",
            StatusCode::BAD_REQUEST,
            "messages: field required",
        ),
        (
            "{\"model\":\"flashrig-sim\",\"max_tokens\":5,\"messages\":[]}",
            StatusCode::BAD_REQUEST,
            "at least one",
        ),
        (
            "{\"model\":\"flashrig-sim\",\"max_tokens\":5,\"messages\":[{\"role\":\"bishop\",\"content\":\"x\"}]}",
            StatusCode::BAD_REQUEST,
            "unknown role 'bishop'",
        ),
        (
            "{\"model\":\"gpt-9\",\"max_tokens\":5,\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}",
            StatusCode::NOT_FOUND,
            "model 'gpt-9' not found; this server serves 'flashrig-sim'",
        ),
    ];
    for (body, status, message) in cases {
        for path in ["/v1/messages", "/v1/chat/completions"] {
            let response = send(&sim, Method::POST, path, body).await;
            assert_eq!(response.status(), status, "{path} {body}");
            let answer = response.into_body().collect().await.unwrap().to_bytes();
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            assert!(
                answer["error"]["message"]
                    .as_str()
                    .unwrap()
                    .contains(message),
                "{answer}"
            );
            assert!(answer["error"]["type"].is_string());
            assert_eq!(
                answer["type"] == "error",
                path == "/v1/messages",
                "the anthropic envelope: {answer}"
            );
        }
    }
    let (_, answer) = post_json(
        &sim,
        "/v1/messages",
        &json!({"model": MODEL, "messages": []}),
    )
    .await;
    assert_eq!(answer["error"]["message"], "max_tokens: field required");
}

#[tokio::test]
async fn a_prompt_beyond_the_context_is_refused_with_both_numbers() {
    let mut config = config(vec![]);
    config.profile = SimProfile::new("small", MODEL, 100, &built_in_table()).unwrap();
    let sim = Sim::start(config).unwrap();
    let long = "word ".repeat(200);
    for (path, body) in [
        ("/v1/messages", messages(&long, true)),
        ("/v1/chat/completions", chat(&long, true)),
    ] {
        let (status, answer) = post_json(&sim, path, &body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("too long") && message.contains("> 100 maximum"),
            "{message}"
        );
    }
}

async fn faulty(kind: StreamFaultKind, path: &str, body: &Value) -> Result<String, String> {
    let mut config = config(vec![talker("talk", 20)]);
    config.faults = Faults {
        streams: vec![StreamFault {
            request: 1,
            after_tokens: 4,
            kind,
        }],
        ..Faults::default()
    };
    let sim = Sim::start(config).unwrap();
    let mut response = send(&sim, Method::POST, path, body.to_string()).await;
    let mut text = String::new();
    while let Some(frame) = response.body_mut().frame().await {
        let frame = frame.map_err(|_| text.clone())?;
        text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
    }
    Ok(text)
}

#[tokio::test]
async fn a_truncated_stream_closes_abnormally_in_the_middle() {
    for (path, body) in [
        ("/v1/messages", messages("talk", true)),
        ("/v1/chat/completions", chat("talk", true)),
    ] {
        let text = faulty(StreamFaultKind::Truncate, path, &body)
            .await
            .unwrap_err();
        assert_eq!(text.matches("\"abcd\"").count(), 4);
    }
}

#[tokio::test]
async fn an_error_in_the_stream_comes_as_an_event_without_the_end_mark() {
    let text = faulty(
        StreamFaultKind::Error,
        "/v1/messages",
        &messages("talk", true),
    )
    .await
    .unwrap();
    assert!(text.contains("event: error\n") && !text.contains("message_stop"));
    let text = faulty(
        StreamFaultKind::Error,
        "/v1/chat/completions",
        &chat("talk", true),
    )
    .await
    .unwrap();
    assert!(text.contains("data: {\"error\"") && !text.contains("[DONE]"));
}

#[tokio::test]
async fn requests_above_the_overload_limit_are_refused_as_overloaded() {
    let mut config = config(vec![]);
    config.faults.overload_above = Some(0);
    let sim = Sim::start(config).unwrap();
    let (status, answer) = post_json(&sim, "/v1/messages", &messages("x", true)).await;
    assert_eq!(
        (status.as_u16(), &answer["error"]["type"]),
        (529, &json!("overloaded_error"))
    );
    let (status, _) = post_json(&sim, "/v1/chat/completions", &chat("x", true)).await;
    assert_eq!(status.as_u16(), 503);
}

#[test]
fn a_port_in_use_is_named_and_a_stopped_server_frees_it() {
    let first = start(vec![]);
    let mut second = config(vec![]);
    second.listen = first.addr();
    let error = Sim::start(second.clone()).unwrap_err();
    assert!(matches!(error, SimError::AddressInUse(_)), "{error}");
    assert!(error.to_string().starts_with(&format!(
        "port {} on 127.0.0.1 is in use",
        first.addr().port()
    )));
    first.stop();
    Sim::start(second).unwrap();
}

#[test]
fn configurations_that_cannot_work_are_refused_before_anything_runs() {
    for speed in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut config = config(vec![]);
        config.speed = speed;
        assert!(matches!(Sim::start(config), Err(SimError::Speed(_))));
    }
    assert!(matches!(
        Sim::start(config(vec![talker(" \"\n", 1)])),
        Err(SimError::EmptyPrompt(_))
    ));
    let mut config = config(vec![]);
    config.log = Some("/nowhere/at/all/log.jsonl".into());
    assert!(
        Sim::start(config)
            .unwrap_err()
            .to_string()
            .contains("/nowhere/at/all/log.jsonl")
    );
}
