//! The gateway and the egress guard, byte by byte, before a scripted server.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail like tests"
)]

use flashrig_testkit::{prometheus, upstream};

mod clients;
mod connections;
mod doors;
mod egress_guard;
mod encodings;
mod ends;
mod gate;
mod gateway_rig;
mod hostile;
mod intake;
mod limits;
mod origins;
mod probes;
mod refusals;
mod sessions;
mod standing_rig;
mod streams;
