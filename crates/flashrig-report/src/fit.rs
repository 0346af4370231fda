//! The report of `fit`.

use console::Style;

use super::figures::{bytes, count, float, interval, percent, rate, seconds, times, unknown};
use super::head::{
    self, ending, head, made_up, model_and_context, reset_before, rounds, simulated, unfinished,
};
use super::page::Page;
use super::server;
use super::table::Table;
use super::view::View;
use flashrig_clock::Seconds;
use flashrig_config::{format_tokens, plural};
use flashrig_record::{
    Cell, CellReason, CellVerdict, LoadRun, LoadVerdict, LoadWarning, Measured, RecallRule,
    SideFigures, Thresholds,
};

/// Width of the longest bar.
const BAR: f64 = 40.0;

/// Renders a run whose cells are judged.
pub fn text(run: &LoadRun, verdict: &LoadVerdict, view: View) -> String {
    let mut page = Page::new(view);
    head(
        &mut page,
        &answer(run, verdict),
        &conditions(run),
        &settings(run),
    );
    if !run.measured.is_empty() {
        for &context in &run.spec.contexts {
            let cells = run.cells.iter().filter(|c| c.context_tokens == context);
            let cells: Vec<&Cell> = cells.collect();
            if !cells.is_empty() {
                of_context(run, context, &cells, &mut page);
            }
        }
        page.gap();
        let label = |m: &Measured| {
            let context = format_tokens(m.context_tokens);
            format!("{} at {context}", plural(m.sessions, "session"))
        };
        server::of_load(run, label, &mut page);
        page.gap();
        // The first line says that there was one round.
        let notes = verdict.warnings.iter();
        page.notes(notes.filter(|note| **note != LoadWarning::OneRound));
    }
    let because = run.stopped_because.as_ref().map(ToString::to_string);
    ending(&mut page, run.state, because.as_deref(), Some("fit"));
    page.text()
}

/// How much was measured, and how many sessions fit.
fn answer(run: &LoadRun, verdict: &LoadVerdict) -> Vec<String> {
    let mut parts: Vec<String> = unfinished(run.state).into_iter().collect();
    if run.measured.is_empty() {
        parts.push("nothing was measured".to_owned());
        return parts;
    }
    let is_measured = |cell: &&Cell| cell.verdict != CellVerdict::Unknown;
    let measured = run.cells.iter().filter(is_measured).count();
    parts.push(format!("{measured} of {} measured", run.cells.len()));
    parts.push(verdict.answer.clone());
    let compared = run.cells.iter().filter(|cell| cell.sessions > 1);
    let compared = compared.map(|cell| cell.slowdown.n).max();
    parts.extend(rounds(
        compared.unwrap_or(0),
        run.spec.rounds,
        run.spec.auto_rounds,
    ));
    parts
}

fn conditions(run: &LoadRun) -> Vec<String> {
    vec![
        run.command.clone(),
        head::server_of_run(&run.server),
        "synthetic sessions".to_owned(),
        head::planned(run.spec.rounds, run.spec.auto_rounds),
    ]
}

fn settings(run: &LoadRun) -> Vec<String> {
    let spec = &run.spec;
    let mut parts: Vec<String> = made_up(simulated(&run.server), &run.command)
        .into_iter()
        .collect();
    parts.extend(model_and_context(&run.server));
    parts.push(format!(
        "{} of {} after the first",
        plural(spec.checks, "warm turn"),
        plural(spec.answer_tokens, "token")
    ));
    if spec.think_s > Seconds(0.0) {
        parts.push(format!("{} between turns", of_seconds(Some(spec.think_s))));
    }
    if spec.stagger_s > Seconds(0.0) {
        parts.push(format!("starts {} apart", of_seconds(Some(spec.stagger_s))));
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
        RecallRule::AsAlone => "recall as good as alone".to_owned(),
        RecallRule::Share(share) => format!("recall at least {:.0}%", share * 100.0),
        RecallRule::All => "recall of every fact".to_owned(),
        RecallRule::Off => "recall not judged".to_owned(),
    });
    parts.extend(reset_before(spec.reset, "combination"));
    parts.push(format!("seed {}", spec.seed));
    parts.push(run.started_at.clone());
    parts
}

fn of_context(run: &LoadRun, context: u64, cells: &[&Cell], page: &mut Page) {
    page.title(&format!("{} context", format_tokens(context)));
    page.table(&speed_table(cells));
    page.gap();
    page.table(&other_table(run, cells));
    bars(cells, run.spec.thresholds, page);
    page.gap();
    for cell in cells {
        // The notes below say once for all where the client was the bottleneck.
        let is_noted = |reason: &&CellReason| {
            matches!(
                reason,
                CellReason::ClientBottleneck { .. } | CellReason::BaselineBottleneck { .. }
            )
        };
        for reason in cell.reasons.iter().filter(|reason| !is_noted(reason)) {
            page.line(&format!("  {}: {reason}", plural(cell.sessions, "session")));
        }
    }
}

fn speed_table<'c>(cells: &'c [&Cell]) -> Table<'c, &'c Cell> {
    Table::new(cells)
        .name("sessions", |c| c.sessions.to_string())
        .words("verdict", 0, |c| c.verdict.label().to_owned())
        .figure("slowdown", 0, |c| times(c.slowdown.worst))
        .figure("95%", 1, |c| {
            interval(c.slowdown.ci95.filter(|_| c.sessions > 1))
        })
        .figure("median", 3, |c| times(c.slowdown.median))
        .figure("turn", 0, |c| of_seconds(c.turn_s))
        .figure("tokens/s each", 1, |c| rate(c.decode_tokens_per_s))
        .figure("tokens/s all", 1, |c| rate(c.total_tokens_per_s))
        .figure("vs alone", 2, |c| times(c.growth))
}

fn other_table<'c>(run: &LoadRun, cells: &'c [&Cell]) -> Table<'c, &'c Cell> {
    let of = |cell: &Cell| {
        let key = (cell.context_tokens, cell.sessions);
        let all = run.measured.iter();
        all.filter(move |m| (m.context_tokens, m.sessions) == key)
    };
    let side = |cell: &Cell, shown: &dyn Fn(&SideFigures) -> String| {
        cell.side.as_ref().map_or_else(unknown, shown)
    };
    // Where side requests came in warm turns too, those that waited for a prefill would drown.
    let is_mixed = cells.iter().any(|c| c.side != c.side_during_cold);
    let cold_p95 = |cell: &Cell| cell.side_during_cold.filter(|_| is_mixed)?.p95_s;
    Table::new(cells)
        .name("sessions", |c| c.sessions.to_string())
        .figure("cold TTFT", 0, |c| of_seconds(c.ttft_cold_s))
        .figure("worst", 0, |c| of_seconds(c.ttft_cold_worst_s))
        .figure("warm TTFT", 0, |c| of_seconds(c.ttft_warm_s))
        .known("most in queue", 2, |c| {
            count(server::most(of(c), |watched| watched.max_waiting))
        })
        .known("side TTFT p50", 3, |c| {
            side(c, &|s| of_seconds(s.ttft_p50_s))
        })
        .known("side TTFT p95", 2, |c| {
            side(c, &|s| of_seconds(s.ttft_p95_s))
        })
        .known("side p50", 3, |c| side(c, &|s| of_seconds(s.p50_s)))
        .known("side p95", 1, |c| side(c, &|s| of_seconds(s.p95_s)))
        .known("side max", 3, |c| side(c, &|s| of_seconds(s.max_s)))
        .known("over 60 s", 4, |c| {
            side(c, &|s| format!("{} of {}", s.over_60s, s.n))
        })
        .known("side p95 in cold phase", 2, |c| of_seconds(cold_p95(c)))
        .figure("recall", 0, |c| {
            let told = |r: flashrig_record::Recall| format!("{} of {}", r.right, r.asked);
            c.recall.map_or_else(unknown, told)
        })
        .figure("refused", 0, |c| refused(c))
        .figure("cached", 1, |c| percent(c.cached_share))
        .known("memory", 2, |c| bytes(float(c.peak_memory_bytes)))
        .known("process memory", 2, |c| server::process_memory(of(c)))
}

/// What the client saw, and what the server counted where that is known and different.
fn refused(cell: &Cell) -> String {
    match (cell.refused.client, cell.refused.server) {
        (None, _) => unknown(),
        (Some(seen), Some(counted)) if counted != seen => format!("{seen} (server: {counted})"),
        (Some(seen), _) => seen.to_string(),
    }
}

fn of_seconds(value: Option<Seconds>) -> String {
    seconds(value.map(|s| s.0))
}

/// Slowdown as bars, with the thresholds as dotted lines.
fn bars(cells: &[&Cell], limits: Thresholds, page: &mut Page) {
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
    page.gap();
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
            CellVerdict::PassOrWarn | CellVerdict::Warn | CellVerdict::Inconclusive => {
                Style::new().yellow()
            }
            _ => Style::new().red(),
        };
        page.line(&format!(
            "  {:>8}  {} {}",
            cell.sessions,
            style.apply_to(bar),
            times(Some(worst))
        ));
    }
    page.line(&format!(
        "            ┊ at {:.2} and {:.2} times the time alone",
        limits.pass, limits.fail
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::fit::{cells, verdict};
    use flashrig_record::testing::{K32, K256, fit_run as run, measured};
    use flashrig_record::{CellStop, LeftOut, LeftOutReason, RunState, StopKind};

    fn judged(mut run: LoadRun) -> String {
        run.cells = cells(&run);
        run.verdict = Some(verdict(&run, &run.cells));
        let verdict = run.verdict.clone().unwrap();
        text(&run, &verdict, View::default())
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
            reported.contains("flashrig fit --resume FOLDER goes on with it"),
            "{reported}"
        );
        assert!(
            reported.contains("2 sessions: not measured: the run ended before"),
            "{reported}"
        );
    }
}
