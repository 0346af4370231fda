//! `flashrig sweep` through the real binary, on the simulated server.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests fail like tests, and say what they skip"
)]

#[path = "../pair_room/agent.rs"]
mod agent;
mod bad_input;
mod effects;
mod interrupted;
#[path = "../support/machine.rs"]
mod machine;
mod managed;
mod order;
mod record;
mod setting;
#[expect(
    dead_code,
    reason = "shared with the tests of pair, which need more of it"
)]
#[path = "../pair_room/stage.rs"]
mod stage;
