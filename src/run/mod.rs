//! The experiment: rounds of arms of sessions, prepared, let go, ended, verified, recorded.
//!
//! This room drives the others and judges nothing. What happens is told on the [`Bus`]: facts to
//! the store, and those with the fleeting rest to whoever shows progress.

mod arm;
mod bodies;
mod bus;
mod command_line;
mod drive;
pub mod fit;
mod prepare;
mod record;
mod rounds;
mod scratch;
mod server_life;
mod sources;
mod stalled;
mod stop;
pub mod sweep;
pub mod ttft;
mod verifying;
mod warm_up;
mod watchdog;

pub use bodies::Bodies;
pub use bus::{Bus, Live, Step};
pub use command_line::command_line;
pub use rounds::{Context, Done, RunError, execute};
pub use scratch::{Scratch, ScratchError};
pub use server_life::Lost;
pub use stalled::{unless_stalled, warm_up_sessions};
pub use stop::Stop;
pub use verifying::Checks;
pub use warm_up::{WarmUpError, warm_up};
