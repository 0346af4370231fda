//! Servers that flashrig starts itself. The real process is flashrig's own simulated server; what
//! goes wrong is played by small scripts.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot get what it needs has failed"
)]

#[path = "../support/serving.rs"]
#[expect(dead_code, reason = "shared with tests that end it themselves")]
mod serving;

mod ends;
mod faults;
mod life;
mod logs;
mod place;
mod profiles;
mod runs;
mod starts;
