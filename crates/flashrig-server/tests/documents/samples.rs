//! What servers tell of themselves, in the form they document it, and what their profiles make of
//! it.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use flashrig_record::Metric;
use flashrig_server::{Interface, Library, LogEvent, events};

fn sample(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/servers");
    fs::read_to_string(folder.join(name)).unwrap()
}

fn interface(profile: &str) -> Interface {
    Library::new(None).load(profile).unwrap().interface
}

/// The metrics of a sample by their common names.
fn metrics(profile: &str) -> BTreeMap<&'static str, f64> {
    let page = sample(&format!("{profile}.metrics.txt"));
    let found = interface(profile).metrics.read(&page);
    found
        .iter()
        .map(|found| (found.metric.label(), found.value))
        .collect()
}

/// The events of a sample's log.
fn log(profile: &str) -> Vec<LogEvent> {
    let patterns = interface(profile).log;
    let log = sample(&format!("{profile}.log"));
    log.lines()
        .flat_map(|line| events(&patterns, line))
        .collect()
}

fn setting(name: &str, value: &str) -> LogEvent {
    LogEvent::Setting {
        name: name.to_owned(),
        value: value.to_owned(),
    }
}

fn refused_for_context(prompt: Option<u64>, needed: u64, available: u64) -> LogEvent {
    LogEvent::Refused {
        prompt_tokens: prompt,
        needed_tokens: Some(needed),
        available_tokens: Some(available),
        needed_mb: None,
        available_mb: None,
    }
}

fn progress(done: u64, total: Option<u64>, share: Option<f64>) -> LogEvent {
    LogEvent::PrefillProgress {
        done_tokens: Some(done),
        total_tokens: total,
        share,
    }
}

#[test]
fn every_sample_says_at_its_top_that_it_is_from_documentation() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/servers");
    let files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(files.len(), 7, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let top = text.lines().next().unwrap();
        assert!(
            top.ends_with("taken from documentation, not recorded here."),
            "{file:?}: {top}"
        );
    }
}

#[test]
fn metrics_of_mlx_serve_are_mapped_to_the_common_names() {
    let wanted = BTreeMap::from([
        ("running", 2.0),
        ("waiting", 1.0),
        ("prompt_tokens", 412_345.0),
        ("generated_tokens", 8_123.0),
        ("cache_queries", 412_345.0),
        ("cache_hits", 301_056.0),
        ("memory_bytes", 64_477_986_816.0),
    ]);
    assert_eq!(metrics("mlx-serve"), wanted, "and it tells no refusals");
}

#[test]
fn metrics_of_vllm_are_summed_over_engines_and_neither_buckets_nor_dates_are_taken() {
    let wanted = BTreeMap::from([
        ("running", 4.0),
        ("waiting", 5.0),
        ("prompt_tokens", 120_000.0),
        ("generated_tokens", 4_096.0),
        ("cache_queries", 120_000.0),
        ("cache_hits", 90_112.0),
    ]);
    assert_eq!(metrics("vllm"), wanted);
    let bare = sample("vllm.metrics.txt").replace("_total{", "{");
    let names = interface("vllm").metrics;
    assert_eq!(
        names.value(&bare, Metric::CacheHits),
        Some(90_112.0),
        "under the names of its documentation too"
    );
}

#[test]
fn metrics_of_llama_cpp_are_mapped_to_the_common_names() {
    let wanted = BTreeMap::from([
        ("running", 2.0),
        ("waiting", 0.0),
        ("prompt_tokens", 24_310.0),
        ("generated_tokens", 910.0),
        ("cache_hits", 9_788.0),
    ]);
    assert_eq!(metrics("llama-server"), wanted);
}

#[test]
fn the_log_of_mlx_serve_tells_settings_served_requests_and_refusals() {
    let wanted = [
        setting("max_concurrent", "1"),
        setting("batched_decode", "on"),
        LogEvent::Finished {
            prompt_tokens: Some(11_742),
            cached_tokens: Some(9_728),
            generated_tokens: Some(512),
            tokens: None,
        },
        LogEvent::Refused {
            prompt_tokens: Some(262_144),
            needed_tokens: None,
            available_tokens: None,
            needed_mb: Some(16_384),
            available_mb: Some(12_040),
        },
    ];
    assert_eq!(log("mlx-serve"), wanted);
}

#[test]
fn the_log_of_vllm_tells_settings_and_refusals() {
    let wanted = [
        setting("max_num_seqs", "4"),
        setting("max_num_batched_tokens", "2048"),
        refused_for_context(Some(112_946), 122_946, 16_384),
    ];
    assert_eq!(log("vllm"), wanted);
}

#[test]
fn the_log_of_llama_cpp_tells_progress_in_its_old_and_its_new_form() {
    let wanted = [
        setting("n_ctx_slot", "32768"),
        progress(19_200, None, Some(0.827_836)),
        progress(2_048, None, Some(0.38)),
        LogEvent::Finished {
            prompt_tokens: None,
            cached_tokens: None,
            generated_tokens: None,
            tokens: Some(1_369),
        },
        refused_for_context(None, 14_429, 8_192),
    ];
    assert_eq!(log("llama-server"), wanted);
}

#[test]
fn the_log_of_mlx_lm_tells_progress() {
    assert_eq!(log("mlx-lm"), [progress(2_048, Some(8_300), None)]);
}

/// These lines were written by llama.cpp's server of the wheel that `servers install` takes.
#[test]
fn llama_server_tells_what_of_a_prompt_was_cached_once_for_each_batch() {
    let patterns = interface("llama-server").log;
    let line = "0.11.430.843 I slot   operator(): id  0 | task 110 | cached n_tokens = 25, memory_seq_rm [25, end)";
    let wanted = LogEvent::Cached {
        request: Some("110".to_owned()),
        cached_tokens: Some(25),
    };
    assert_eq!(events(&patterns, line), [wanted]);
}

#[test]
fn a_server_of_which_only_the_address_is_known_is_read_under_all_these_names() {
    let known = Interface::unknown().metrics;
    for profile in ["mlx-serve", "vllm", "llama-server"] {
        let page = sample(&format!("{profile}.metrics.txt"));
        let its_own = interface(profile).metrics.read(&page);
        assert_eq!(known.read(&page), its_own, "{profile}");
    }
}
