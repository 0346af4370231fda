//! `flashrig fit` as people run it: the real binary against the simulated server.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod bad_input;
mod place;
mod record;
mod resume;
mod verdicts;
