//! What real servers wrote and told here, and what their profiles make of it.
use std::fs;
use std::path::Path;

use flashrig_record::Metric;
use flashrig_server::{Interface, Library, LogEvent, events};

fn recording(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/real");
    fs::read_to_string(folder.join(name)).unwrap()
}

fn interface(profile: &str) -> Interface {
    Library::new(None).load(profile).unwrap().interface
}

fn reported(profile: &str, log: &str) -> Vec<LogEvent> {
    let patterns = interface(profile).log;
    let log = recording(log);
    let lines = log.lines().flat_map(|line| events(&patterns, line));
    lines.collect()
}

#[test]
fn the_log_of_llama_cpp_tells_settings_cached_tokens_and_the_refusal() {
    let reported = reported("llama-server", "llama-server.log");
    let setting = |wanted: &str| {
        reported.iter().find_map(|event| match event {
            LogEvent::Setting { name, value } if name == wanted => Some(value.as_str()),
            _ => None,
        })
    };
    assert_eq!(setting("parallel"), Some("2"));
    assert_eq!(setting("ctx_size"), Some("4096"));
    assert_eq!(setting("batch"), Some("512"));
    assert_eq!(setting("ubatch"), Some("256"));
    assert_eq!(setting("threads"), Some("1"));
    assert_eq!(setting("n_ctx_slot"), Some("2048"));
    let refused = LogEvent::Refused {
        prompt_tokens: None,
        needed_tokens: Some(3031),
        available_tokens: Some(2048),
        needed_mb: None,
        available_mb: None,
    };
    assert_eq!(
        reported.iter().filter(|event| **event == refused).count(),
        1
    );
    // Of each request, the first: what later batches tell holds what was read by then.
    let cached: Vec<(&str, u64)> = reported
        .iter()
        .filter_map(|event| match event {
            LogEvent::Cached {
                request,
                cached_tokens,
            } => Some((request.as_deref()?, (*cached_tokens)?)),
            _ => None,
        })
        .collect();
    let wanted = [("0", 0), ("0", 512), ("0", 1024), ("11", 1230)];
    assert_eq!(cached, wanted);
}

#[test]
fn the_metrics_of_llama_cpp_have_the_common_names() {
    let page = recording("llama-server.metrics.txt");
    let names = interface("llama-server").metrics;
    for (metric, value) in [
        (Metric::Running, 0.0),
        (Metric::Waiting, 0.0),
        (Metric::PromptTokens, 1232.0),
        (Metric::CacheHits, 1230.0),
        (Metric::GeneratedTokens, 16.0),
    ] {
        assert_eq!(names.value(&page, metric), Some(value), "{metric:?}");
    }
}

#[test]
fn the_log_of_mlx_lm_tells_its_progress_and_a_dead_one_tells_none() {
    let progress = |done: u64| LogEvent::PrefillProgress {
        done_tokens: Some(done),
        total_tokens: Some(6010),
        share: None,
    };
    assert_eq!(
        reported("mlx-lm", "mlx-lm.log"),
        [2048, 4096, 6009, 6010].map(progress)
    );
    assert_eq!(reported("mlx-lm", "mlx-lm-stall.log"), []);
}
