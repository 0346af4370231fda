//! The results folder: append-only while a run goes on, sealed at the end.
//!
//! Nothing here judges or measures. Files that are rewritten are written beside and renamed, so
//! that a reader never sees half of one.

mod bodies;
mod read;
mod write;

pub use bodies::{BODIES_FILE, BodiesError, BodiesFile, BodyKind, BodyLine, Omitted, read_bodies};
pub use read::{ReadError, Stored, StoredEvent, read_run, results_folder};
pub use write::{ReopenError, Store, StoreError, write_atomically};
