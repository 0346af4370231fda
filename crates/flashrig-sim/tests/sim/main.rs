//! The simulated server over real connections.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod engine;
mod engine_faults;
mod engine_load;
mod play;
mod protocol;
mod refusals;
mod sim_support;
