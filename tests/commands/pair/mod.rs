//! `flashrig pair` through the real binary: scripted agents, the embedded server or a faulty one,
//! and a look from outside at what was printed, stored, and left running.

pub mod agent;
mod bad_input;
mod bodies;
mod egress;
pub mod faulty;
mod gated;
mod hangs;
mod interrupted;
mod leftovers;
mod machine;
mod managed;
mod no_request;
mod record;
mod rounds;
mod said;
mod secrets;
mod server_faults;
mod server_life;
pub mod stage;
mod workspaces;
