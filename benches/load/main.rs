//! What the synthetic client costs: 1,000 streams at 20 tokens a second each, from this process,
//! against `flashrig sim` in another one on the same machine.
//!
//! `cargo bench --bench load` prints a table in half a minute. Nothing is asserted: a busy machine
//! misses targets without being wrong. `-- --streams N` opens N of them, `-- --threads N` gives the
//! client's runtime N threads instead of one for each core. Linux only, as it reads `/proc`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a step that fails ends the benchmark"
)]
#![expect(clippy::print_stdout, reason = "the figures are the output")]

#[path = "../exact/figures.rs"]
#[expect(dead_code, reason = "each benchmark uses a part of it")]
mod figures;
mod server;

use std::time::Duration;

use figures::{Values, print_load, print_machine, verdict};
use flashrig_clock::{Origin, Stamp};
use flashrig_http::{KeyStyle, Upstream};
use flashrig_load::{
    Aim, Client, LoadDialect, LoadLimits, Meter, Prepared, SessionAttempt, SessionPlan, calibrate,
    salt,
};
use flashrig_record::{ClientHonesty, Outcome};
use server::Server;

/// Tokens a second of each stream.
const RATE: u32 = 20;
const RAMP: Duration = Duration::from_secs(3);
/// From the last stream's start to the window's.
const SETTLE: Duration = Duration::from_secs(1);
const WINDOW: Duration = Duration::from_secs(10);
/// Ramp, settling and window, and some seconds more.
const ANSWER_TOKENS: u32 = RATE * 20;
const PROMPT_TOKENS: u64 = 128;

fn main() {
    // Cargo adds --bench.
    let args: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        Some(args.get(at + 1)?.parse::<usize>().expect("a number"))
    };
    let streams = option("--streams").unwrap_or(1000);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = option("--threads") {
        runtime.worker_threads(threads);
    }
    print_machine();
    let shown = runtime
        .enable_all()
        .build()
        .unwrap()
        .block_on(measure(streams));
    shown.print(streams);
    print_load("at the end");
}

/// What was seen.
struct Shown {
    fewest: u32,
    server_running: Vec<f64>,
    honesty: ClientHonesty,
    window: (f64, f64),
    kb_per_stream: f64,
    server_cpu_share: f64,
    rows: Vec<SessionAttempt>,
}

async fn measure(streams: usize) -> Shown {
    let server = Server::start(RATE);
    let origin = Origin::now();
    let client = Client::new(aim(&server), origin.clone());
    let calibration = calibrate(&client, 1).await.unwrap();
    assert!(calibration.fixed_output, "the server ends answers early");
    client.take_rows();
    let before_kb = resident_kb();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..streams {
        let plan = SessionPlan {
            id: format!("s{number}"),
            context_tokens: PROMPT_TOKENS + u64::from(ANSWER_TOKENS),
            checks: 0,
            answer_tokens: ANSWER_TOKENS,
            seed: 1,
            salt: salt(&[number as u64]),
            shared_prefix: false,
        };
        let client = client.clone();
        let start = RAMP.mul_f64(number as f64 / streams as f64);
        tasks.spawn(async move {
            tokio::time::sleep(start).await;
            let mut request = Prepared::new(&client, &calibration, plan).unwrap();
            request.cold(&client).await
        });
    }
    tokio::time::sleep(RAMP + SETTLE).await;

    let meter = Meter::start(&client, false).unwrap();
    let (began, server_cpu) = (Stamp::now(), server.cpu());
    let (mut fewest, mut server_running) = (u32::MAX, Vec::new());
    while Stamp::now().since(began) < WINDOW {
        fewest = fewest.min(client.in_flight());
        server_running.push(server.running().await);
        tokio::time::sleep(WINDOW / 20).await;
    }
    let honesty = meter.finish();
    let after_kb = resident_kb();
    let window = (origin.at(began).0, origin.at(Stamp::now()).0);
    let server_cpu = (server.cpu() - server_cpu).as_secs_f64();
    while let Some(done) = tasks.join_next().await {
        done.expect("a stream failed");
    }
    Shown {
        fewest,
        server_running,
        honesty,
        window,
        kb_per_stream: after_kb.saturating_sub(before_kb) as f64 / streams as f64,
        server_cpu_share: server_cpu / (window.1 - window.0),
        rows: client.take_rows(),
    }
}

fn aim(server: &Server) -> Aim {
    let limit = Duration::from_secs(60);
    Aim {
        upstream: Upstream::new(&server.url, None, KeyStyle::ByDialect).unwrap(),
        model: server.model.to_owned(),
        dialect: LoadDialect::OpenaiChat,
        limits: LoadLimits {
            first_token: limit,
            silence: limit,
        },
        speed: 1.0,
    }
}

impl Shown {
    fn print(&self, streams: usize) {
        let lost = self
            .rows
            .iter()
            .filter(|row| row.attempt.outcome != Outcome::Complete)
            .count();
        let (tokens, gaps) = self.received();
        let seconds = self.window.1 - self.window.0;
        let cpu = self.honesty.cpu_s.map_or(f64::NAN, |s| s.0);
        let lag = self.honesty.lag_ms;
        let lag = |of: fn(flashrig_record::RigLag) -> f64| lag.map_or(f64::NAN, of);
        let most = self.honesty.max_in_flight.unwrap_or(0);
        let server = Values::new(self.server_running.clone());
        let all = verdict(streams as f64, f64::from(self.fewest));

        println!("\n## {streams} streams at {RATE} tokens a second, {WINDOW:?}, one process\n");
        println!("| | figure | target | |");
        println!("|---|---:|---:|---|");
        println!(
            "| open at once: fewest and most, by the client | {} and {most} | {streams} | {all} |",
            self.fewest
        );
        println!(
            "| running at once: fewest, by the server's own metrics | {:.0} | | |",
            server.quantile(0.0)
        );
        println!(
            "| streams lost | {lost} | 0 | {} |",
            verdict(lost as f64, 0.0)
        );
        println!(
            "| tokens received a second | {:.0} | {} | |",
            tokens as f64 / seconds,
            streams * RATE as usize
        );
        println!(
            "| lag of the client's event loop, median | {:.2} ms | | |",
            lag(|l| l.p50)
        );
        println!(
            "| lag, p99 | {:.2} ms | 5 ms | {} |",
            lag(|l| l.p99),
            verdict(lag(|l| l.p99), 5.0)
        );
        println!("| lag, largest | {:.2} ms | | |", lag(|l| l.max));
        println!(
            "| memory per stream | {:.1} KB | 100 KB | {} |",
            self.kb_per_stream,
            verdict(self.kb_per_stream, 100.0)
        );
        println!(
            "| CPU per received token | {:.2} µs | | |",
            cpu * 1e6 / tokens as f64
        );
        println!(
            "| processors used: client, server | {:.2}, {:.2} | | |",
            cpu / seconds,
            self.server_cpu_share
        );
        println!(
            "| from one token to the next: median, p99 | {:.1} ms, {:.1} ms | 50 ms | |",
            gaps.quantile(0.5),
            gaps.quantile(0.99)
        );
    }

    /// Tokens that came within the window, and the milliseconds from each to the next.
    fn received(&self) -> (usize, Values) {
        let mut gaps = Vec::new();
        let mut tokens = 0;
        for row in &self.rows {
            let Some(first) = row.attempt.clocks.first_token_s else {
                continue;
            };
            let mut at = first.0;
            let is_in = |at: f64| self.window.0 <= at && at < self.window.1;
            tokens += usize::from(is_in(at));
            for gap in &row.attempt.event_gaps_us {
                at += f64::from(*gap) / 1e6;
                if is_in(at) {
                    tokens += 1;
                    gaps.push(f64::from(*gap) / 1e3);
                }
            }
        }
        (tokens, Values::new(gaps))
    }
}

/// Resident memory of this process.
fn resident_kb() -> u64 {
    server::resident_kb(std::process::id())
}
