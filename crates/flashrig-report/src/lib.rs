//! Reports: pure functions of the record and the view, so that any of them can be made again from
//! stored results at any time. Nothing here measures or writes.
//!
//! Every report begins the same way: the answer in the first line, the conditions in the second.
//! A new one is a folder or a file that writes on a `page`, with tables that fit.

mod figures;
mod fit;
mod head;
pub mod judge;
mod page;
mod pair;
mod probe;
mod server;
pub mod stats;
mod svg;
mod sweep;
mod table;
mod ttft;
mod view;
#[cfg(test)]
mod widths;

pub use page::Page;
pub use pair::text as pair_text;
pub use probe::text as probe_text;
pub use sweep::left as sweep_left;
pub use table::Table;
pub use view::View;

use std::borrow::Cow;

use flashrig_record::{LoadRun, LoadVerdict, Sweep};

/// The pictures of a run, as files that stand beside its record.
pub fn pictures(run: &LoadRun) -> Vec<(&'static str, String)> {
    if run.command != "fit" {
        return Vec::new();
    }
    let (run, _) = judged(run);
    let picture = svg::slowdown(&run).map(|picture| ("slowdown.svg", picture));
    picture.into_iter().collect()
}

/// Renders a run of `fit` or `ttft`; one that was killed is judged by what it has.
pub fn load_text(run: &LoadRun, view: View) -> String {
    let (run, verdict) = judged(run);
    match run.command.as_str() {
        "ttft" => ttft::text(&run, &verdict, view),
        _ => fit::text(&run, &verdict, view),
    }
}

/// Renders a sweep; one that was killed is judged by what it has.
pub fn sweep_text(sweep: &Sweep, view: View) -> String {
    sweep::text(&judge::sweep::judged(sweep), view)
}

fn judged(run: &LoadRun) -> (Cow<'_, LoadRun>, LoadVerdict) {
    if let Some(verdict) = &run.verdict {
        return (Cow::Borrowed(run), verdict.clone());
    }
    let mut run = run.clone();
    let verdict = if run.command == "ttft" {
        run.ttft = judge::ttft::rows(&run);
        judge::ttft::verdict(&run, &run.ttft, run.stopped_because.as_ref())
    } else {
        run.cells = judge::fit::cells(&run);
        judge::fit::verdict(&run, &run.cells)
    };
    (Cow::Owned(run), verdict)
}
