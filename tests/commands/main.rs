//! Every command as people run it: the real binary, scripted agents, simulated and faulty servers.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests fail like tests"
)]

mod doors;
mod fit;
mod gateway;
mod lists;
mod managed;
mod pair;
mod samples;
mod servers;
mod sim;
mod support;
mod sweep;
mod terminal;
mod ttft;
mod watch;
