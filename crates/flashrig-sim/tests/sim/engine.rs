//! The simulated server's timing, slots and cache, checked against its own truth log and against
//! what the client sees.

use std::collections::HashMap;
use std::path::Path;

use crate::sim_support::*;
use flashrig_clock::Stamp;
use flashrig_sim::truth::{Truth, TruthEnd};
use flashrig_sim::{Faults, Sim, SimConfig, StreamFault, StreamFaultKind};
use http_body_util::BodyExt;
use hyper::Method;
use serde_json::{Value, json};

fn logged(folder: &Path, speed: f64, max_concurrent: u32) -> SimConfig {
    let mut config = config(vec![talker("talk", 60)]);
    let mut table = built_in_table();
    table.max_concurrent = max_concurrent;
    config.profile = flashrig_sim::SimProfile::new("test", MODEL, 131_072, &table).unwrap();
    config.speed = speed;
    config.log = Some(folder.join("sim.jsonl"));
    config
}

fn finished(log: &[Truth], wanted: u64) -> Option<(TruthEnd, u32)> {
    log.iter().find_map(|line| match line {
        Truth::Finished {
            request,
            end,
            tokens,
            ..
        } if *request == wanted => Some((*end, *tokens)),
        _ => None,
    })
}

/// Durations of the decode steps by the number of sequences in them, between consecutive steps.
fn step_seconds(log: &[Truth]) -> HashMap<usize, f64> {
    let steps: Vec<(Stamp, usize)> = log
        .iter()
        .filter_map(|line| {
            if let Truth::Step { at, requests, .. } = line {
                Some((*at, requests.len()))
            } else {
                None
            }
        })
        .collect();
    let mut all: HashMap<usize, Vec<f64>> = HashMap::new();
    for pair in steps.windows(2).filter(|pair| pair[0].1 == pair[1].1) {
        all.entry(pair[1].1)
            .or_default()
            .push(pair[1].0.since(pair[0].0).as_secs_f64());
    }
    all.into_iter()
        .map(|(batch, mut durations)| {
            durations.sort_by(f64::total_cmp);
            (batch, durations[durations.len() / 2])
        })
        .collect()
}

#[tokio::test]
async fn two_streams_share_each_step_at_the_profile_s_rate() {
    let folder = tempfile::tempdir().unwrap();
    let config = logged(folder.path(), 5.0, 4);
    let log = config.log.clone().unwrap();
    let timing = config.profile.timing.clone();
    let sim = Sim::start(config).unwrap();
    post(&sim, "/v1/chat/completions", &chat("talk", true)).await;
    let body = chat("talk", true);
    tokio::join!(
        post(&sim, "/v1/chat/completions", &body),
        post(&sim, "/v1/chat/completions", &body)
    );
    let steps = step_seconds(&truth(&log));
    // The scheduler's own clock is exact; nothing here depends on load.
    for batch in [1, 2] {
        let expected = timing.decode_step(batch, 0.0).as_secs_f64() / 5.0;
        assert!(
            (steps[&(batch as usize)] - expected).abs() < 1e-6,
            "{steps:?}"
        );
    }
}

#[tokio::test]
async fn tokens_reach_the_client_at_the_profile_s_pace() {
    let folder = tempfile::tempdir().unwrap();
    let config = logged(folder.path(), 4.0, 4);
    let step = config.profile.timing.decode_step(1, 0.0).as_secs_f64() / 4.0;
    let sim = Sim::start(config).unwrap();
    let mut response = send(
        &sim,
        Method::POST,
        "/v1/chat/completions",
        chat("talk", true).to_string(),
    )
    .await;
    let mut first = None;
    let mut last = Stamp::now();
    while let Some(frame) = response.body_mut().frame().await {
        let text = String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap();
        if text.contains("abcd") {
            last = Stamp::now();
            first.get_or_insert(last);
        }
    }
    let seconds = last.since(first.unwrap()).as_secs_f64();
    // 59 steps; a busy machine may make it later, never much earlier.
    let expected = 59.0 * step;
    assert!(
        seconds > expected * 0.9 && seconds < expected * 5.0,
        "{seconds} against {expected}"
    );
}

#[tokio::test]
async fn requests_beyond_the_slots_wait_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let config = logged(folder.path(), 50.0, 1);
    let log = config.log.clone().unwrap();
    let sim = Sim::start(config).unwrap();
    let body = chat("talk", true);
    tokio::join!(
        post(&sim, "/v1/chat/completions", &body),
        post(&sim, "/v1/chat/completions", &body),
        post(&sim, "/v1/chat/completions", &body)
    );
    let mut running = 0;
    let mut order = Vec::new();
    for line in truth(&log) {
        match line {
            Truth::Admitted { request, .. } => {
                running += 1;
                order.push(request);
                assert_eq!(running, 1, "one slot");
            }
            Truth::Finished { .. } => running -= 1,
            _ => {}
        }
    }
    assert_eq!(order, [1, 2, 3]);
}

#[tokio::test]
async fn a_client_that_leaves_frees_its_slot_and_its_place_in_line() {
    let folder = tempfile::tempdir().unwrap();
    let config = logged(folder.path(), 0.5, 1);
    let log = config.log.clone().unwrap();
    let sim = Sim::start(config).unwrap();
    let mut running = send(
        &sim,
        Method::POST,
        "/v1/chat/completions",
        chat("talk", true).to_string(),
    )
    .await;
    assert!(running.body_mut().frame().await.is_some());
    let waiting = send(
        &sim,
        Method::POST,
        "/v1/chat/completions",
        chat("talk", true).to_string(),
    )
    .await;
    drop(waiting);
    let (end, tokens) = wait_for(&log, |log| finished(log, 2)).await;
    assert_eq!((end, tokens), (TruthEnd::ClientLeft, 0));
    let body = chat("talk", false);
    {
        // A client that waits for a whole answer, and gives up.
        let whole = post(&sim, "/v1/chat/completions", &body);
        tokio::pin!(whole);
        let queued = wait_for(&log, |log| {
            log.iter()
                .any(|l| matches!(l, Truth::Queued { request: 3, .. }))
                .then_some(())
        });
        tokio::select! { _ = &mut whole => panic!("there was no slot"), () = queued => {} }
    }
    let (end, _) = wait_for(&log, |log| finished(log, 3)).await;
    assert_eq!(end, TruthEnd::ClientLeft);
    drop(running);
    let (end, tokens) = wait_for(&log, |log| finished(log, 1)).await;
    assert_eq!(end, TruthEnd::ClientLeft);
    assert!(tokens < 60);
    let metrics = get(&sim, "/metrics").await.1;
    assert!(
        metrics.contains("num_requests_running{model_name=\"flashrig-sim\"} 0"),
        "{metrics}"
    );
    let mut next = chat("talk", false);
    next["max_tokens"] = json!(2);
    post(&sim, "/v1/chat/completions", &next).await;
    assert_eq!(finished(&truth(&log), 4), Some((TruthEnd::Complete, 2)));
}

#[tokio::test]
async fn a_stalled_stream_holds_its_slot_until_its_client_leaves_while_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = logged(folder.path(), 50.0, 2);
    let log = config.log.clone().unwrap();
    let stall = StreamFault {
        request: 1,
        after_tokens: 2,
        kind: StreamFaultKind::Stall,
    };
    config.faults = Faults {
        streams: vec![stall],
        ..Faults::default()
    };
    let sim = Sim::start(config).unwrap();
    let mut stalled = send(
        &sim,
        Method::POST,
        "/v1/chat/completions",
        chat("talk", true).to_string(),
    )
    .await;
    let mut text = String::new();
    while text.matches("abcd").count() < 2 {
        let frame = stalled.body_mut().frame().await.unwrap().unwrap();
        text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
    }
    let (_, other) = post_json(&sim, "/v1/chat/completions", &chat("talk", false)).await;
    assert_eq!(other["usage"]["completion_tokens"], 60);
    assert_eq!(finished(&truth(&log), 1), None);
    drop(stalled);
    assert_eq!(
        wait_for(&log, |log| finished(log, 1)).await,
        (TruthEnd::ClientLeft, 2)
    );
}

#[tokio::test]
async fn a_prefill_holds_up_the_decoding_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let config = logged(folder.path(), 20.0, 4);
    let log = config.log.clone().unwrap();
    let sim = Sim::start(config).unwrap();
    let mut first = send(
        &sim,
        Method::POST,
        "/v1/chat/completions",
        chat("talk", true).to_string(),
    )
    .await;
    for _ in 0..3 {
        assert!(first.body_mut().frame().await.is_some());
    }
    let long = format!("talk {}", "other words ".repeat(4000));
    post(&sim, "/v1/chat/completions", &chat(&long, false)).await;
    let log = truth(&log);
    let at = |wanted: fn(&Truth) -> bool| log.iter().position(wanted).unwrap();
    let from = at(|line| matches!(line, Truth::PrefillStart { request: 2, .. }));
    let to = at(|line| matches!(line, Truth::PrefillEnd { request: 2, .. }));
    assert!(
        log[from..to]
            .iter()
            .all(|line| !matches!(line, Truth::Step { .. }))
    );
    let (Truth::PrefillStart { at: from, .. }, Truth::PrefillEnd { at: to, .. }) =
        (&log[from], &log[to])
    else {
        unreachable!()
    };
    let seconds = to.since(*from).as_secs_f64();
    // 12,000 tokens at about 3,300 tokens/s and speed 20.
    assert!((0.17..0.22).contains(&seconds), "{seconds}");
}

/// Cached tokens of one answer, and all of its prompt tokens.
fn cached(answer: &Value) -> (u64, u64) {
    let usage = &answer["usage"];
    match usage["prompt_tokens_details"]["cached_tokens"].as_u64() {
        Some(cached) => (cached, usage["prompt_tokens"].as_u64().unwrap()),
        None => {
            let cached = usage["cache_read_input_tokens"].as_u64().unwrap();
            (cached, cached + usage["input_tokens"].as_u64().unwrap())
        }
    }
}

#[tokio::test]
async fn the_next_turn_finds_prompt_and_answer_of_the_last_in_the_cache() {
    let sim = start(vec![talker("talk", 200)]);
    let user = format!("talk {}", "about everything ".repeat(300));
    for (path, mut body) in [
        ("/v1/chat/completions", chat(&user, false)),
        ("/v1/messages", messages(&user, false)),
    ] {
        body["tools"][0]["salt"] = json!(path);
        let (_, first) = post_json(&sim, path, &body).await;
        let (_, first_prompt) = cached(&first);
        let text = if path == "/v1/messages" {
            &first["content"][0]["text"]
        } else {
            &first["choices"][0]["message"]["content"]
        };
        let turns = body["messages"].as_array_mut().unwrap();
        turns.push(json!({"role": "assistant", "content": text}));
        turns.push(json!({"role": "user", "content": "go on"}));
        let (_, second) = post_json(&sim, path, &body).await;
        let (hit, prompt) = cached(&second);
        assert!(
            hit > first_prompt + 100,
            "{path}: {hit} of {prompt}, first {first_prompt}"
        );
        assert!(
            prompt - hit <= 64 + 8,
            "{path}: all but the last block and the new turn: {hit} of {prompt}"
        );
    }
}

#[tokio::test]
async fn a_nonce_at_the_start_of_the_system_text_misses_the_cache() {
    let sim = start(vec![talker("talk", 3)]);
    let user = format!("talk {}", "about everything ".repeat(300));
    let mut body = messages(&user, false);
    assert_eq!(cached(&post_json(&sim, "/v1/messages", &body).await.1).0, 0);
    let (hit, prompt) = cached(&post_json(&sim, "/v1/messages", &body).await.1);
    assert!(hit > 0 && hit < prompt);
    body["system"]
        .as_array_mut()
        .unwrap()
        .insert(0, json!({"type": "text", "text": "nonce-81273"}));
    assert_eq!(cached(&post_json(&sim, "/v1/messages", &body).await.1).0, 0);
}

#[tokio::test]
async fn the_same_requests_are_timed_the_same_whatever_the_noise() {
    let mut runs = Vec::new();
    for seed in [5, 5, 6] {
        let folder = tempfile::tempdir().unwrap();
        let mut config = logged(folder.path(), 500.0, 1);
        let mut table = built_in_table();
        table.noise = 0.2;
        config.profile = flashrig_sim::SimProfile::new("noisy", MODEL, 131_072, &table).unwrap();
        config.seed = seed;
        let log = config.log.clone().unwrap();
        let sim = Sim::start(config).unwrap();
        post(&sim, "/v1/chat/completions", &chat("talk", false)).await;
        let log = truth(&log);
        let stamps = log.iter().filter_map(|l| {
            if let Truth::Step { at, .. } = l {
                Some(*at)
            } else {
                None
            }
        });
        let stamps: Vec<Stamp> = stamps.collect();
        runs.push(
            stamps
                .windows(2)
                .map(|pair| pair[1].since(pair[0]).as_nanos())
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
}
