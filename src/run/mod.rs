//! The experiments, from a validated request to the sealed record.
//!
//! This room drives the others and judges nothing. What happens goes over the [`Bus`]: facts to
//! the store, and those with the fleeting rest to whoever shows progress.

pub mod load;
pub mod pair;
mod shared;
pub mod sweep;

pub use pair::Checks;
pub use shared::RunError;
pub use shared::bus::{Bus, Live, Step};
pub use shared::command_line::{command_line, lack_secrets, masked_arguments};
pub use shared::error::WarmUpError;
pub use shared::scratch::{Scratch, ScratchError};
pub use shared::server_life::Lost;
pub use shared::stalled::{unless_stalled, warm_up_sessions};
pub use shared::stop::Stop;
pub use shared::warm_up::warm_up;
pub use shared::{instrument, reach, setting};
