//! The simulated server speaks both dialects as real servers do.

use crate::sim_support::*;
use flashrig_sim::Step;
use http_body_util::BodyExt;
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

fn runner() -> flashrig_sim::Script {
    let run = Step::Run {
        say: Some("I look at the files first.".into()),
        command: "ls -la".into(),
    };
    script(
        "look",
        "look at it",
        vec![
            run,
            Step::Say {
                text: "That is all.".into(),
            },
        ],
    )
}

#[tokio::test]
async fn an_anthropic_stream_has_every_event_in_order() {
    let sim = start(vec![runner()]);
    let (status, body) = post(
        &sim,
        "/v1/messages?beta=true",
        &messages("look at it", true),
    )
    .await;
    assert_eq!(status, StatusCode::OK);
    let events = events(&body);
    for event in &events {
        assert_eq!(
            event.name.as_deref(),
            event.json()["type"].as_str(),
            "event name and type agree"
        );
    }
    let mut kinds: Vec<&str> = events.iter().filter_map(|e| e.name.as_deref()).collect();
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "message_start",
            "ping",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
    let start = events[0].json();
    assert_eq!(start["message"]["role"], "assistant");
    assert_eq!(start["message"]["model"], MODEL);
    assert!(start["message"]["usage"]["input_tokens"].as_u64().unwrap() > 0);
    let joined = |key: &str, field: &str| -> String {
        let deltas = events
            .iter()
            .map(SseEvent::json)
            .filter(|e| e["delta"]["type"] == key);
        deltas
            .map(|e| e["delta"][field].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(joined("text_delta", "text"), "I look at the files first.");
    let arguments: Value =
        serde_json::from_str(&joined("input_json_delta", "partial_json")).unwrap();
    assert_eq!(arguments, json!({"command": "ls -la"}));
    let end = events[events.len() - 2].json();
    assert_eq!(end["delta"]["stop_reason"], "tool_use");
    let deltas = events
        .iter()
        .filter(|e| e.name.as_deref() == Some("content_block_delta"))
        .count();
    assert_eq!(end["usage"]["output_tokens"], deltas, "one event a token");
}

#[tokio::test]
async fn an_openai_stream_ends_with_finish_usage_and_done() {
    let sim = start(vec![runner()]);
    let (_, body) = post(&sim, "/v1/chat/completions", &chat("look at it", true)).await;
    let events = events(&body);
    assert_eq!(events.last().unwrap().data, "[DONE]");
    let chunks: Vec<Value> = events[..events.len() - 1]
        .iter()
        .map(SseEvent::json)
        .collect();
    assert!(
        chunks
            .iter()
            .all(|c| c["object"] == "chat.completion.chunk" && c["id"] == chunks[0]["id"])
    );
    assert_eq!(
        chunks[0]["choices"][0]["delta"],
        json!({"role": "assistant", "content": ""})
    );
    let usage = chunks.last().unwrap();
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(
        chunks[chunks.len() - 2]["choices"][0]["finish_reason"],
        "tool_calls"
    );
    let deltas = chunks.iter().map(|c| c["choices"][0]["delta"].clone());
    let text: String = deltas
        .clone()
        .filter_map(|d| d["content"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(text, "I look at the files first.");
    let calls: Vec<Value> = deltas
        .filter(|d| d["tool_calls"].is_array())
        .map(|d| d["tool_calls"][0].clone())
        .collect();
    assert_eq!(calls[0]["function"]["name"], "bash");
    assert!(calls[0]["id"].as_str().unwrap().starts_with("call_"));
    assert!(
        calls[1..]
            .iter()
            .all(|c| c.get("id").is_none() && c["index"] == 0)
    );
    let arguments: String = calls
        .iter()
        .map(|c| c["function"]["arguments"].as_str().unwrap())
        .collect();
    assert_eq!(
        serde_json::from_str::<Value>(&arguments).unwrap(),
        json!({"command": "ls -la"})
    );
    let usage = &usage["usage"];
    assert_eq!(
        usage["completion_tokens"],
        chunks.len() - 3,
        "all but role, finish and usage are tokens"
    );
    assert_eq!(
        usage["total_tokens"].as_u64().unwrap(),
        usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap()
    );
}

#[tokio::test]
async fn an_openai_stream_has_usage_only_when_asked() {
    let sim = start(vec![runner()]);
    let mut body = chat("look at it", true);
    body.as_object_mut().unwrap().remove("stream_options");
    let (_, text) = post(&sim, "/v1/chat/completions", &body).await;
    assert!(text.contains("finish_reason\":\"tool_calls") && !text.contains("usage"));
}

#[tokio::test]
async fn answers_without_a_stream_say_the_same_in_both_dialects() {
    let sim = start(vec![runner()]);
    let (_, openai) = post_json(&sim, "/v1/chat/completions", &chat("look at it", false)).await;
    let message = &openai["choices"][0]["message"];
    assert_eq!(message["content"], "I look at the files first.");
    assert_eq!(
        message["tool_calls"][0]["function"]["arguments"],
        "{\"command\":\"ls -la\"}"
    );
    assert_eq!(openai["choices"][0]["finish_reason"], "tool_calls");
    let (_, anthropic) = post_json(&sim, "/v1/messages", &messages("look at it", false)).await;
    assert_eq!(
        anthropic["content"][0]["text"],
        "I look at the files first."
    );
    assert_eq!(
        anthropic["content"][1]["input"],
        json!({"command": "ls -la"})
    );
    assert_eq!(anthropic["stop_reason"], "tool_use");
    assert_eq!(
        anthropic["usage"]["output_tokens"],
        openai["usage"]["completion_tokens"]
    );
}

#[tokio::test]
async fn the_output_limit_cuts_the_answer_and_names_itself_as_the_reason() {
    let sim = start(vec![talker("talk", 50)]);
    let mut body = messages("talk", false);
    body["max_tokens"] = json!(3);
    let (_, answer) = post_json(&sim, "/v1/messages", &body).await;
    assert_eq!(answer["content"][0]["text"], "abcd".repeat(3));
    assert_eq!(answer["stop_reason"], "max_tokens");
    let mut body = chat("talk", false);
    body["max_completion_tokens"] = json!(3);
    let (_, answer) = post_json(&sim, "/v1/chat/completions", &body).await;
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert_eq!(answer["usage"]["completion_tokens"], 3);
}

#[tokio::test]
async fn counted_tokens_are_the_tokens_that_a_request_is_billed() {
    let sim = start(vec![runner()]);
    let mut body = messages("look at it", false);
    let (_, answer) = post_json(&sim, "/v1/messages", &body).await;
    body.as_object_mut().unwrap().remove("max_tokens");
    let (status, counted) = post_json(&sim, "/v1/messages/count_tokens?beta=true", &body).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(
        counted,
        json!({"input_tokens": answer["usage"]["input_tokens"]})
    );
}

#[tokio::test]
async fn probes_are_answered_and_unknown_routes_are_404_json() {
    let sim = start(vec![]);
    let (status, models) = get(&sim, "/v1/models").await;
    let models: Value = serde_json::from_str(&models).unwrap();
    assert_eq!(
        (status, &models["data"][0]["id"]),
        (StatusCode::OK, &json!(MODEL))
    );
    assert_eq!(get(&sim, "/v1/models/flashrig-sim").await.0, StatusCode::OK);
    assert_eq!(get(&sim, "/v1/models/other").await.0, StatusCode::NOT_FOUND);
    assert_eq!(get(&sim, "/health").await.0, StatusCode::OK);
    let version: Value = serde_json::from_str(&get(&sim, "/version").await.1).unwrap();
    assert_eq!(version["simulated"], true);
    assert_eq!(version["profile"], "sim");
    for (method, path) in [
        (Method::GET, "/props"),
        (Method::POST, "/v1/responses"),
        (Method::GET, "/v1/messages"),
        (Method::GET, "/v1/messages/count_tokens"),
    ] {
        let response = send(&sim, method, path, "").await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        let answer = response.into_body().collect().await.unwrap().to_bytes();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert!(answer["error"]["message"].as_str().unwrap().contains(path));
    }
    assert!(sim.is_running());
    let head = |path| send(&sim, Method::HEAD, path, "");
    assert_eq!(head("/health").await.status(), StatusCode::OK);
    assert_eq!(head("/api/hello").await.status(), StatusCode::NOT_FOUND);
    assert!(
        head("/health")
            .await
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes()
            .is_empty()
    );
}

#[tokio::test]
async fn metrics_count_tokens_and_cache_hits() {
    let sim = start(vec![talker("talk", 5)]);
    let long = format!("talk {}", "word ".repeat(500));
    for _ in 0..2 {
        post(&sim, "/v1/chat/completions", &chat(&long, false)).await;
    }
    let (_, metrics) = get(&sim, "/metrics").await;
    let value = |name: &str| -> u64 {
        let line = metrics
            .lines()
            .find(|line| line.starts_with(&format!("vllm:{name}{{")))
            .unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert_eq!(value("generation_tokens_total"), 10);
    assert_eq!(
        value("num_requests_running") + value("num_requests_waiting"),
        0
    );
    let half = value("prefix_cache_queries_total") / 2;
    let hits = value("prefix_cache_hits_total");
    assert!(hits > half / 2 && hits < half, "{hits} of {half}");
}

#[tokio::test]
async fn requests_as_recorded_from_real_agents_get_calls_of_their_own_tools() {
    let step = |path: &str| Step::Read {
        say: None,
        path: path.into(),
    };
    let sim = start(vec![script(
        "look",
        "look at it",
        vec![step("src/main.rs")],
    )]);
    let claude = include_str!("sim_support/claude_code_2.1.332.json");
    let (_, body) = post(
        &sim,
        "/v1/messages?beta=true",
        &serde_json::from_str(claude).unwrap(),
    )
    .await;
    assert!(body.contains("\"name\":\"Read\""), "{body}");
    let deltas = events(&body).into_iter().filter_map(|e| {
        e.json()["delta"]["partial_json"]
            .as_str()
            .map(str::to_owned)
    });
    assert_eq!(
        deltas.collect::<String>(),
        "{\"file_path\":\"/work/space/src/main.rs\"}"
    );
    let opencode = include_str!("sim_support/opencode_1.18.33.json");
    let (_, body) = post(
        &sim,
        "/v1/chat/completions",
        &serde_json::from_str(opencode).unwrap(),
    )
    .await;
    assert!(body.contains("\"name\":\"read\""), "{body}");
    let deltas = events(&body)
        .into_iter()
        .filter(|e| e.data != "[DONE]")
        .filter_map(|e| {
            e.json()
                .pointer("/choices/0/delta/tool_calls/0/function/arguments")?
                .as_str()
                .map(str::to_owned)
        });
    assert_eq!(
        deltas.collect::<String>(),
        "{\"filePath\":\"/work/space/src/main.rs\"}"
    );
}

#[tokio::test]
async fn a_request_that_forbids_tool_calls_gets_none() {
    let sim = start(vec![runner()]);
    let mut body = messages("look at it", false);
    body["tool_choice"] = json!({"type": "none"});
    assert_eq!(
        post_json(&sim, "/v1/messages", &body).await.1["stop_reason"],
        "end_turn"
    );
    let mut body = chat("look at it", false);
    body["tool_choice"] = json!("none");
    let (_, answer) = post_json(&sim, "/v1/chat/completions", &body).await;
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
}
