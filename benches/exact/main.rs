//! How exact the gateway is, beside nginx, in one run: `cargo bench --bench exact` prints the table of
//! `docs/EXACT.md` in less than three minutes.
//!
//! Server, nginx and gateway are processes of their own; the clients run here, on one thread. Every
//! event carries the server's stamp of when it was sent. Nothing is asserted: a busy machine misses
//! targets without being wrong. `-- latency` or `-- crowd` runs one part only.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a step that fails ends the benchmark"
)]
#![expect(clippy::print_stdout, reason = "the figures are the output")]

mod children;
mod client;
mod crowd;
mod figures;
mod gateway;
mod latency;
mod server;

use std::net::SocketAddr;

use children::Process;
use client::{Load, Seen};

fn main() {
    // Cargo adds --bench.
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["role-server"] => return server::run(),
        ["role-gateway", upstream] => return gateway::run(upstream),
        _ => {}
    }
    figures::print_machine();
    let all = !args.contains(&"latency") && !args.contains(&"crowd");
    if all || args.contains(&"latency") {
        latency::measure();
    }
    if all || args.contains(&"crowd") {
        crowd::measure();
    }
    figures::print_load("at the end");
}

/// Runs a load on a thread of its own.
fn run(to: SocketAddr, load: Load) -> Vec<Seen> {
    std::thread::spawn(move || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(client::run(to, load))
    })
    .join()
    .expect("a client failed")
}

fn start_server() -> Process {
    Process::role(&["role-server"])
}

fn start_gateway(server: &Process) -> Process {
    Process::role(&["role-gateway", &server.addr.to_string()])
}
