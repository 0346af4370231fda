//! What flashrig itself costs: `cargo bench --bench overhead` measures every target of
//! `docs/BENCHMARKS.md` and prints one row for each, in about two minutes on a quiet machine.
//!
//! `-- PART…` runs some parts only: `startup`, `pair` (preparing and verifying), `clone`, `gateway`,
//! `cpu`. `-- cpu --agent opencode` takes another agent for the last. Nothing is asserted but that the
//! measured programs did what they were asked: a busy machine misses targets without being wrong.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a step that fails ends the benchmark"
)]
#![expect(clippy::print_stdout, reason = "the figures are the output")]

mod clone;
mod cpu;
mod gateway;
#[path = "../support/history.rs"]
mod history;
mod pair;
mod project;
mod startup;
mod table;

/// The binary under measurement, built with the same profile.
const FLASHRIG: &str = env!("CARGO_BIN_EXE_flashrig");

const PARTS: [&str; 5] = ["startup", "pair", "clone", "gateway", "cpu"];

fn main() {
    // Cargo adds --bench.
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let agent = args
        .iter()
        .position(|arg| arg == "--agent")
        .and_then(|at| args.get(at + 1))
        .map_or("claude", String::as_str);
    let named: Vec<&str> = PARTS
        .into_iter()
        .filter(|part| args.iter().any(|arg| arg == part))
        .collect();
    table::print_head();
    for part in PARTS {
        if !named.is_empty() && !named.contains(&part) {
            continue;
        }
        let rows = match part {
            "startup" => startup::measure(),
            "pair" => pair::measure(),
            "clone" => clone::measure(),
            "gateway" => gateway::measure(),
            _ => cpu::measure(agent),
        };
        for row in rows {
            println!("{row}");
        }
    }
}
