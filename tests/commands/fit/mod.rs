//! `flashrig fit` as people run it: the real binary against the simulated server.

mod bad_input;
pub mod place;
mod record;
mod resume;
mod server_life;
mod verdicts;
