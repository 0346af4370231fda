//! What watching costs: the CPU time of one thread that does nothing else.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot get what it needs has failed"
)]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use parking_lot::Mutex;
use tempfile::TempDir;

use super::reading::{Fold, When};
use super::sampler::{Lines, Page, Sampler};
use crate::life::Life;
use crate::log::{EVERY, LogIndex, LogTailer};
use crate::profiles::Interface;
use flashrig_clock::Origin;
use flashrig_http::{KeyStyle, Upstream};

/// CPU time of this thread, in seconds.
fn cpu_s() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).unwrap();
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    micros as f64 / 1e6
}

/// A server with a page as long as vLLM's; each connection gets it once.
fn serve_long_page() -> String {
    let labels = "engine=\"0\",model_name=\"qwen3-coder\"";
    let buckets = (0..2000).map(|n| format!("vllm:latency_bucket{{{labels},le=\"{n}\"}} {n}.0\n"));
    let mut page: String = buckets.collect();
    page.push_str("vllm:num_requests_running 1\nvllm:prompt_tokens_total 5\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", page.len());
            let _ = stream.write_all((head + &page).as_bytes());
        }
    });
    url
}

#[test]
fn a_look_each_second_at_a_long_page_and_ten_at_a_quiet_log_cost_less_than_a_percent() {
    let folder = TempDir::new().unwrap();
    let sampler = Sampler {
        server: Upstream::new(&serve_long_page(), None, KeyStyle::ByDialect).unwrap(),
        names: Interface::unknown().metrics,
        life: Life::not_ours(),
        log_index: LogIndex::new(Vec::new()),
        origin: Origin::now(),
        page: tokio::sync::Mutex::new(Page::default()),
        span: Mutex::new(Some(Fold::default())),
        lines: Mutex::new(Lines::open(&folder.path().join("server.jsonl")).unwrap()),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    const LOOKS: u32 = 50;
    let before = cpu_s();
    runtime.block_on(async {
        for _ in 0..LOOKS {
            assert!(sampler.look(When::Between).await);
        }
    });
    let look = (cpu_s() - before) / f64::from(LOOKS);

    let log = folder.path().join("log");
    std::fs::write(&log, "quiet\n").unwrap();
    let mut log_tailer = LogTailer::begin(&log).unwrap();
    let before = cpu_s();
    for _ in 0..1000 {
        log_tailer.read(&mut |_| {});
    }
    let log_look = (cpu_s() - before) / 1000.0;

    let share = look + log_look / EVERY.as_secs_f64();
    eprintln!(
        "a look {look:.6} s, one at the log {log_look:.6} s: {:.3}%",
        share * 100.0
    );
    assert!(share < 0.01, "{share}");
    assert_eq!((*sampler.span()).unwrap().samples, LOOKS);
}
