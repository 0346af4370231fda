//! The report of `fit` as the terminal shows it.

use crate::records::LoadRun;

/// Renders a run.
pub fn text(run: &LoadRun) -> String {
    run.id.clone()
}
