//! What combinations and figures are called.

use flashrig_config::{format_tokens, plural};
use flashrig_record::{FigureKind, FigureOf, Sweep, SweepRow};

/// The settings of a combination that differ between combinations, e.g. `parallel=4, batch=512`.
pub fn row_name(sweep: &Sweep, row: &SweepRow) -> String {
    name_of(sweep, row.combination)
}

/// The same of a combination (from 1).
pub fn name_of(sweep: &Sweep, combination: u32) -> String {
    let sets = sweep.spec.sets(combination);
    let settings = sweep.spec.settings.iter().zip(&sets);
    let varied: Vec<&str> = settings
        .filter(|(setting, _)| setting.values.len() > 1)
        .map(|(_, text)| text.as_str())
        .collect();
    varied.join(", ")
}

/// A figure as people call it, e.g. `median TTFT of 4 requests at once`.
pub fn figure_label(of: FigureOf) -> String {
    let what = match of.kind {
        FigureKind::TogetherS => "makespan together",
        FigureKind::BackToBackS => "sum of walls back to back",
        FigureKind::TogetherOverBackToBack => "together over back to back",
        FigureKind::WorstSlowdown => "worst slowdown",
        FigureKind::DoneShare => "share of sessions done",
        FigureKind::Fits => "number of sessions that fit",
        FigureKind::WarmTurnS => "median warm turn",
        FigureKind::ColdTtftS => "TTFT of cold prompts",
        FigureKind::SideP95S => "95th percentile of side requests",
        FigureKind::SideTtftP95S => "95th percentile of the TTFT of side requests",
        FigureKind::TtftMedianS => "median TTFT",
        FigureKind::TtftWorstS => "worst TTFT",
        FigureKind::TokensPerS => "throughput",
    };
    match (of.sessions, of.context_tokens) {
        (Some(n), Some(tokens)) => format!(
            "{what} of {} at {}",
            plural(n, "session"),
            format_tokens(tokens)
        ),
        (Some(n), None) => format!("{what} of {} at once", plural(n, "request")),
        (None, Some(tokens)) => format!("{what} at {}", format_tokens(tokens)),
        (None, None) => what.to_owned(),
    }
}

/// A ratio, with two digits where they mean something.
pub fn factor(value: f64) -> String {
    match value {
        v if v < 99.995 => format!("{v:.2}"),
        v if v < 10_000.0 => format!("{v:.0}"),
        _ => ">10,000".to_owned(),
    }
}
