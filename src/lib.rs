//! flashrig measures what real coding agents cost each other on one LLM server.
//!
//! The house, room by room, is drawn in `docs/DESIGN.md`. Data flows one way:
//! `cli -> config -> run -> records -> judge -> report`; `run` drives `server`, `workspace`,
//! `agent`, `process`, `gateway` and `verify`, and `store` and the console listen to its events.

pub mod agent;
pub mod cli;
pub mod embedded;
pub mod exit;
pub mod plan;
pub mod probe;
pub mod run;
pub mod store;
pub mod task;
pub mod verify;
