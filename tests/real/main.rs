//! Real agents and real servers, installed by flashrig from their registries.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail like tests"
)]

mod agents;
mod servers;
#[path = "../commands/support/mod.rs"]
#[expect(dead_code, reason = "a part of it is used here")]
mod support;
