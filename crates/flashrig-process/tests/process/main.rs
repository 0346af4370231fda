//! The process room, tried with real programs: scripts as agents, in every sandbox of this machine.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "helpers of tests fail like tests, and say what they skip"
)]

mod commands;
mod ends;
#[cfg(target_os = "linux")]
mod owner;
mod runs;
mod support;
