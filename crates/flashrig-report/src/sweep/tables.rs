//! The tables of a sweep: combinations by figures. What does not fit side by side stands in a
//! further table.

use std::collections::BTreeSet;

use crate::figures::{bytes, float, seconds, times, unknown};
use crate::judge::sweep::{factor, row_name};
use crate::page::Page;
use crate::sweep::proofs;
use crate::table::Table;
use flashrig_config::{format_count, format_seconds, format_tokens, plural};
use flashrig_record::{FigureKind, FigureOf, MemoryBy, Sweep, SweepRow};

/// Settings that take more room than this are listed once, and numbers stand for combinations.
const NAME_WIDTH: usize = 44;

/// All tables.
pub fn tables(sweep: &Sweep, page: &mut Page) {
    let is_numbered = is_numbered(sweep);
    if is_numbered {
        page.title("Combinations");
        for row in &sweep.rows {
            let name = row_name(sweep, row);
            page.line(&format!("  {:>3}  {name}", row.combination));
        }
    }
    let named = || names(sweep, is_numbered);
    let figures: BTreeSet<FigureOf> = sweep
        .rows
        .iter()
        .flat_map(|row| row.figures.iter().filter(|f| f.value.is_some()))
        .map(|figure| figure.of)
        .filter(|of| !goes_without_saying(*of))
        .collect();
    let size = |of: &FigureOf| (of.context_tokens, of.sessions);
    let sizes: BTreeSet<_> = figures.iter().map(size).collect();
    for at in sizes {
        let of_size = figures.iter().filter(|of| size(of) == at);
        let table = of_size.fold(named(), |table, of| with_figure(sweep, table, *of));
        show(title(at.0, at.1), &table, page);
    }
    let table = of_the_server(sweep, named());
    show(Some("The server".to_owned()), &table, page);
    proofs::proofs(sweep, page);
}

/// Whether the settings that differ take too much room to name every row.
fn is_numbered(sweep: &Sweep) -> bool {
    let settings = sweep.spec.settings.iter();
    let varied = settings.filter(|setting| setting.values.len() > 1);
    let width = |text: &String| console::measure_text_width(text);
    let widths = varied.map(|setting| {
        let values = setting.values.iter().map(width).max();
        values.unwrap_or(0).max(width(&setting.name)) + 2
    });
    widths.sum::<usize>() > NAME_WIDTH
}

/// A table that names the combinations: the settings that differ, a column each, or numbers.
fn names(sweep: &Sweep, is_numbered: bool) -> Table<'_, SweepRow> {
    let table = Table::new(&sweep.rows);
    if is_numbered {
        return table.name("combination", |row| row.combination.to_string());
    }
    let settings = sweep.spec.settings.iter().enumerate();
    let varied = settings.filter(|(_, setting)| setting.values.len() > 1);
    varied.fold(table, |table, (index, setting)| {
        table.name(&setting.name, |row| {
            let text = row.settings.get(index).map_or("", String::as_str);
            text.split_once('=').map_or(text, |(_, v)| v).to_owned()
        })
    })
}

/// A figure, and its ratio to the first combination's.
fn with_figure<'s>(sweep: &Sweep, table: Table<'s, SweepRow>, of: FigureOf) -> Table<'s, SweepRow> {
    let figure = |row: &SweepRow| row.figures.iter().find(|figure| figure.of == of).copied();
    let table = table.group().figure(head(of.kind), 0, |row| {
        value(of.kind, figure(row).and_then(|f| f.value))
    });
    if !of.kind.has_ratio() {
        return table;
    }
    let table = table.figure("of first", 0, |row| match row.combination {
        1 => "1".to_owned(),
        _ => times(figure(row).and_then(|f| f.of_first.value)),
    });
    if sweep.spec.rounds == 1 {
        return table;
    }
    table.figure("95%", 0, |row| {
        let ci95 = figure(row).and_then(|f| f.of_first.ci95);
        ci95.map_or_else(unknown, |[low, high]| {
            format!("{} to {}", factor(low), factor(high))
        })
    })
}

/// Of one alone the worst is the only one, and beside nobody nothing is slowed down.
fn goes_without_saying(of: FigureOf) -> bool {
    let of_others = matches!(of.kind, FigureKind::TtftWorstS | FigureKind::WorstSlowdown);
    of_others && of.sessions == Some(1)
}

fn title(context: Option<u64>, sessions: Option<u32>) -> Option<String> {
    match (context, sessions) {
        (Some(tokens), Some(n)) => Some(format!(
            "{} at {}",
            plural(n, "session"),
            format_tokens(tokens)
        )),
        (Some(tokens), None) => Some(format!("{} context", format_tokens(tokens))),
        (None, Some(n)) => Some(plural(n, "request")),
        (None, None) => None,
    }
}

/// As many tables as the width asks for, each with the combinations' names.
fn show(title: Option<String>, table: &Table<SweepRow>, page: &mut Page) {
    page.gap();
    if let Some(title) = title {
        page.bold(&title);
    }
    for part in table.parts(page.view()) {
        page.table(&part);
        page.gap();
    }
}

fn head(kind: FigureKind) -> &'static str {
    match kind {
        FigureKind::TogetherS => "together",
        FigureKind::BackToBackS => "back to back",
        FigureKind::TogetherOverBackToBack => "over back to back",
        FigureKind::WorstSlowdown => "worst slowdown",
        FigureKind::DoneShare => "done",
        FigureKind::Fits => "sessions that fit",
        FigureKind::WarmTurnS => "warm turn",
        FigureKind::ColdTtftS => "cold TTFT",
        FigureKind::SideP95S => "side p95",
        FigureKind::SideTtftP95S => "side TTFT p95",
        FigureKind::TtftMedianS => "TTFT",
        FigureKind::TtftWorstS => "worst TTFT",
        FigureKind::TokensPerS => "tokens/s",
    }
}

fn value(kind: FigureKind, value: Option<f64>) -> String {
    let Some(value) = value else {
        return unknown();
    };
    match kind {
        FigureKind::TogetherS
        | FigureKind::BackToBackS
        | FigureKind::WarmTurnS
        | FigureKind::ColdTtftS
        | FigureKind::SideP95S
        | FigureKind::SideTtftP95S
        | FigureKind::TtftMedianS
        | FigureKind::TtftWorstS => format_seconds(value),
        FigureKind::TogetherOverBackToBack | FigureKind::WorstSlowdown => times(Some(value)),
        FigureKind::DoneShare => format!("{:.0}%", value * 100.0),
        FigureKind::Fits => format!("{value:.0}"),
        FigureKind::TokensPerS => format!("{value:.1}"),
    }
}

/// Memory, start and what was measured.
fn of_the_server<'s>(sweep: &Sweep, table: Table<'s, SweepRow>) -> Table<'s, SweepRow> {
    let by_server = |row: &SweepRow| row.peak_memory_by == Some(MemoryBy::Server);
    let memory = match sweep.rows.iter().any(by_server) {
        true => "peak memory (by its metrics)",
        false => "peak memory",
    };
    let contexts = |row: &SweepRow| contexts(sweep, row);
    let all: BTreeSet<Option<u64>> = sweep.rows.iter().flat_map(&contexts).collect();
    let table = table
        .group()
        .figure("measured", 0, |row| {
            let failed = match row.failed {
                0 => String::new(),
                n => format!(", {n} failed"),
            };
            format!("{} of {}{failed}", row.measured, sweep.spec.rounds)
        })
        .group()
        .known(memory, 0, |row| bytes(float(row.peak_memory_bytes)))
        .group();
    let table = match all.len() {
        0 | 1 => table,
        _ => table.figure("context", 0, |row| format_contexts(&contexts(row))),
    };
    table.group().known("start to ready", 0, |row| {
        seconds(row.ready_after_s.map(|s| s.0))
    })
}

/// The context lengths that a combination's servers had.
fn contexts(sweep: &Sweep, row: &SweepRow) -> BTreeSet<Option<u64>> {
    let units = sweep.units.iter();
    let units = units.filter(|unit| unit.combination == row.combination);
    units
        .filter_map(|unit| Some(unit.server.as_ref()?.context_tokens))
        .collect()
}

fn format_contexts(contexts: &BTreeSet<Option<u64>>) -> String {
    let message = |tokens: &Option<u64>| tokens.map_or_else(|| "unknown".to_owned(), format_count);
    match contexts.iter().map(message).collect::<Vec<_>>() {
        none if none.is_empty() => unknown(),
        all => all.join(", "),
    }
}
