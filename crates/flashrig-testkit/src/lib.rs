//! What the tests of several crates share. Not published.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "these are helpers of tests"
)]

pub mod doors;
pub mod profile;
pub mod prometheus;
pub mod upstream;
pub mod waiting;
