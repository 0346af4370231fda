//! The report of `ttft` as the terminal shows it.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};
use console::Style;

use super::figures::count;
use super::head::{reset_before, who_answered};
use super::server;
use flashrig_clock::Seconds;
use flashrig_config::{format_seconds, format_tokens};
use flashrig_record::{LoadRun, RunState, TtftRow};

/// Renders a run.
pub fn text(run: &LoadRun) -> String {
    let mut out = String::new();
    head(run, &mut out);
    if run.ttft.is_empty() {
        let _ = writeln!(out, "\nNothing was measured.");
    } else {
        let _ = writeln!(out, "\n{}\n", table(run));
        server::of_load(run, |m| format!("{} at once", m.sessions), &mut out);
    }
    if let Some(verdict) = &run.verdict {
        let _ = writeln!(out, "{}", verdict.answer);
        for warning in &verdict.warnings {
            let _ = writeln!(out, "  mind: {warning}");
        }
    }
    let ending = match run.state {
        RunState::Finished => None,
        RunState::Unfinished => Some("This run is still going on, or flashrig was killed."),
        RunState::Interrupted => Some("Stopped before everything was measured."),
        RunState::Failed => Some("The run ended early; what was measured stands above."),
    };
    if let Some(message) = ending {
        let _ = writeln!(out, "{}", Style::new().bold().apply_to(message));
    }
    // Tables pad their last column.
    let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

fn head(run: &LoadRun, out: &mut String) {
    let server = &run.server;
    if server.simulated {
        let mark = Style::new().yellow().bold().apply_to("SIMULATED");
        let message = match server.speed {
            Some(speed) => {
                format!("at speed {speed}: its speed is made up, and times are its own seconds")
            }
            None => {
                "whose speed is not known here: it is made up, and times are wall time".to_owned()
            }
        };
        let _ = writeln!(out, "{mark} server {message}.");
    }
    who_answered(&run.command, server, out);
    let spec = &run.spec;
    let size = spec.contexts.first().copied().unwrap_or(0);
    let long = spec.long_tokens.map_or_else(String::new, |tokens| {
        format!(", one of {} among them", format_tokens(tokens))
    });
    let alike = if spec.shared_prefix {
        "beginning alike"
    } else {
        "unlike from the first line"
    };
    let rounds = spec.rounds;
    let _ = writeln!(
        out,
        "prompts of {} tokens{long}, {alike} · answers of {} · {rounds} round{}{} · {}",
        format_tokens(size),
        spec.answer_tokens,
        if rounds == 1 { "" } else { "s" },
        reset_before(spec.reset, "number"),
        run.started_at,
    );
}

fn table(run: &LoadRun) -> Table {
    let with_long = run.spec.long_tokens.is_some();
    let mut head = vec![
        "at once",
        "first token",
        "worst",
        "spread",
        "answered",
        "all",
        "tokens in",
        "cached",
        "out",
        "tokens/s",
    ];
    if with_long {
        head.insert(4, "long one");
    }
    let in_line = |row: &TtftRow| {
        let own = run.measured.iter().filter(|m| m.sessions == row.agents);
        server::most(own, |watched| watched.max_waiting)
    };
    let processes = |row: &TtftRow| {
        let own = run.measured.iter().filter(|m| m.sessions == row.agents);
        server::process_memory(own)
    };
    // Beside the times that it explains.
    let with_line = run.ttft.iter().any(|row| in_line(row).is_some());
    if with_line {
        head.insert(4, "most in line");
    }
    let with_memory = run.ttft.iter().any(|row| processes(row) != "–");
    if with_memory {
        head.push("process memory");
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(head);
    for row in &run.ttft {
        let mut cells = cells(row, with_long);
        if with_line {
            cells.insert(4, count(in_line(row)));
        }
        if with_memory {
            cells.push(processes(row));
        }
        table.add_row(cells);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((if index == 0 { 2 } else { 1 }, 1));
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn cells(row: &TtftRow, with_long: bool) -> Vec<String> {
    let spread = row.ttft_s;
    let time =
        |value: Option<Seconds>| value.map_or_else(|| "–".to_owned(), |s| format_seconds(s.0));
    let tokens = |value: Option<u64>| count(value.map(|n| n as f64));
    let cached = row
        .cached_tokens
        .zip(row.input_tokens.filter(|n| *n > 0))
        .map_or_else(
            || "–".to_owned(),
            |(cached, all)| format!("{:.0}%", 100.0 * cached as f64 / all as f64),
        );
    let mut cells = vec![
        row.agents.to_string(),
        time(spread.map(|s| s.median)),
        time(spread.map(|s| s.worst)),
        time(spread.map(|s| s.spread)),
        format!("{}/{}", row.answered, row.asked),
        time(row.wall_s),
        tokens(row.input_tokens),
        cached,
        tokens(row.output_tokens),
        row.tokens_per_s
            .map_or_else(|| "–".to_owned(), |speed| format!("{speed:.1}")),
    ];
    if with_long {
        cells.insert(4, time(row.long_ttft_s));
    }
    cells
}
