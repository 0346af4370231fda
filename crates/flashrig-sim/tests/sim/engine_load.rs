//! The simulated server as a yardstick for load: its time follows from its profile alone,
//! whatever it takes to look at a long prompt.

use crate::sim_support::profiles::*;
use crate::sim_support::*;
use flashrig_sim::truth::TruthEnd;
use flashrig_sim::truth::read::RequestTruth;
use serde_json::{Value, json};

#[tokio::test]
async fn a_long_prompt_s_first_token_comes_when_the_profile_says_and_not_when_it_was_parsed() {
    let server = Server::new("flash-next", 500.0, &[]);
    let body = server.chat(&prompt(125_000), 2);
    server.ask(&body).await;
    let truth = server.truth();
    let request = truth.request(1).unwrap();
    let n = request.prompt_tokens as f64;
    let expected = 0.1 + 1.194e-3 * n + 5.5e-10 * n * n;
    let found = request.first_token_s(&truth).unwrap();
    // Chunk ends are rounded to the nanosecond of wall time; nothing else may be in it.
    assert!(
        (found - expected).abs() < 1e-3,
        "{found} against {expected}"
    );
}

#[tokio::test]
async fn warm_turns_restore_what_is_cached_and_read_only_what_is_new() {
    let server = Server::new("flash-next", 500.0, &[]);
    let mut body = server.chat(&prompt(20_000), 50);
    body["ignore_eos"] = json!(true);
    let (_, first) = server.ask(&body).await;
    let turns = body["messages"].as_array_mut().unwrap();
    turns.push(json!({"role": "assistant", "content": text_of(&first)}));
    turns.push(json!({"role": "user", "content": prompt(100)}));
    let (_, second) = server.ask(&body).await;
    let usage = &second["usage"];
    let cached = usage["prompt_tokens_details"]["cached_tokens"]
        .as_u64()
        .unwrap();
    let truth = server.truth();
    let request = truth.request(2).unwrap();
    assert_eq!(request.cached_tokens, Some(cached));
    assert_eq!(
        request.prompt_tokens,
        usage["prompt_tokens"].as_u64().unwrap()
    );
    assert!(request.prompt_tokens - cached < 100 + 128 + 8, "{cached}");
    let (p, q) = (cached as f64, request.prompt_tokens as f64);
    let expected = 0.1 + 0.5 + 1e-6 * p + 1.194e-3 * (q - p) + 5.5e-10 * (q * q - p * p);
    let found = request.first_token_s(&truth).unwrap();
    assert!(
        (found - expected).abs() < 1e-3,
        "{found} against {expected}"
    );
    // 49 steps of one short sequence.
    let total = request.total_s(&truth).unwrap();
    assert!((total - found - 49.0 * 0.035).abs() < 1e-3, "{total}");
}

#[tokio::test]
async fn facts_are_recalled_from_long_prompts_in_both_dialects() {
    let server = Server::new("ideal-batching", 1000.0, &[]);
    let text = format!("{}{FACT}{}", prompt(3_000), prompt(3_000));
    let body = json!({"model": server.model, "max_tokens": 20, "messages": [
        {"role": "user", "content": text}, {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": QUESTION}]});
    let (_, answer) = server.ask(&body).await;
    assert_eq!(text_of(&answer), "QX-48213");
    assert_eq!(answer["usage"]["completion_tokens"], 2);
    let (_, answer) = post_json(&server.sim, "/v1/messages", &body).await;
    assert_eq!(answer["content"][0]["text"], "QX-48213");
    let (_, answer) = server.ask(&server.chat(QUESTION, 20)).await;
    assert_eq!(text_of(&answer), "I do not know.");
}

#[tokio::test]
async fn answers_of_fixed_length_have_exactly_so_many_tokens_in_both_dialects() {
    let server = Server::new("ideal-batching", 1000.0, &[]);
    for fields in [
        json!({"ignore_eos": true}),
        json!({"min_tokens": 37}),
        json!({"ignore_eos": true, "min_tokens": 37, "unheard_of": [1]}),
    ] {
        for stream in [false, true] {
            let mut body = server.chat(&format!("{FACT}{QUESTION}"), 37);
            for (key, value) in fields.as_object().unwrap() {
                body[key] = value.clone();
            }
            (body["stream"], body["stream_options"]) =
                (json!(stream), json!({"include_usage": true}));
            let (_, text) = post(&server.sim, "/v1/chat/completions", &body).await;
            assert!(text.contains("\"completion_tokens\":37"), "{text}");
            assert!(text.contains("\"length\""), "{text}");
            if stream {
                let parts = events(&text);
                let parts = parts
                    .iter()
                    .filter(|e| e.data.starts_with('{'))
                    .map(SseEvent::json);
                let said: Vec<String> = parts
                    .filter_map(|e| {
                        e["choices"][0]["delta"]["content"]
                            .as_str()
                            .map(str::to_owned)
                    })
                    .filter(|piece| !piece.is_empty())
                    .collect();
                assert_eq!(said.len(), 37);
                assert!(said.concat().starts_with("QX-48213 "), "{said:?}");
            }
            body.as_object_mut().unwrap().remove("stream_options");
            let (_, text) = post(&server.sim, "/v1/messages", &body).await;
            assert!(text.contains("\"output_tokens\":37"), "{text}");
        }
    }
}

#[tokio::test]
async fn counted_tokens_are_those_that_the_engine_reads() {
    let server = Server::new("ideal-batching", 1000.0, &[]);
    let mut body = messages(&prompt(700), false);
    (body["model"], body["max_tokens"]) = (json!(server.model), json!(1));
    let (_, counted) = post_json(&server.sim, "/v1/messages/count_tokens", &body).await;
    let (_, answer) = post_json(&server.sim, "/v1/messages", &body).await;
    let truth = server.truth();
    assert_eq!(counted["input_tokens"], answer["usage"]["input_tokens"]);
    assert_eq!(
        counted["input_tokens"],
        truth.request(1).unwrap().prompt_tokens
    );
}

/// Order of events that every request of every profile must keep.
fn in_order(request: &RequestTruth) -> bool {
    let stamps = [
        Some(request.queued),
        request.prefill_start,
        request.prefill_end,
        request.first_token,
        request.last_token,
        request.finished,
    ];
    let stamps: Vec<_> = stamps.into_iter().flatten().collect();
    stamps.len() == 6 && stamps.is_sorted()
}

#[tokio::test]
async fn every_profile_serves_many_at_once_and_its_truth_is_whole() {
    for name in [
        "flash-next",
        "llama-cpp-4slot",
        "ideal-batching",
        "no-batching",
        "sim",
    ] {
        let server = Server::new(name, 2000.0, &[]);
        let bodies: Vec<Value> = (0..12)
            .map(|n| {
                let mut body = server.chat(&format!("{n} {}", prompt(100 * n + 10)), 20);
                body["ignore_eos"] = json!(true);
                body
            })
            .collect();
        let mut asked = tokio::task::JoinSet::new();
        for body in bodies {
            let stream = tokio::net::TcpStream::connect(server.sim.addr())
                .await
                .unwrap();
            asked.spawn(async move { post_on(stream, "/v1/chat/completions", &body).await });
        }
        for status in asked.join_all().await {
            assert_eq!(status, 200, "{name}");
        }
        let truth = server.truth();
        assert_eq!(truth.profile, name);
        assert_eq!(truth.requests.len(), 12, "{name}");
        for request in &truth.requests {
            assert!(in_order(request), "{name}: {request:?}");
            assert_eq!(
                (request.tokens, request.end),
                (20, Some(TruthEnd::Complete)),
                "{name}"
            );
        }
    }
}
