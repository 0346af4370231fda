//! 1,000 streams at once at 20 events a second: streams lost, memory for each, CPU for each event.

use std::net::SocketAddr;
use std::time::Duration;

use flashrig_clock::Stamp;

use super::children::Usage;
use super::client::Load;
use super::figures::{Values, us, verdict};
use super::{Process, run, start_gateway, start_server};

const RAMP: Duration = Duration::from_secs(3);
const WINDOW: Duration = Duration::from_secs(8);
/// From the last stream's start to the window's.
const SETTLE: Duration = Duration::from_secs(1);

const LOAD: Load = Load {
    streams: 1000,
    interval: Duration::from_millis(50),
    // Ramp, settling and window, and two seconds more.
    events: 14 * 20,
    lasting: Duration::ZERO,
    ramp: RAMP,
    with_long_requests: false,
};
const KB_PER_STREAM: f64 = 64.0;
const TIMES_NGINX: f64 = 2.0;

/// What one way showed.
struct Shown {
    lost: usize,
    kb_per_stream: f64,
    cpu_us_per_event: f64,
    /// Events a second in the window.
    rate: f64,
    latency: Values,
}

pub fn measure() {
    println!("\n## 1,000 streams at 20 events a second, {WINDOW:?} each way\n");
    println!(
        "| way | streams lost | events/s | memory per stream | ≤ 64 KB | CPU per event | of nginx's | ≤ 2 | event latency median | p99 |"
    );
    println!("|---|---:|---:|---:|---|---:|---:|---|---:|---:|");
    let server = start_server();
    let direct = crowd(server.addr, None);
    let through_nginx =
        Process::nginx(server.addr, true).map(|nginx| crowd(nginx.addr, Some(&nginx)));
    let gateway = start_gateway(&server);
    let through_gateway = crowd(gateway.addr, Some(&gateway));
    let nginx_cpu = through_nginx.as_ref().map(|shown| shown.cpu_us_per_event);
    row("direct", Some(&direct), None);
    row("nginx", through_nginx.as_ref(), None);
    row("gateway", Some(&through_gateway), nginx_cpu);
}

fn row(way: &str, shown: Option<&Shown>, nginx_cpu: Option<f64>) {
    let Some(shown) = shown else {
        println!("| {way} | not installed |");
        return;
    };
    let (median, p99) = (shown.latency.quantile(0.5), shown.latency.quantile(0.99));
    let tail = format!("{median:.0} µs | {p99:.0} µs |");
    let (lost, rate) = (shown.lost, shown.rate);
    let head = format!("| {way} | {lost} | {rate:.0}");
    if way == "direct" {
        println!("{head} | | | | | | {tail}");
        return;
    }
    let (kb, cpu) = (shown.kb_per_stream, shown.cpu_us_per_event);
    let times = nginx_cpu.map(|nginx| cpu / nginx);
    println!(
        "{head} | {kb:.1} KB | {} | {cpu:.1} µs | {} | {} | {tail}",
        verdict(kb, KB_PER_STREAM),
        times.map_or(String::new(), |times| format!("{times:.2}")),
        times.map_or("", |times| verdict(times, TIMES_NGINX)),
    );
}

fn crowd(to: SocketAddr, between: Option<&Process>) -> Shown {
    // A first stream, so that what is set up once is not counted.
    run(
        to,
        Load {
            streams: 1,
            events: 2,
            ramp: Duration::ZERO,
            ..LOAD
        },
    );
    let usage = || between.map_or_else(Usage::default, Process::usage);
    let empty = usage();
    let clients = std::thread::spawn(move || run(to, LOAD));
    std::thread::sleep(RAMP + SETTLE);
    let (from, at_start) = (Stamp::now(), usage());
    std::thread::sleep(WINDOW);
    let (until, at_end) = (Stamp::now(), usage());
    let seen = clients.join().expect("the clients failed");
    let events: Vec<f64> = seen
        .iter()
        .flat_map(|s| &s.events)
        .filter(|&&(_, got)| (from.0..until.0).contains(&got))
        .map(|&(sent, got)| us(got, sent))
        .collect();
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let (count, kb) = (
        events.len() as f64,
        at_end.resident_kb.saturating_sub(empty.resident_kb) as f64,
    );
    Shown {
        lost: seen.iter().filter(|s| !s.whole).count(),
        kb_per_stream: kb / f64::from(LOAD.streams),
        cpu_us_per_event: (at_end.cpu - at_start.cpu).as_secs_f64() * 1e6 / count,
        rate: count / until.since(from).as_secs_f64(),
        latency: Values::new(events),
    }
}
