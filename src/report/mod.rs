//! Reports: pure functions of the record, so that any of them can be made again from stored
//! results at any time. Nothing here measures, judges or writes.

mod figures;
mod makespans;
mod prefix;
mod probes;
mod text;

pub use text::text;
