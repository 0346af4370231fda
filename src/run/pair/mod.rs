//! `pair`: rounds of arms of sessions, prepared, let go, ended, verified, recorded.

mod arm;
mod bodies;
mod context;
mod drive;
mod machine;
mod prepare;
mod ready;
mod record;
mod request;
mod rounds;
mod sources;
mod surroundings;
mod verifying;
mod watchdog;

pub use bodies::Bodies;
pub use context::Context;
pub use prepare::prepare;
pub use request::Request;
pub use rounds::{Done, execute};
pub use verifying::Checks;
