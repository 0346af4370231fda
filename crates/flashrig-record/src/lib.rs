//! The stored facts of a run: plain data, no I/O, no clocks, no judgement.
//!
//! Names follow `docs/DESIGN.md` and are stable: fields may be added, never renamed or reused.
//! A value that was not measured is `None`, written as `null`.

mod attempt;
mod check;
mod egress;
mod event;
mod facts;
mod fold;
mod kept;
mod load;
mod load_cell;
mod load_event;
mod load_fold;
mod prefix;
mod probe;
mod run;
mod server;
mod session;
mod sweep;
mod sweep_event;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod threads;
mod ttft;
mod verdict;
mod watched;
pub mod wording;

pub use attempt::*;
pub use check::*;
pub use egress::*;
pub use event::*;
pub use facts::*;
pub use fold::apply;
pub use kept::{Kept, LOAD_COMMANDS};
pub use llm_observe::{Dialect, ErrorDetail, Oddity, Outcome, RefusalKind, ToolCall};
pub use load::*;
pub use load_cell::*;
pub use load_event::*;
pub use load_fold::apply_load;
pub use prefix::*;
pub use probe::*;
pub use run::*;
pub use server::*;
pub use session::*;
pub use sweep::*;
pub use sweep_event::*;
pub use ttft::*;
pub use verdict::*;
pub use watched::*;
