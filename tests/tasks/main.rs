//! Tasks: read, and proven to tell right from wrong.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::expect_used,
    reason = "helpers of tests fail like tests"
)]

mod builtin;
mod proof;
mod read;
mod tree;
mod verify_support;
