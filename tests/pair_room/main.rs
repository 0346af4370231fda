//! `flashrig pair` through the real binary: scripted agents, the embedded server or a faulty one,
//! and a look from outside at what was printed, stored, and left running.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests fail like tests, and say what they skip"
)]

mod agent;
mod bad_input;
mod bodies;
mod egress;
mod faulty;
mod gated;
mod hangs;
mod interrupted;
mod leftovers;
#[path = "../support/machine.rs"]
mod machine;
mod managed;
#[path = "../support/managed.rs"]
mod managed_profile;
mod no_request;
mod record;
mod rounds;
mod said;
mod secrets;
mod server_faults;
mod server_life;
mod stage;
mod workspaces;
