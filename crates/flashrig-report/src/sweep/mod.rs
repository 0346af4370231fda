//! The report of `sweep`.

mod proofs;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::figures::{count, float};
use super::head::{self, ending, head, made_up, unfinished};
use super::page::Page;
use super::view::View;
use crate::judge::sweep::row_name;
use flashrig_config::plural;
use flashrig_record::{Sweep, SweepWarning, UnitServer};

/// Faults that are shown of each combination; the record has all.
const FAULTS_SHOWN: usize = 4;

/// Renders a judged sweep.
pub fn text(sweep: &Sweep, view: View) -> String {
    let mut page = Page::new(view);
    let verdict = sweep.verdict.as_ref();
    let sentences = verdict.map(|v| v.answer.as_slice()).unwrap_or_default();
    head(
        &mut page,
        &answer(sweep, sentences),
        &conditions(sweep),
        &settings(sweep),
    );
    page.line(&format!("measuring: {}", command(sweep)));
    if !sweep.units.is_empty() {
        for sentence in sentences.iter().skip(1) {
            page.line(sentence);
        }
        tables::tables(sweep, &mut page);
        faults(sweep, &mut page);
        page.gap();
        // The first line says that there was one round.
        let notes = verdict.iter().flat_map(|v| &v.warnings);
        page.notes(notes.filter(|note| **note != SweepWarning::OneRound));
    }
    let because = sweep.stopped_because.as_ref().map(ToString::to_string);
    ending(&mut page, sweep.state, because.as_deref(), Some("sweep"));
    page.text()
}

/// How much was measured, and which combination is the best.
fn answer(sweep: &Sweep, sentences: &[String]) -> Vec<String> {
    let mut parts: Vec<String> = unfinished(sweep.state).into_iter().collect();
    if sweep.units.is_empty() {
        parts.push("nothing was measured".to_owned());
        return parts;
    }
    let spec = &sweep.spec;
    let planned = spec.combinations.len() * spec.rounds as usize;
    let measured = crate::judge::sweep::measured(sweep);
    parts.push(format!("{measured} of {planned} measured"));
    parts.extend(
        sentences
            .first()
            .map(|s| s.trim_end_matches('.').to_owned()),
    );
    parts
}

fn conditions(sweep: &Sweep) -> Vec<String> {
    let spec = &sweep.spec;
    let server = first_server(sweep);
    let version = server.and_then(|server| server.version.as_deref());
    let one_at_a_time = match spec.one_at_a_time {
        true => " (one setting at a time)",
        false => "",
    };
    let combinations = spec.combinations.len() as u64;
    vec![
        sweep.command.clone(),
        head::server(&spec.server, version, server.and_then(simulated)),
        format!("{}{one_at_a_time}", plural(combinations, "combination")),
        plural(spec.rounds, "round"),
    ]
}

fn settings(sweep: &Sweep) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(server) = first_server(sweep) {
        parts.extend(made_up(simulated(server), &sweep.spec.measures));
        parts.push(format!("model {}", head::file_name(&server.model)));
        parts.push(context(sweep, server));
    }
    let fixed = sweep.spec.settings.iter().filter(|s| s.values.len() == 1);
    let fixed = fixed.filter_map(|s| Some(format!("{}={}", s.name, s.values.first()?)));
    let fixed: Vec<String> = fixed.collect();
    if !fixed.is_empty() {
        parts.push(format!("always {}", fixed.join(", ")));
    }
    parts.push("server started anew for each measurement".to_owned());
    parts.push(format!("order by seed {}", sweep.spec.seed));
    parts.push(sweep.started_at.clone());
    parts
}

fn first_server(sweep: &Sweep) -> Option<&UnitServer> {
    sweep.units.iter().find_map(|unit| unit.server.as_ref())
}

fn simulated(server: &UnitServer) -> Option<Option<f64>> {
    server.simulated.then_some(server.speed)
}

/// The measured command with what the sweep added to it.
fn command(sweep: &Sweep) -> String {
    let spec = &sweep.spec;
    shell_words::join(spec.command.iter().chain(&spec.added))
}

fn context(sweep: &Sweep, server: &UnitServer) -> String {
    let servers = sweep.units.iter().filter_map(|unit| unit.server.as_ref());
    let known: BTreeSet<Option<u64>> = servers.map(|server| server.context_tokens).collect();
    match (known.len(), server.context_tokens) {
        (1, None) => "context unknown".to_owned(),
        (1, Some(n)) => format!("context {}", count(float(Some(n)))),
        _ => "context not always the same".to_owned(),
    }
}

/// What speaks against combinations; those with the same faults stand together.
fn faults(sweep: &Sweep, page: &mut Page) {
    let mut groups: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for row in sweep.rows.iter().filter(|row| !row.faults.is_empty()) {
        let faults: Vec<String> = row.faults.iter().map(ToString::to_string).collect();
        let name = row_name(sweep, row);
        match groups.iter_mut().find(|(_, known)| *known == faults) {
            Some((names, _)) => names.push(name),
            None => groups.push((vec![name], faults)),
        }
    }
    page.gap();
    for (names, faults) in groups {
        let names = names.join(" and ");
        for fault in faults.iter().take(FAULTS_SHOWN) {
            page.line(&format!("  {names}: {fault}"));
        }
        let more = faults.len().saturating_sub(FAULTS_SHOWN);
        if more > 0 {
            page.line(&format!("  {names}: and {more} more, in run.json"));
        }
    }
}

/// How much time is left, for a line of progress.
pub fn left(units: usize, seconds: f64) -> String {
    match units {
        0 => "nothing left".to_owned(),
        _ if seconds < 60.0 => format!("about {:.0} s left", seconds.ceil()),
        _ if seconds < 5400.0 => format!("about {:.0} min left", seconds / 60.0),
        _ => format!("about {:.1} h left", seconds / 3600.0),
    }
}
