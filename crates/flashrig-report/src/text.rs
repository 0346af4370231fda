//! The report as the terminal shows it.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};
use console::Style;

use super::figures::{count, middle, part, ratio, seconds, sessions, shown_rounds, times};
use super::head::{project_files, reset_before, who_answered};
use super::makespans::makespans;
use super::{prefix, probes, server};
use crate::judge::egress;
use flashrig_record::{
    ArmKind, CachePolicy, Functional, Run, RunState, Session, Status, TimeVerdict, Verdict,
};

/// Renders a run. `width` bounds the lines of prose.
pub fn text(run: &Run) -> String {
    let mut out = String::new();
    whole(run, &mut out);
    // Tables pad their last column.
    let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

fn whole(run: &Run, out: &mut String) {
    head(run, out);
    if run.rounds.is_empty() {
        let _ = writeln!(out, "\nNothing was measured.");
        ending(run, out);
        return;
    }
    let _ = writeln!(out, "\n{}", summary_table(run));
    let _ = writeln!(
        out,
        "\nWhere the time went{}\n{}",
        over_rounds(run),
        split_table(run)
    );
    let _ = writeln!(
        out,
        "\nWhat was done{}\n{}",
        over_rounds(run),
        work_table(run)
    );
    let _ = writeln!(out);
    server::of_pair(run, out);
    makespans(run, out);
    prefix::lines(run, out);
    probes::line(run, out);
    match &run.verdict {
        Some(verdict) => verdicts(run, verdict, out),
        // The verdict's warnings say it otherwise.
        None => {
            for line in egress(run) {
                let _ = writeln!(out, "  mind: {line}");
            }
        }
    }
    ending(run, out);
}

fn head(run: &Run, out: &mut String) {
    let server = &run.server;
    if server.simulated {
        let speed = server
            .speed
            .map_or_else(String::new, |s| format!(" at speed {s}"));
        let _ = writeln!(
            out,
            "{} server{speed}: the agents, their work and the checks are real; the server's speed is \
             made up.",
            Style::new().yellow().bold().apply_to("SIMULATED"),
        );
    }
    who_answered(&run.command, server, out);
    project_files(&run.spec.sessions, out);
    let cache = match run.spec.cache {
        CachePolicy::Cold => "cold cache (a nonce per session)",
        CachePolicy::Warm => "warm cache",
        CachePolicy::Keep => "cache as found",
    };
    let gate = run.spec.gate.map_or_else(String::new, |gate| {
        format!(
            " · gated arm: {} at once, {}",
            gate.limit,
            gate.order.label()
        )
    });
    let cap = run.spec.max_prompt_tokens.map_or_else(String::new, |n| {
        format!(" · prompts up to {} tokens", count(Some(n as f64)))
    });
    let rounds = run.spec.rounds;
    let prefix = prefix::setting(run);
    let reset = reset_before(run.spec.reset, "arm");
    let _ = writeln!(
        out,
        "{rounds} round{} · {cache}{reset}{gate}{cap}{prefix} · contained by {} · {}",
        if rounds == 1 { "" } else { "s" },
        run.rig.sandbox,
        run.started_at,
    );
}

fn over_rounds(run: &Run) -> String {
    let (shown, all) = (shown_rounds(run).len(), run.rounds.len());
    match (shown, all) {
        _ if run.rounds.iter().all(|r| !r.valid) => " (no round is valid)".to_owned(),
        (1, 1) => String::new(),
        (shown, all) if shown == all => format!(" (median of {shown} rounds)"),
        (shown, all) => format!(" (median of {shown} valid rounds of {all})"),
    }
}

/// A table without lines; columns from `left` on are figures, but for those in `words`.
pub(super) fn new_table(head: &[&str], left: usize, message: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(head);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((if index == 0 { 2 } else { 1 }, 1));
        if index >= left && !message.contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn summary_table(run: &Run) -> Table {
    let gated = run.spec.gate.is_some();
    let mut head = vec![
        "session", "agent", "alone", "together", "slowdown", "result",
    ];
    if gated {
        head.insert(5, "gated");
    }
    let mut table = new_table(&head, 2, &[head.len() - 1]);
    for spec in &run.spec.sessions {
        let slowdown = run
            .verdict
            .as_ref()
            .and_then(|v| v.sessions.iter().find(|s| s.id == spec.id))
            .map_or_else(|| times(None), |s| ratio(&s.slowdown));
        let wall = |kind| {
            seconds(middle(&sessions(run, kind, &spec.id), |s| {
                s.wall_s.map(|w| w.0)
            }))
        };
        let version = spec.agent.version.as_deref().unwrap_or("");
        let mut row = vec![
            spec.id.clone(),
            format!("{} {version}", spec.agent.name)
                .trim_end()
                .to_owned(),
            wall(ArmKind::BackToBack),
            wall(ArmKind::Together),
            slowdown,
            result(run, &spec.id),
        ];
        if gated {
            row.insert(5, wall(ArmKind::Gated));
        }
        table.add_row(row);
    }
    table
}

/// How the sessions of one name went over all rounds, the invalid ones too.
fn result(run: &Run, id: &str) -> String {
    let all: Vec<_> = named(run, id).collect();
    let mark = if all.iter().any(|s| s.tried_to_leave) {
        ", tried to leave the machine"
    } else {
        ""
    };
    format!("{}{mark}", how_it_went(&all))
}

/// The sessions of one name in every round and arm.
fn named<'r>(run: &'r Run, id: &'r str) -> impl Iterator<Item = &'r Session> {
    run.rounds
        .iter()
        .flat_map(|r| &r.arms)
        .flat_map(|a| &a.sessions)
        .filter(move |s| s.id == id)
}

fn how_it_went(all: &[&Session]) -> String {
    let done = all
        .iter()
        .filter(|s| s.failures.is_empty() && s.status.is_completed())
        .count();
    match all
        .iter()
        .find(|s| !s.failures.is_empty() || !s.status.is_completed())
    {
        None if all.is_empty() => "–".to_owned(),
        Some(s) if s.status.is_completed() && !s.verified => {
            format!("{done} of {} done, not all verified", all.len())
        }
        None if all.iter().any(|s| s.status == Status::CompletedNoExit) => {
            "done, did not exit".to_owned()
        }
        None => "done".to_owned(),
        Some(s) if s.status.is_completed() => format!("{done} of {} done", all.len()),
        Some(s) => format!("{done} of {} done, {}", all.len(), s.status.label()),
    }
}

/// A row for each session alone, together and, where that ran, gated: its names, then what `cells`
/// makes of it.
fn every_arm(run: &Run, table: &mut Table, cells: impl Fn(&[&Session]) -> Vec<String>) {
    for spec in &run.spec.sessions {
        for (kind, name, arm) in [
            (ArmKind::BackToBack, spec.id.as_str(), "alone"),
            (ArmKind::Together, "", "together"),
            (ArmKind::Gated, "", "gated"),
        ] {
            if kind == ArmKind::Gated && run.spec.gate.is_none() {
                continue;
            }
            let names = [name.to_owned(), arm.to_owned()];
            table.add_row(
                names
                    .into_iter()
                    .chain(cells(&sessions(run, kind, &spec.id))),
            );
        }
    }
}

fn split_table(run: &Run) -> Table {
    let gated = run.spec.gate.is_some();
    let mut head = vec![
        "session", "arm", "startup", "waiting", "decoding", "between", "back-off", "exit",
    ];
    if gated {
        head.insert(3, "gate");
    }
    let mut table = new_table(&head, 2, &[]);
    every_arm(run, &mut table, |items| {
        let mut cells = vec![
            seconds(part(items, |s| s.startup_s.0)),
            seconds(part(items, |s| s.waiting_s.0)),
            seconds(part(items, |s| s.decoding_s.0)),
            seconds(part(items, |s| s.between_s.0)),
            seconds(part(items, |s| s.backoff_s.0)),
            seconds(part(items, |s| s.exit_s.0)),
        ];
        if gated {
            cells.insert(1, seconds(part(items, |s| s.gate_s.0)));
        }
        cells
    });
    table
}

fn work_table(run: &Run) -> Table {
    let head = [
        "session",
        "arm",
        "requests",
        "side",
        "tokens in",
        "cached",
        "out",
        "CPU",
        "memory",
    ];
    let mut table = new_table(&head, 2, &[]);
    every_arm(run, &mut table, |items| {
        let cached = middle(items, |s| {
            let (cached, input) = (s.cached_tokens? as f64, s.input_tokens? as f64);
            (input > 0.0).then_some(cached / input)
        });
        let memory = middle(items, |s| s.peak_rss_bytes.map(|b| b as f64 / 1048576.0));
        vec![
            count(middle(items, |s| Some(s.requests as f64))),
            count(middle(items, |s| Some(s.side_requests as f64))),
            count(middle(items, |s| s.input_tokens.map(|n| n as f64))),
            cached.map_or_else(|| "–".to_owned(), |c| format!("{:.0}%", c * 100.0)),
            count(middle(items, |s| s.output_tokens.map(|n| n as f64))),
            seconds(middle(items, |s| s.cpu_s.map(|c| c.0))),
            memory.map_or_else(|| "–".to_owned(), |m| format!("{m:.0} MiB")),
        ]
    });
    table
}

fn verdicts(run: &Run, verdict: &Verdict, out: &mut String) {
    let good = Style::new().green().bold();
    let so_so = Style::new().yellow().bold();
    let bad = Style::new().red().bold();
    let total: usize = run
        .rounds
        .iter()
        .flat_map(|r| &r.arms)
        .map(|a| a.sessions.len())
        .sum();
    let functional = match verdict.functional {
        Functional::Pass => {
            format!(
                "{} all {total} sessions done, every check passed",
                good.apply_to("pass")
            )
        }
        Functional::Fail => format!("{}", bad.apply_to("fail")),
        Functional::Unknown => format!("{}", so_so.apply_to("unknown")),
    };
    let _ = writeln!(out, "Functional: {functional}");
    let limits = run.spec.thresholds;
    let worst = verdict
        .worst_session
        .as_deref()
        .map_or_else(String::new, |id| {
            format!("worst slowdown {} ({id})", ratio(&verdict.worst_slowdown))
        });
    let time = match verdict.time {
        TimeVerdict::Pass => {
            format!(
                "{} {worst}, at or below {:.2}×",
                good.apply_to("pass"),
                limits.pass
            )
        }
        TimeVerdict::Warn => {
            format!(
                "{} {worst}, at or below {:.2}×",
                so_so.apply_to("warning"),
                limits.fail
            )
        }
        TimeVerdict::Fail => format!(
            "{} {worst}, above {:.2}×",
            bad.apply_to("fail"),
            limits.fail
        ),
        TimeVerdict::Inconclusive => format!("{} {worst}", so_so.apply_to("inconclusive")),
        TimeVerdict::Unknown => format!("{} no valid round", so_so.apply_to("unknown")),
    };
    let _ = writeln!(out, "Time: {time}");
    for reason in &verdict.reasons {
        let _ = writeln!(out, "  because {reason}");
    }
    for warning in &verdict.warnings {
        let _ = writeln!(out, "  mind: {warning}");
    }
}

fn ending(run: &Run, out: &mut String) {
    let state = match run.state {
        RunState::Finished => return,
        RunState::Unfinished => "The run is not finished: it goes on, or flashrig was killed",
        RunState::Interrupted => "The run was interrupted",
        RunState::Failed => "The run failed",
    };
    let why = run
        .stopped_because
        .as_ref()
        .map_or_else(String::new, |w| format!(": {w}"));
    let _ = writeln!(out, "{}{why}.", Style::new().red().bold().apply_to(state));
}

#[cfg(test)]
mod tests;
