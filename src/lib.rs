//! flashrig measures what real coding agents cost each other on one LLM server.
//!
//! The house, room by room, is drawn in `docs/DESIGN.md`. Data flows one way:
//! `cli -> config -> run -> records -> judge -> report`; `run` drives `server`, `workspace`,
//! `agent`, `process`, `gateway` and `verify`, and `store` and the console listen to its events.

pub mod agent;
pub mod cli;
pub mod clock;
pub mod config;
pub mod egress;
pub mod embedded;
pub mod gateway;
pub mod judge;
pub mod load;
mod observe;
pub mod plan;
pub mod probe;
pub mod process;
pub mod records;
pub mod report;
pub mod run;
pub mod server;
pub mod sim;
mod stamped;
pub mod standing;
pub mod stats;
pub mod store;
pub mod task;
pub mod threads;
pub mod verify;
pub mod workspace;
