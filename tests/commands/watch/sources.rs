//! What clients, metrics and log say, beside each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::watch::Place;
use crate::watch::proxy::before;

/// Turns that find their prompt in the cache.
const FIT: [&str; 11] = [
    "fit",
    "--contexts",
    "4k",
    "--sessions",
    "2",
    "--checks",
    "2",
    "--answer-tokens",
    "16",
    "--rounds",
    "1",
];

/// A server with 2 GB of memory beside its weights and cache.
const LITTLE_MEMORY: [&str; 8] = [
    "--profile",
    "flash-next",
    "--speed",
    "100",
    "--set",
    "memory=63GB",
    "--set",
    "cache_ram=1GB",
];

fn fit(place: &Place, url: &str, more: &[&str]) -> crate::watch::Ran {
    let args: Vec<&str> = FIT
        .iter()
        .chain(&["--server", url])
        .chain(more)
        .copied()
        .collect();
    let ran = place.run(&args);
    assert!(matches!(ran.code, Some(0 | 1)), "{}{}", ran.out, ran.err);
    ran
}

/// The page with one figure changed.
fn lying(name: &'static str, change: fn(u64) -> u64) -> Arc<crate::watch::proxy::Change> {
    Arc::new(move |path, status, body| {
        if path != "/metrics" {
            return None;
        }
        let lines = body.lines().map(|line| match line.rsplit_once(' ') {
            Some((label, value)) if line.starts_with(name) => {
                format!("{label} {}", change(value.parse().unwrap()))
            }
            _ => line.to_owned(),
        });
        Some((status, lines.collect::<Vec<_>>().join("\n") + "\n"))
    })
}

#[test]
fn a_sound_servers_answers_metrics_and_log_agree() {
    let place = Place::new(&["--speed", "50"]);
    let log = place.log();
    let ran = fit(
        &place,
        &place.sim.url(),
        &["--server-log", log.to_str().unwrap(), "--json"],
    );
    let mut cached = 0;
    for watched in ran.watched() {
        assert_eq!(watched["disagreements"], json!([]), "{watched}");
        let three = &watched["cached_tokens"];
        assert_eq!(three["metrics"], three["answers"], "{watched}");
        assert_eq!(three["log"], three["answers"], "{watched}");
        cached += three["answers"].as_u64().unwrap();
        assert_eq!(
            watched["refused"],
            json!({"answers": 0, "metrics": 0, "log": 0})
        );
    }
    assert!(cached > 0, "no turn found its prompt in the cache");
    let record = ran.record();
    assert_eq!(record["measured"][0]["idle_by"], "metrics");
}

#[test]
fn a_page_of_metrics_that_lies_is_contradicted_with_the_difference_and_both_sources() {
    let place = Place::new(&["--speed", "50"]);
    let url = before(
        &place.sim.addr,
        lying("vllm:prefix_cache_hits_total", |hits| hits / 2),
    );
    let ran = fit(&place, &url, &["--json"]);
    let watched = &ran.watched()[0];
    let three = &watched["cached_tokens"];
    let (said, lied) = (
        three["answers"].as_u64().unwrap(),
        three["metrics"].as_u64().unwrap(),
    );
    assert_eq!(three["log"], Value::Null, "nobody reads its log");
    assert!(lied < said, "{three}");
    let message = watched["disagreements"][0]["text"].as_str().unwrap();
    let digits = message.replace(',', "");
    assert!(
        message.starts_with("cached prompt tokens differ by "),
        "{message}"
    );
    assert!(
        digits.contains(&(said - lied).to_string()),
        "{message} of {three}"
    );
    assert!(
        message.contains("clients' answers") && message.contains("metrics"),
        "{message}"
    );
    let report = place.run(&[
        "report",
        "--wide",
        place.results().unwrap().to_str().unwrap(),
    ]);
    let shown = report.out.lines().find(|line| line.contains(message));
    assert!(
        shown.is_some_and(|line| line.contains("note: ")),
        "{}",
        report.out
    );
}

#[test]
fn counters_that_go_back_are_unknown_and_not_negative() {
    let place = Place::new(&["--speed", "50"]);
    let url = before(
        &place.sim.addr,
        lying("vllm:prompt_tokens_total", |n| 1_000_000 - n),
    );
    let ran = fit(&place, &url, &["--json"]);
    let watched = &ran.watched()[0];
    assert_eq!(watched["prompt_tokens"], Value::Null, "{watched}");
    assert!(watched["generated_tokens"].as_u64() > Some(0), "{watched}");
}

#[test]
fn a_refused_request_has_the_clients_words_and_the_logs() {
    let place = Place::new(&LITTLE_MEMORY);
    let log = place.log();
    let args = [
        "ttft", "--wide", "--agents", "2", "--prompt", "1k", "--long", "64k", "--server",
    ];
    let url = place.sim.url();
    let more = [url.as_str(), "--server-log", log.to_str().unwrap()];
    let ran = place.run(&[&args[..], &more[..]].concat());
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    let line = "its log: “prompt 65536 tokens needs ~";
    let shown = ran.out.lines().find(|shown| shown.contains(line));
    assert!(
        shown.is_some_and(|shown| shown.contains("“Prompt (65536 tokens) requires ~")),
        "{}",
        ran.out
    );
    let record: Value = serde_json::from_str(&place.result_text("run.json")).unwrap();
    let watched = &record["measured"][0]["watched"];
    assert_eq!(
        watched["refused"],
        json!({"answers": 1, "metrics": 1, "log": 1})
    );
    let refusals = watched["refusals"].as_array().unwrap();
    assert_eq!(refusals.len(), 1, "{watched}");
    assert_eq!(
        (&refusals[0]["session"], &refusals[0]["status"]),
        (&json!("long"), &json!(400))
    );
    assert_eq!(watched["disagreements"], json!([]));
    // And where the server itself tells of it.
    let reported = place.result_text("server.jsonl");
    assert!(
        reported
            .lines()
            .any(|l| l.contains("\"log\"") && l.contains("rejecting")),
        "{reported}"
    );
    assert!(place.result_text("server.log").contains("rejecting"));
}

#[test]
fn without_metrics_idleness_is_known_by_the_slots_and_without_those_by_a_quiet_second() {
    let place = Place::new(&["--speed", "1000"]);
    let asked = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&asked);
    let url = before(
        &place.sim.addr,
        Arc::new(move |path, _, _| match path {
            "/metrics" => Some((404, "none".to_owned())),
            // At work for the first three looks.
            "/slots" => {
                let at_work = seen.fetch_add(1, Ordering::Relaxed) < 3;
                let slots =
                    json!([{"id": 0, "is_processing": at_work}, {"id": 1, "is_processing": false}]);
                Some((200, slots.to_string()))
            }
            _ => None,
        }),
    );
    let args = [
        "ttft", "--agents", "1", "--prompt", "1k", "--json", "--server",
    ];
    let ran = place.run(&[&args[..], &[&url]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let measured = &ran.record()["measured"][0];
    assert_eq!(measured["idle_by"], "slots");
    assert!(
        asked.load(Ordering::Relaxed) > 3,
        "it did not wait for the slot"
    );
    assert_eq!(measured["watched"]["samples"], 0);
    assert_eq!(measured["watched"]["generated_tokens"], Value::Null);

    let neither = Place::new(&["--speed", "1000"]);
    let url = before(
        &neither.sim.addr,
        Arc::new(|path, _, _| (path == "/metrics").then(|| (404, "none".to_owned()))),
    );
    let ran = neither.run(&[&args[..], &[&url]].concat());
    let measured = &ran.record()["measured"][0];
    assert_eq!(measured["idle_by"], "quiet");
    assert!(measured["idle_wait_s"].as_f64() >= Some(1.0), "{measured}");
}
