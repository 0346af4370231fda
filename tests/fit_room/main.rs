//! `flashrig fit` as people run it: the real binary against the simulated server.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod bad_input;
#[path = "../support/managed.rs"]
mod managed_profile;
mod place;
mod record;
mod resume;
mod server_life;
mod verdicts;
