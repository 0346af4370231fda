//! The simulated server refuses, forgets, mixes up and stalls as it is set to, and says so where
//! a real one would.

use crate::sim_support::profiles::*;
use crate::sim_support::*;
use flashrig_sim::truth::TruthEnd;
use flashrig_sim::truth::read::TruthRead;
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

/// Two requests of this many tokens at once, and the error text of the refused one.
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
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("Prompt (25"), "{message}");
    assert!(message.contains("GPU memory but only ~"), "{message}");
    assert_eq!(server.truth().refused[0].reason, message);
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

#[tokio::test]
async fn single_streams_go_wrong_as_the_profile_says() {
    let fault = "faults.streams=[{ request = 1, after_tokens = 2, kind = \"error\" }]";
    let server = Server::new("ideal-batching", 1000.0, &[fault]);
    let mut body = server.chat("hello", 9);
    body["stream"] = json!(true);
    let (_, text) = post(&server.sim, "/v1/chat/completions", &body).await;
    assert!(text.contains("data: {\"error\""), "{text}");
    let (_, text) = post(&server.sim, "/v1/chat/completions", &body).await;
    assert!(text.contains("[DONE]"), "{text}");
    let truth = server.truth();
    let ends = truth.requests.iter().map(|r| (r.tokens, r.end));
    let ends: Vec<_> = ends.collect();
    assert_eq!(ends[0], (2, Some(TruthEnd::Fault)));
    assert_eq!(ends[1].1, Some(TruthEnd::Complete));
}

#[tokio::test]
async fn overload_is_refused_above_the_limit_that_the_profile_says() {
    let server = Server::new("no-batching", 1000.0, &["faults.overload_above=0"]);
    assert_eq!(server.ask(&server.chat("hello", 1)).await.0, 503);
    let (status, _) = post(&server.sim, "/v1/messages", &server.chat("hello", 1)).await;
    assert_eq!(status.as_u16(), 529);
}
