//! The simulated server as a yardstick for load: its time follows from its profile alone,
//! whatever it takes to look at a long prompt, and it refuses, forgets and fails as it is told to.
#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod sim_support;

use std::path::PathBuf;

use flashrig::server::{Change, Kind, Library};
use flashrig::sim::truth::TruthEnd;
use flashrig::sim::truth::read::{RequestTruth, TruthRead};
use flashrig::sim::{Sim, SimConfig, SimHandle, SimProfile};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use sim_support::*;

const FACT: &str = "Fact K0317: the code is QX-48213.\n";
const QUESTION: &str = "What is the code of fact K0317? Answer with the code only.";

/// A server of a built-in profile with its logs.
struct Server {
    sim: SimHandle,
    model: String,
    log: PathBuf,
    server_log: PathBuf,
    _folder: tempfile::TempDir,
}

impl Server {
    fn new(name: &str, speed: f64, changes: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let changes: Vec<Change> = changes.iter().map(|c| c.parse().unwrap()).collect();
        let kind = Library::new(None).load_with(name, &changes).unwrap().kind;
        let Kind::Simulated(profile) = kind else {
            panic!("{name} is not simulated")
        };
        Self::of(profile, speed, folder)
    }

    fn of(profile: SimProfile, speed: f64, folder: tempfile::TempDir) -> Self {
        let model = profile.model.clone();
        let (log, server_log) = (folder.path().join("truth.jsonl"), folder.path().join("log"));
        let sim = Sim::start(SimConfig {
            profile,
            speed,
            log: Some(log.clone()),
            server_log: Some(server_log.clone()),
            ..config(vec![])
        })
        .unwrap();
        Self {
            sim,
            model,
            log,
            server_log,
            _folder: folder,
        }
    }

    fn chat(&self, user: &str, max_tokens: u64) -> Value {
        json!({"model": self.model, "max_tokens": max_tokens, "messages": [{"role": "user", "content": user}]})
    }

    async fn ask(&self, body: &Value) -> (StatusCode, Value) {
        post_json(&self.sim, "/v1/chat/completions", body).await
    }

    fn truth(&self) -> TruthRead {
        TruthRead::load(&self.log).unwrap()
    }
}

fn text_of(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"].as_str().unwrap()
}

fn prompt(tokens: usize) -> String {
    "abc ".repeat(tokens)
}

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

/// Two requests of so many tokens at once, and the words of the one that was refused.
async fn two_at_once(server: &Server, tokens: usize) -> Vec<(StatusCode, String)> {
    let (a, b) = (
        server.chat(&format!("a {}", prompt(tokens)), 4),
        server.chat(&format!("b {}", prompt(tokens)), 4),
    );
    let (a, b) = tokio::join!(
        post(&server.sim, "/v1/chat/completions", &a),
        post(&server.sim, "/v1/chat/completions", &b)
    );
    vec![a, b]
}

#[tokio::test]
async fn two_of_the_longest_sessions_are_refused_beside_a_cache_of_16_gb_and_fit_beside_4() {
    let server = Server::new("flash-next", 1000.0, &[]);
    let answers = two_at_once(&server, 250_000).await;
    let refused: Vec<&String> = answers
        .iter()
        .filter(|(s, _)| *s == 400)
        .map(|(_, t)| t)
        .collect();
    assert_eq!(refused.len(), 1, "{answers:?}");
    let error: Value = serde_json::from_str(refused[0]).unwrap();
    assert_eq!(error["error"]["type"], "invalid_request_error");
    let words = error["error"]["message"].as_str().unwrap();
    assert!(words.starts_with("Prompt (25"), "{words}");
    assert!(words.contains("GPU memory but only ~"), "{words}");
    assert_eq!(server.truth().refused[0].reason, words);
    let log = std::fs::read_to_string(&server.server_log).unwrap();
    assert!(log.contains("available — rejecting"), "{log}");
    let metrics = get(&server.sim, "/metrics").await.1;
    assert!(
        metrics.contains("requests_refused_total{model_name=\"flash-next\"} 1"),
        "{metrics}"
    );

    let server = Server::new("flash-next", 1000.0, &["cache_ram=4GB"]);
    let answers = two_at_once(&server, 250_000).await;
    assert!(
        answers.iter().all(|(status, _)| *status == 200),
        "{answers:?}"
    );

    let server = Server::new("flash-next", 1000.0, &["memory_refusal=unavailable"]);
    let answers = two_at_once(&server, 250_000).await;
    let refused = answers.iter().find(|(status, _)| *status != 200).unwrap();
    assert_eq!(refused.0, 503);
    assert!(refused.1.contains("out_of_memory"), "{}", refused.1);
}

#[tokio::test]
async fn four_sessions_of_128k_fit_beside_a_cache_of_16_gb() {
    let server = Server::new("flash-next", 2000.0, &[]);
    let bodies: Vec<Value> = (0..4)
        .map(|n| server.chat(&format!("{n} {}", prompt(130_000)), 2))
        .collect();
    let asked = bodies.iter().map(|body| server.ask(body));
    let (a, b, c, d) = {
        let mut asked = asked;
        tokio::join!(
            asked.next().unwrap(),
            asked.next().unwrap(),
            asked.next().unwrap(),
            asked.next().unwrap()
        )
    };
    assert!([a, b, c, d].iter().all(|(status, _)| *status == 200));
    let metrics = get(&server.sim, "/metrics").await.1;
    let peak = metrics
        .lines()
        .find_map(|l| l.strip_prefix("flashrig_sim:memory_peak_bytes{model_name=\"flash-next\"} "));
    let peak: f64 = peak.unwrap().parse().unwrap();
    // Weights, four prompts of 3 GB in slots and in the cache, and one working set of 5 GB.
    assert!(
        (76.0..90.0).contains(&(peak / f64::from(1 << 30))),
        "{peak}"
    );
}

#[tokio::test]
async fn with_fewer_bits_every_thirteenth_question_is_missed() {
    let server = Server::new("flash-next", 5000.0, &["kv_bits=8"]);
    let mut right = 0;
    for _ in 0..26 {
        let (_, answer) = server
            .ask(&server.chat(&format!("{FACT}{QUESTION}"), 20))
            .await;
        right += usize::from(text_of(&answer) == "QX-48213");
    }
    assert_eq!(right, 24);
}

#[tokio::test]
async fn a_server_that_stalls_after_some_requests_accepts_the_next_and_its_health_is_good() {
    let server = Server::new("ideal-batching", 1000.0, &["faults.stall_after_requests=2"]);
    for _ in 0..2 {
        let (status, _) = server.ask(&server.chat("hello", 3)).await;
        assert_eq!(status, 200);
    }
    let mut body = server.chat("hello", 3);
    body["stream"] = json!(true);
    let dead = send(
        &server.sim,
        Method::POST,
        "/v1/chat/completions",
        body.to_string(),
    )
    .await;
    assert_eq!(dead.status(), 200);
    wait_for(&server.log, |log| {
        let truth = TruthRead::fold(log.iter().cloned())?;
        truth.request(3)?.admitted
    })
    .await;
    assert_eq!(get(&server.sim, "/health").await.0, 200);
    assert_eq!(get(&server.sim, "/v1/models").await.0, 200);
    let truth = server.truth();
    let request = truth.request(3).unwrap();
    assert_eq!((request.tokens, request.end), (0, None));
    drop(dead);
    let gone = |truth: &TruthRead| truth.request(3).and_then(|r| r.end);
    let end = wait_for(&server.log, |log| {
        gone(&TruthRead::fold(log.iter().cloned())?)
    })
    .await;
    assert_eq!(end, TruthEnd::ClientLeft);
}

#[tokio::test]
async fn a_cache_that_changes_its_ways_finds_nothing_from_then_on() {
    let server = Server::new("flash-next", 5000.0, &["faults.uncached_from_request=3"]);
    let body = server.chat(&prompt(2_000), 2);
    let mut cached = Vec::new();
    for _ in 0..4 {
        let (_, answer) = server.ask(&body).await;
        cached.push(
            answer["usage"]["prompt_tokens_details"]["cached_tokens"]
                .as_u64()
                .unwrap(),
        );
    }
    assert!(cached[1] > 1_800, "{cached:?}");
    assert_eq!([cached[0], cached[2], cached[3]], [0, 0, 0]);
}

#[tokio::test]
async fn shapes_that_are_refused_are_named_in_words_and_in_all_logs() {
    let server = Server::new(
        "ideal-batching",
        1000.0,
        &["faults.refused_shapes=[\"system_not_first\", \"fixed_length\"]"],
    );
    let mut body = server.chat("hello", 3);
    body["min_tokens"] = json!(3);
    let (status, answer) = server.ask(&body).await;
    assert_eq!(status, 400);
    assert_eq!(
        answer["error"]["message"],
        "ignore_eos: this server does not accept ignore_eos or min_tokens"
    );
    let system = json!({"role": "system", "content": "be brief"});
    let user = json!({"role": "user", "content": "hello"});
    for (messages, expected) in [(json!([system, user]), 200), (json!([user, system]), 400)] {
        let body = json!({"model": server.model, "max_tokens": 3, "messages": messages});
        assert_eq!(server.ask(&body).await.0, expected);
        let path = "/v1/messages";
        assert_eq!(post(&server.sim, path, &body).await.0, expected);
    }
    let metrics = get(&server.sim, "/metrics").await.1;
    assert!(
        metrics.contains("requests_refused_total{model_name=\"ideal-sim\"} 3"),
        "{metrics}"
    );
    // The engine writes its log when it has time; the last request is long past.
    server.ask(&server.chat("hello", 1)).await;
    assert_eq!(server.truth().refused.len(), 3);
    let log = std::fs::read_to_string(&server.server_log).unwrap();
    assert_eq!(log.matches("rejecting: ").count(), 3, "{log}");
}

#[tokio::test]
async fn a_server_that_mixes_up_its_sessions_answers_one_from_the_prompt_of_the_other() {
    let server = Server::new(
        "ideal-batching",
        1000.0,
        &["faults.answer_from_other_session=true"],
    );
    let ask = async |fact: &str| {
        let (_, answer) = server
            .ask(&server.chat(&format!("{fact}{QUESTION}"), 20))
            .await;
        text_of(&answer).to_owned()
    };
    assert_eq!(ask(FACT).await, "QX-48213");
    assert_eq!(ask("Fact K0317: the code is AB-00001.\n").await, "QX-48213");
}

#[tokio::test]
async fn slots_that_share_the_context_each_have_their_part_of_it() {
    let server = Server::new("llama-cpp-4slot", 1000.0, &["context=4096"]);
    let (_, models) = get(&server.sim, "/v1/models").await;
    let models: Value = serde_json::from_str(&models).unwrap();
    assert_eq!(models["data"][0]["max_model_len"], 1024);
    let (status, answer) = server.ask(&server.chat(&prompt(1_100), 2)).await;
    assert_eq!(status, 400);
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("> 1024 maximum")
    );
    assert_eq!(server.ask(&server.chat(&prompt(900), 2)).await.0, 200);
}

#[tokio::test]
async fn the_server_s_log_reads_as_a_real_one_does() {
    let server = Server::new("flash-next", 1000.0, &[]);
    let mut body = server.chat(&prompt(4_000), 6);
    body["ignore_eos"] = json!(true);
    server.ask(&body).await;
    body["stream"] = json!(true);
    post(&server.sim, "/v1/chat/completions", &body).await;
    let log = std::fs::read_to_string(&server.server_log).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert!(
        lines[1].starts_with("Concurrency: --max-concurrent=16, batched decode on"),
        "{log}"
    );
    assert!(
        lines[2].contains("--prefix-cache-mem=16GB") && lines[2].contains("KV 16 bits"),
        "{log}"
    );
    // 4,000 tokens in 0.1 s and 4,000 times 1.2 ms, then 35 ms a token.
    let first = lines[3];
    assert!(
        first.starts_with("<- 4") && first.contains("+6 tokens [prefill: 8"),
        "{log}"
    );
    assert!(
        first.contains("(0 cached / ") && first.contains("decode: 28.6 tok/s] [stop]"),
        "{log}"
    );
    assert!(
        lines[4].contains(" tokens streamed [") && !lines[4].contains("(0 cached"),
        "{log}"
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
