//! The report of `sweep` as the terminal shows it.

mod proofs;
mod tables;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use console::Style;

use super::figures::count;
use crate::head;
use flashrig_record::{RunState, Sweep, UnitServer};
use tables::tables;

/// Columns of a terminal that everybody has.
const WIDTH: usize = 100;
/// Words of faults that are shown of each combination; the record has all.
const FAULTS_SHOWN: usize = 4;

/// Renders a judged sweep.
pub fn text(sweep: &Sweep) -> String {
    let mut out = String::new();
    head(sweep, &mut out);
    let verdict = sweep.verdict.as_ref();
    if sweep.units.is_empty() {
        let _ = writeln!(out, "\nNothing was measured.");
    } else {
        let _ = writeln!(out);
        for sentence in verdict.iter().flat_map(|v| &v.answer) {
            let _ = writeln!(out, "{}", Style::new().bold().apply_to(sentence));
        }
        tables(sweep, &mut out);
        faults(sweep, &mut out);
        let warnings = verdict.map(|v| v.warnings.as_slice()).unwrap_or_default();
        if !warnings.is_empty() {
            let _ = writeln!(out);
        }
        for warning in warnings {
            let _ = writeln!(out, "  mind: {warning}");
        }
    }
    let again = "(flashrig sweep --resume with its folder goes on)";
    match (sweep.state, &sweep.stopped_because) {
        (RunState::Finished, _) => {}
        (RunState::Unfinished, _) => {
            let _ = writeln!(
                out,
                "The sweep is not finished: it goes on, or flashrig was killed {again}."
            );
        }
        (_, because) => {
            let because = because
                .as_ref()
                .map_or_else(|| "for an unknown reason".to_owned(), ToString::to_string);
            let _ = writeln!(out, "Stopped early: {because} {again}.");
        }
    }
    // Tables pad their last column.
    let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

fn head(sweep: &Sweep, out: &mut String) {
    let spec = &sweep.spec;
    let server = sweep.units.iter().find_map(|unit| unit.server.as_ref());
    if let Some(server) = server.filter(|server| server.simulated) {
        let mark = Style::new().yellow().bold().apply_to("SIMULATED");
        let message = match server.speed {
            Some(speed) if spec.measures == "pair" => {
                format!("at speed {speed}: agents and their work are real; its speed is made up")
            }
            Some(speed) => {
                format!("at speed {speed}: its speed is made up, and times are its own seconds")
            }
            None => "whose speed is made up".to_owned(),
        };
        let _ = writeln!(out, "{mark} server {message}.");
    }
    let name = Style::new().bold().apply_to("flashrig");
    let who = server.map_or_else(|| format!("{} unknown", spec.server), |s| who(sweep, s));
    let _ = writeln!(out, "{name} sweep · {who}");
    let _ = writeln!(out, "measuring: {}", command(sweep));
    let fixed: Vec<String> = spec
        .settings
        .iter()
        .filter(|setting| setting.values.len() == 1)
        .filter_map(|setting| Some(format!("{}={}", setting.name, setting.values.first()?)))
        .collect();
    let combinations = spec.combinations.len();
    let mut parts = vec![format!(
        "{combinations} combinations{} × {}",
        if spec.one_at_a_time {
            " (one setting at a time)"
        } else {
            ""
        },
        if spec.rounds == 1 {
            "1 round".to_owned()
        } else {
            format!("{} rounds", spec.rounds)
        }
    )];
    if !fixed.is_empty() {
        parts.push(format!("always {}", fixed.join(", ")));
    }
    let _ = writeln!(out, "{}", parts.join(" · "));
    let (seed, time) = (spec.seed, &sweep.started_at);
    let _ = writeln!(
        out,
        "server started anew for each · order by seed {seed} · {time}"
    );
}

/// The measured command with what the sweep added to it.
fn command(sweep: &Sweep) -> String {
    let spec = &sweep.spec;
    let message = spec.command.iter().chain(&spec.added);
    shell_words::join(message)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "context lengths are far below 2^53"
)]
fn who(sweep: &Sweep, server: &UnitServer) -> String {
    let version = server.version.as_deref().unwrap_or("version unknown");
    let known: BTreeSet<Option<u64>> = sweep
        .units
        .iter()
        .filter_map(|unit| Some(unit.server.as_ref()?.context_tokens))
        .collect();
    let context = match (known.len(), server.context_tokens) {
        (1, None) => "context unknown".to_owned(),
        (1, Some(n)) => format!("context {}", count(Some(n as f64))),
        _ => "context not always the same".to_owned(),
    };
    format!(
        "model {} · {} {version} · {context}",
        head::file_name(&server.model),
        sweep.spec.server
    )
}

fn faults(sweep: &Sweep, out: &mut String) {
    let mut said = false;
    for row in sweep.rows.iter().filter(|row| !row.faults.is_empty()) {
        if !std::mem::replace(&mut said, true) {
            let _ = writeln!(out);
        }
        for fault in row.faults.iter().take(FAULTS_SHOWN) {
            let _ = writeln!(
                out,
                "  {}: {fault}",
                crate::judge::sweep::row_name(sweep, row)
            );
        }
        let more = row.faults.len().saturating_sub(FAULTS_SHOWN);
        if more > 0 {
            let _ = writeln!(out, "    and {more} more, in run.json");
        }
    }
}

/// A line of progress for a unit that came to its end.
pub fn left(units: usize, seconds: f64) -> String {
    match units {
        0 => "nothing left".to_owned(),
        _ if seconds < 60.0 => format!("about {:.0} s left", seconds.ceil()),
        _ if seconds < 5400.0 => format!("about {:.0} min left", seconds / 60.0),
        _ => format!("about {:.1} h left", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests;
