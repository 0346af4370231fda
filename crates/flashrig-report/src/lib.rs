//! Reports: pure functions of the record, so that any of them can be made again from stored
//! results at any time. Nothing here measures, judges or writes.

mod figures;
mod fit;
mod head;
pub mod judge;
mod makespans;
mod prefix;
mod probe;
mod probes;
mod server;
pub mod stats;
mod svg;
mod sweep;
mod text;
mod ttft;

pub use probe::text as probe_text;
pub use sweep::{left as sweep_left, text as sweep_text};
pub use text::text;

use flashrig_record::LoadRun;

/// The pictures of a run, as files that stand beside its record.
pub fn pictures(run: &LoadRun) -> Vec<(&'static str, String)> {
    match run.command.as_str() {
        "fit" => svg::slowdown(run)
            .map(|picture| ("slowdown.svg", picture))
            .into_iter()
            .collect(),
        _ => Vec::new(),
    }
}

/// Renders a run of `fit` or `ttft`.
pub fn load_text(run: &LoadRun) -> String {
    match run.command.as_str() {
        "ttft" => ttft::text(run),
        _ => fit::text(run),
    }
}
