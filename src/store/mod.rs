//! The results folder: append-only while a run goes on, sealed at the end.
//!
//! Nothing here judges or measures. Files that are rewritten are written beside and renamed, so
//! that a reader never sees half of one.

mod read;
mod write;

pub use read::{ReadError, read_run};
pub use write::{Store, StoreError, write_atomically};
