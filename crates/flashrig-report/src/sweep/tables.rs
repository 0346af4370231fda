//! The tables of a sweep: combinations by figures, no wider than a terminal.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use console::{Style, measure_text_width};

use super::{WIDTH, proofs};
use crate::figures::count;
use crate::judge::sweep::{factor, row_name};
use crate::text::new_table;
use flashrig_config::{format_seconds, format_tokens};
use flashrig_record::{FigureKind, FigureOf, MemoryBy, RowFigure, Sweep, SweepRow};

/// Settings that take more room are told once, and numbers stand for combinations.
const NAME_WIDTH: usize = 44;

/// Columns that belong together: they are never parted.
struct Group {
    heads: Vec<String>,
    /// For each combination, a cell for each head.
    cells: Vec<Vec<String>>,
}

impl Group {
    /// With the space on both sides of each column.
    fn width(&self) -> usize {
        widths(&self.heads, &self.cells).iter().map(|w| w + 2).sum()
    }
}

/// What combinations are called in the tables: their settings, a column each.
struct Names {
    heads: Vec<String>,
    /// For each combination, a cell for each head.
    cells: Vec<Vec<String>>,
}

impl Names {
    /// Those that differ between combinations; numbers when that takes too much room.
    fn of(sweep: &Sweep) -> Self {
        let settings = sweep.spec.settings.iter().enumerate();
        let varied: Vec<(usize, &str)> = settings
            .filter(|(_, setting)| setting.values.len() > 1)
            .map(|(index, setting)| (index, setting.name.as_str()))
            .collect();
        let value = |row: &SweepRow, index: usize| {
            let text = row.settings.get(index).map_or("", String::as_str);
            text.split_once('=').map_or(text, |(_, v)| v).to_owned()
        };
        let names = Self {
            heads: varied.iter().map(|(_, name)| (*name).to_owned()).collect(),
            cells: sweep
                .rows
                .iter()
                .map(|row| varied.iter().map(|(index, _)| value(row, *index)).collect())
                .collect(),
        };
        if names.width() <= NAME_WIDTH {
            return names;
        }
        Self {
            heads: vec!["combination".to_owned()],
            cells: sweep
                .rows
                .iter()
                .map(|row| vec![row.combination.to_string()])
                .collect(),
        }
    }

    fn is_numbered(&self, sweep: &Sweep) -> bool {
        let name = self.heads.first();
        !sweep.spec.settings.iter().any(|s| Some(&s.name) == name)
    }

    fn width(&self) -> usize {
        widths(&self.heads, &self.cells).iter().map(|w| w + 2).sum()
    }
}

fn widths(heads: &[String], cells: &[Vec<String>]) -> Vec<usize> {
    let width = |column: usize| {
        let widest = cells
            .iter()
            .map(|row| measure_text_width(&row[column]))
            .max();
        widest.unwrap_or(0).max(measure_text_width(&heads[column]))
    };
    (0..heads.len()).map(width).collect()
}

/// All tables.
pub fn tables(sweep: &Sweep, out: &mut String) {
    let names = Names::of(sweep);
    if names.is_numbered(sweep) {
        let _ = writeln!(out);
        for row in &sweep.rows {
            let _ = writeln!(out, "  {:>3}  {}", row.combination, row_name(sweep, row));
        }
    }
    let figures: BTreeSet<FigureOf> = sweep
        .rows
        .iter()
        .flat_map(|row| row.figures.iter().filter(|f| f.value.is_some()))
        .map(|figure| figure.of)
        .filter(|of| !goes_without_saying(*of))
        .collect();
    let sizes: BTreeSet<(Option<u64>, Option<u32>)> = figures
        .iter()
        .map(|of| (of.context_tokens, of.sessions))
        .collect();
    for (context, sessions) in sizes {
        let of_size = |of: &&FigureOf| (of.context_tokens, of.sessions) == (context, sessions);
        let groups = figures
            .iter()
            .filter(of_size)
            .map(|of| group(sweep, *of))
            .collect();
        table(title(context, sessions), &names, groups, out);
    }
    let groups = of_the_server(sweep);
    table(Some("The server".to_owned()), &names, groups, out);
    proofs::proofs(sweep, out);
}

/// Of one alone the worst is the only one, and beside nobody nothing is slowed down.
fn goes_without_saying(of: FigureOf) -> bool {
    let of_others = matches!(of.kind, FigureKind::TtftWorstS | FigureKind::WorstSlowdown);
    of_others && of.sessions == Some(1)
}

fn title(context: Option<u64>, sessions: Option<u32>) -> Option<String> {
    let plural = |n: u32| format!("{n} session{}", if n == 1 { "" } else { "s" });
    match (context, sessions) {
        (Some(tokens), Some(n)) => Some(format!("{} at {}", plural(n), format_tokens(tokens))),
        (Some(tokens), None) => Some(format!("{} context", format_tokens(tokens))),
        (None, Some(n)) => Some(format!("{n} at once")),
        (None, None) => None,
    }
}

/// As many tables as the width asks for, each with the combinations' names.
fn table(title: Option<String>, names: &Names, groups: Vec<Group>, out: &mut String) {
    // The first column is padded once more.
    let name_width = names.width() + 1;
    let (mut taken, mut width) = (Vec::new(), name_width);
    let mut parts = Vec::new();
    for group in groups {
        if !taken.is_empty() && width + group.width() > WIDTH {
            parts.push(std::mem::take(&mut taken));
            width = name_width;
        }
        width += group.width();
        taken.push(group);
    }
    parts.push(taken);
    let mut title = title;
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        let _ = writeln!(out);
        if let Some(title) = title.take() {
            let _ = writeln!(out, "{}", Style::new().bold().apply_to(title));
        }
        let heads = names.heads.iter();
        let heads = heads.chain(part.iter().flat_map(|group| &group.heads));
        let heads: Vec<&str> = heads.map(String::as_str).collect();
        let mut table = new_table(&heads, names.heads.len(), &[]);
        for (index, name) in names.cells.iter().enumerate() {
            let cells = part.iter().flat_map(|group| &group.cells[index]);
            table.add_row(name.iter().chain(cells));
        }
        let _ = writeln!(out, "{table}");
    }
}

/// A figure, and what it is of the first combination's.
fn group(sweep: &Sweep, of: FigureOf) -> Group {
    let figures: Vec<Option<&RowFigure>> = sweep
        .rows
        .iter()
        .map(|row| row.figures.iter().find(|figure| figure.of == of))
        .collect();
    let mut heads = vec![head(of.kind).to_owned()];
    let mut columns: Vec<Vec<String>> = vec![
        figures
            .iter()
            .map(|figure| value(of.kind, figure.and_then(|f| f.value)))
            .collect(),
    ];
    if of.kind.has_ratio() {
        heads.push("of first".to_owned());
        let ratio = |row: &SweepRow, figure: Option<&RowFigure>| {
            if row.combination == 1 {
                return "1".to_owned();
            }
            let ratio = figure.and_then(|f| f.of_first.value);
            ratio.map_or_else(|| "–".to_owned(), |v| format!("{v:.2}×"))
        };
        let rows = sweep.rows.iter().zip(&figures);
        columns.push(rows.map(|(row, figure)| ratio(row, *figure)).collect());
        if sweep.spec.rounds > 1 {
            heads.push("95%".to_owned());
            let interval = |figure: Option<&RowFigure>| {
                let interval = figure.and_then(|f| f.of_first.ci95);
                interval.map_or_else(
                    || "–".to_owned(),
                    |[a, b]| format!("{}–{}", factor(a), factor(b)),
                )
            };
            columns.push(figures.iter().map(|figure| interval(*figure)).collect());
        }
    }
    Group {
        heads,
        cells: turned(&columns, figures.len()),
    }
}

/// From columns to rows.
fn turned(columns: &[Vec<String>], rows: usize) -> Vec<Vec<String>> {
    (0..rows)
        .map(|row| columns.iter().map(|column| column[row].clone()).collect())
        .collect()
}

fn head(kind: FigureKind) -> &'static str {
    match kind {
        FigureKind::TogetherS => "together",
        FigureKind::BackToBackS => "back to back",
        FigureKind::TogetherOverBackToBack => "together/back to back",
        FigureKind::WorstSlowdown => "worst slowdown",
        FigureKind::DoneShare => "done",
        FigureKind::Fits => "sessions that fit",
        FigureKind::WarmTurnS => "warm turn",
        FigureKind::ColdTtftS => "cold first token",
        FigureKind::SideP95S => "side p95",
        FigureKind::TtftMedianS => "first token",
        FigureKind::TtftWorstS => "worst",
        FigureKind::TokensPerS => "tokens/s",
    }
}

fn value(kind: FigureKind, value: Option<f64>) -> String {
    let Some(value) = value else {
        return "–".to_owned();
    };
    match kind {
        FigureKind::TogetherS
        | FigureKind::BackToBackS
        | FigureKind::WarmTurnS
        | FigureKind::ColdTtftS
        | FigureKind::SideP95S
        | FigureKind::TtftMedianS
        | FigureKind::TtftWorstS => format_seconds(value),
        FigureKind::TogetherOverBackToBack | FigureKind::WorstSlowdown => format!("{value:.2}×"),
        FigureKind::DoneShare => format!("{:.0}%", value * 100.0),
        FigureKind::Fits => format!("{value:.0}"),
        FigureKind::TokensPerS => format!("{value:.1}"),
    }
}

/// Memory, start, what was measured, and what is proven.
fn of_the_server(sweep: &Sweep) -> Vec<Group> {
    let column = |head: String, cell: &dyn Fn(&SweepRow) -> String| Group {
        heads: vec![head],
        cells: sweep.rows.iter().map(|row| vec![cell(row)]).collect(),
    };
    let unknown = || "–".to_owned();
    let mut groups = vec![column("measured".to_owned(), &|row| {
        let failed = match row.failed {
            0 => String::new(),
            n => format!(", {n} failed"),
        };
        format!("{} of {}{failed}", row.measured, sweep.spec.rounds)
    })];
    let reported = |by| sweep.rows.iter().any(|row| row.peak_memory_by == Some(by));
    let by = match (reported(MemoryBy::System), reported(MemoryBy::Server)) {
        (true, _) => "peak memory",
        (false, true) => "peak memory (as told)",
        (false, false) => "peak memory",
    };
    groups.push(column(by.to_owned(), &|row| {
        let bytes = row.peak_memory_bytes;
        bytes.map_or_else(unknown, format_bytes)
    }));
    let contexts: Vec<BTreeSet<Option<u64>>> =
        sweep.rows.iter().map(|r| contexts(sweep, r)).collect();
    let all: BTreeSet<Option<u64>> = contexts.iter().flatten().copied().collect();
    if all.len() > 1 {
        groups.push(Group {
            heads: vec!["context".to_owned()],
            cells: contexts
                .iter()
                .map(|of| vec![format_contexts(of)])
                .collect(),
        });
    }
    if sweep.rows.iter().any(|row| row.ready_after_s.is_some()) {
        groups.push(column("start to ready".to_owned(), &|row| {
            row.ready_after_s
                .map_or_else(unknown, |s| format_seconds(s.0))
        }));
    }
    groups
}

/// The context lengths that a combination's servers had.
fn contexts(sweep: &Sweep, row: &SweepRow) -> BTreeSet<Option<u64>> {
    let units = sweep.units.iter();
    let units = units.filter(|unit| unit.combination == row.combination);
    units
        .filter_map(|unit| Some(unit.server.as_ref()?.context_tokens))
        .collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "context lengths are far below 2^53"
)]
fn format_contexts(contexts: &BTreeSet<Option<u64>>) -> String {
    let message = |tokens: &Option<u64>| {
        tokens.map_or_else(|| "unknown".to_owned(), |n| count(Some(n as f64)))
    };
    match contexts.iter().map(message).collect::<Vec<_>>() {
        none if none.is_empty() => "–".to_owned(),
        all => all.join(", "),
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
fn format_bytes(bytes: u64) -> String {
    match bytes as f64 {
        b if b < 1e9 => format!("{:.0} MB", b / 1e6),
        b => format!("{:.1} GB", b / 1e9),
    }
}
