//! The report of `fit` as the terminal shows it.

use std::fmt::Write as _;

use comfy_table::Table;
use console::Style;

use super::figures::{count, seconds, times};
use super::head::who_answered;
use super::server;
use super::text::new_table;
use flashrig_clock::Seconds;
use flashrig_config::format_tokens;
use flashrig_record::{
    Cell, CellReason, CellVerdict, LoadRun, LoadVerdict, Measured, RecallRule, RunState, Thresholds,
};

/// Width of the longest bar.
const BAR: f64 = 40.0;

/// Renders a run whose cells are judged.
pub fn text(run: &LoadRun) -> String {
    let mut out = String::new();
    head(run, &mut out);
    if run.measured.is_empty() {
        let _ = writeln!(out, "\nNothing was measured.");
    } else {
        if let Some(verdict) = &run.verdict {
            let _ = writeln!(out, "\n{}", Style::new().bold().apply_to(&verdict.answer));
        }
        for &context in &run.spec.contexts {
            let cells: Vec<&Cell> = run
                .cells
                .iter()
                .filter(|c| c.context_tokens == context)
                .collect();
            if !cells.is_empty() {
                of_context(run, context, &cells, &mut out);
            }
        }
        let _ = writeln!(out);
        let label = |m: &Measured| {
            let context = format_tokens(m.context_tokens);
            format!("{} at {context}", plural(m.sessions, "session"))
        };
        server::of_load(run, label, &mut out);
        if let Some(verdict) = &run.verdict {
            ending(verdict, &mut out);
        }
    }
    match (run.state, &run.stopped_because) {
        (RunState::Finished, _) => {}
        (RunState::Unfinished, _) => {
            let _ = writeln!(
                out,
                "The run is not sealed: it is still going on, or flashrig was killed \
                 (flashrig fit --resume with its folder goes on)."
            );
        }
        (_, because) => {
            let because = because
                .as_ref()
                .map_or_else(|| "for an unknown reason".to_owned(), ToString::to_string);
            let _ = writeln!(
                out,
                "Stopped early: {because} (flashrig fit --resume with its folder goes on)."
            );
        }
    }
    // Tables pad their last column.
    let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

fn head(run: &LoadRun, out: &mut String) {
    let server = &run.server;
    if server.simulated {
        let speed = server.speed.map_or_else(String::new, |s| {
            format!(" at speed {s}: all times are in its own seconds, {s} to a real one, and")
        });
        let made_up = if speed.is_empty() { ":" } else { "" };
        let _ = writeln!(
            out,
            "{} server{speed}{made_up} its speed is made up.",
            Style::new().yellow().bold().apply_to("SIMULATED"),
        );
    }
    who_answered(&run.command, server, out);
    let spec = &run.spec;
    let mut parts = vec![
        plural(spec.rounds, "round"),
        format!(
            "{} of {} tokens",
            plural(spec.checks, "warm turn"),
            spec.answer_tokens
        ),
    ];
    if spec.think_s > Seconds(0.0) {
        parts.push(format!("{} between turns", seconds(Some(spec.think_s.0))));
    }
    if spec.stagger_s > Seconds(0.0) {
        parts.push(format!("starts {} apart", seconds(Some(spec.stagger_s.0))));
    }
    parts.push(match spec.side {
        None => "no side requests".to_owned(),
        Some(side) if side.warm_rate_per_s > 0.0 => format!(
            "side requests during cold prefill and {}/s in warm turns",
            side.warm_rate_per_s
        ),
        Some(_) => "side requests during cold prefill".to_owned(),
    });
    parts.push(match spec.recall {
        RecallRule::AsAlone => "recall as one alone".to_owned(),
        RecallRule::Share(share) => format!("recall {:.0}%", share * 100.0),
        RecallRule::All => "recall all".to_owned(),
        RecallRule::Off => "recall not judged".to_owned(),
    });
    if spec.reset {
        parts.push("server reset before each combination".to_owned());
    }
    parts.push(format!("seed {}", spec.seed));
    parts.push(run.started_at.clone());
    let _ = writeln!(out, "{}", parts.join(" · "));
}

fn plural(n: u32, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

fn of_context(run: &LoadRun, context: u64, cells: &[&Cell], out: &mut String) {
    let title = format!("{} context", format_tokens(context));
    let _ = writeln!(out, "\n{}", Style::new().bold().apply_to(title));
    let _ = writeln!(out, "{}\n", speed_table(cells));
    let _ = writeln!(out, "{}", other_table(run, cells));
    bars(cells, run.spec.thresholds, out);
    let mut said = false;
    for cell in cells {
        // The warnings below say once for all where the client was the bottleneck.
        let reported = |reason: &&CellReason| {
            !matches!(
                reason,
                CellReason::ClientBottleneck { .. } | CellReason::BaselineBottleneck { .. }
            )
        };
        if cell.reasons.iter().any(|r| reported(&r)) && !std::mem::replace(&mut said, true) {
            let _ = writeln!(out);
        }
        for reason in cell.reasons.iter().filter(reported) {
            let _ = writeln!(out, "  {}: {reason}", plural(cell.sessions, "session"));
        }
    }
}

fn speed_table(cells: &[&Cell]) -> Table {
    let mut table = new_table(
        &[
            "sessions",
            "verdict",
            "slowdown",
            "95%",
            "median",
            "growth",
            "turn",
            "tok/s each",
            "tok/s all",
        ],
        2,
        &[],
    );
    for cell in cells {
        let slowdown = &cell.slowdown;
        let interval = slowdown.ci95.filter(|_| cell.sessions > 1);
        table.add_row([
            cell.sessions.to_string(),
            cell.verdict.label().to_owned(),
            times(slowdown.worst),
            interval.map_or_else(
                || "–".to_owned(),
                |[low, high]| format!("{low:.2}–{high:.2}"),
            ),
            times(slowdown.median),
            times(cell.growth),
            of_seconds(cell.turn_s),
            speed(cell.decode_tokens_per_s),
            speed(cell.total_tokens_per_s),
        ]);
    }
    table
}

fn other_table(run: &LoadRun, cells: &[&Cell]) -> Table {
    let of = |cell: &Cell| {
        let key = (cell.context_tokens, cell.sessions);
        run.measured
            .iter()
            .filter(move |m| (m.context_tokens, m.sessions) == key)
    };
    let in_line = |cell: &Cell| server::most(of(cell), |watched| watched.max_waiting);
    let has_line = cells.iter().any(|c| in_line(c).is_some());
    let has_processes = cells.iter().any(|c| server::process_memory(of(c)) != "–");
    let has_memory = cells.iter().any(|c| c.peak_memory_bytes.is_some());
    let has_side = cells.iter().any(|c| c.side.is_some());
    let mut head = vec!["sessions", "cold first token", "worst", "warm"];
    if has_line {
        head.push("most in line");
    }
    // Where others came in warm turns, those that had to wait for a prefill would drown.
    let is_mixed = cells.iter().any(|c| c.side != c.side_during_cold);
    if has_side {
        head.extend(["side p50", "p95", "max", "over 60 s"]);
    }
    if is_mixed {
        head.push("p95 in cold phase");
    }
    head.extend(["recall", "refused", "cached"]);
    if has_memory {
        head.push("memory");
    }
    if has_processes {
        head.push("process memory");
    }
    let mut table = new_table(&head, 1, &[]);
    for cell in cells {
        let mut row = vec![
            cell.sessions.to_string(),
            of_seconds(cell.ttft_cold_s),
            of_seconds(cell.ttft_cold_worst_s),
            of_seconds(cell.ttft_warm_s),
        ];
        if has_line {
            row.push(count(in_line(cell)));
        }
        if has_side {
            row.extend(match cell.side {
                None => ["–"; 4].map(str::to_owned),
                Some(side) => [
                    of_seconds(side.p50_s),
                    of_seconds(side.p95_s),
                    of_seconds(side.max_s),
                    format!("{} of {}", side.over_60s, side.n),
                ],
            });
        }
        if is_mixed {
            row.push(of_seconds(cell.side_during_cold.and_then(|s| s.p95_s)));
        }
        row.push(
            cell.recall
                .map_or_else(|| "–".to_owned(), |r| format!("{} of {}", r.right, r.asked)),
        );
        row.push(refused(cell));
        row.push(
            cell.cached_share
                .map_or_else(|| "–".to_owned(), |s| format!("{:.0}%", s * 100.0)),
        );
        if has_memory {
            row.push(memory(cell.peak_memory_bytes));
        }
        if has_processes {
            row.push(server::process_memory(of(cell)));
        }
        table.add_row(row);
    }
    table
}

/// What the client saw, and what the server told where that is known.
fn refused(cell: &Cell) -> String {
    match (cell.refused.client, cell.refused.server) {
        (None, _) => "–".to_owned(),
        (Some(seen), None) => seen.to_string(),
        (Some(seen), Some(reported)) => format!("{seen} (server: {reported})"),
    }
}

fn of_seconds(value: Option<Seconds>) -> String {
    seconds(value.map(|s| s.0))
}

fn speed(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |v| format!("{v:.1}"))
}

fn memory(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "–".to_owned(), |b| format!("{:.1} GB", b as f64 / 1e9))
}

/// Slowdown as bars, with the thresholds as dotted lines.
fn bars(cells: &[&Cell], limits: Thresholds, out: &mut String) {
    let known: Vec<(&Cell, f64)> = cells
        .iter()
        .filter_map(|c| Some((*c, c.slowdown.worst?)))
        .collect();
    if known.len() < 2 {
        return;
    }
    let most = known.iter().map(|(_, w)| *w).fold(limits.fail, f64::max);
    let column = |value: f64| (value / most * BAR).round() as usize;
    let marks = [column(limits.pass), column(limits.fail)];
    let _ = writeln!(out);
    for (cell, worst) in known {
        let end = column(worst);
        let bar: String = (1..=column(most).max(end))
            .map(|at| match at {
                at if at <= end && marks.contains(&at) => '▓',
                at if at <= end => '█',
                at if marks.contains(&at) => '┊',
                _ => ' ',
            })
            .collect();
        let style = match cell.verdict {
            CellVerdict::Pass => Style::new().green(),
            CellVerdict::Warn | CellVerdict::Inconclusive => Style::new().yellow(),
            _ => Style::new().red(),
        };
        let _ = writeln!(
            out,
            "  {:>8}  {} {}",
            cell.sessions,
            style.apply_to(bar),
            times(Some(worst))
        );
    }
    let _ = writeln!(
        out,
        "            ┊ at {:.2} and {:.2} times the time alone",
        limits.pass, limits.fail
    );
}

fn ending(verdict: &LoadVerdict, out: &mut String) {
    for warning in &verdict.warnings {
        let _ = writeln!(out, "  mind: {warning}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::fit::{cells, verdict};
    use flashrig_record::testing::{K32, K256, fit_run as run, measured};
    use flashrig_record::{CellStop, LeftOut, LeftOutReason, StopKind};

    fn judged(mut run: LoadRun) -> String {
        run.cells = cells(&run);
        run.verdict = Some(verdict(&run, &run.cells));
        text(&run)
    }

    fn refused(context: u64, sessions: usize) -> Measured {
        let mut refused = measured(1, context, &vec![1.0; sessions]);
        for lane in &mut refused.lanes {
            lane.turns.clear();
        }
        refused.warm_span_s = None;
        refused.stopped = Some(CellStop {
            kind: StopKind::Refused,
            reason: flashrig_record::testing::said("s2's first turn was refused: no room"),
        });
        refused
    }

    #[test]
    fn a_grid_with_a_refused_size() {
        let mut run = run(&[K32, K256], &[1, 2, 3], 2);
        for round in 1..=2 {
            let f = f64::from(round);
            run.measured.push(measured(round, K32, &[10.0]));
            run.measured
                .push(measured(round, K32, &[17.4 + 0.1 * f, 17.0]));
            run.measured
                .push(measured(round, K32, &[23.7, 23.7, 23.0 + 0.1 * f]));
            run.measured.push(measured(round, K256, &[10.3]));
        }
        run.measured.push(refused(K256, 2));
        run.left_out = (1..=2)
            .map(|round| LeftOut {
                round: Some(round),
                context_tokens: K256,
                sessions: 3,
                reason: LeftOutReason::ServerRefused { at_sessions: 2 },
            })
            .collect();
        insta::assert_snapshot!(judged(run));
    }

    #[test]
    fn a_killed_run_says_how_to_go_on() {
        let mut run = run(&[K32], &[1, 2], 1);
        run.state = RunState::Unfinished;
        run.measured.push(measured(1, K32, &[10.0]));
        let reported = judged(run);
        assert!(
            reported.contains("flashrig fit --resume with its folder goes on"),
            "{reported}"
        );
        assert!(
            reported.contains("2 sessions: not measured: the run ended before"),
            "{reported}"
        );
    }
}
