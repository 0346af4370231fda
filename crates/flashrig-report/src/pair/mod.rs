//! The report of `pair`.

mod answer;
mod makespans;
mod prefix;
mod probes;
mod sessions;
#[cfg(test)]
mod tests;

use super::figures::{count, float, shown_rounds};
use super::head::{
    self, ending, head, made_up, model_and_context, project_files, reset_before, simulated,
};
use super::page::Page;
use super::server;
use super::view::View;
use crate::judge;
use flashrig_config::plural;
use flashrig_record::{CachePolicy, Run, Verdict, Warning};
use sessions::Rows;

/// Renders a run; one without a verdict is judged by the rounds that it has.
pub fn text(run: &Run, view: View) -> String {
    let mut page = Page::new(view);
    let judged = || judge::verdict(run, run.state);
    let verdict = run.verdict.clone().unwrap_or_else(judged);
    head(
        &mut page,
        &answer::answer(run, &verdict),
        &conditions(run),
        &settings(run),
    );
    if !run.rounds.is_empty() {
        body(run, &verdict, &mut page);
    }
    let because = run.stopped_because.as_ref().map(ToString::to_string);
    ending(&mut page, run.state, because.as_deref(), None);
    page.text()
}

fn body(run: &Run, verdict: &Verdict, page: &mut Page) {
    let rows = Rows::of(run, page.view());
    page.gap();
    page.table(&rows.summary(verdict));
    let over = over_rounds(run);
    page.section(&format!("Where the time went{over}"), &rows.time());
    page.section(&format!("What was done{over}"), &rows.work());
    server::of_pair(run, page);
    page.gap();
    makespans::makespans(run, verdict, page);
    prefix::lines(run, page);
    probes::line(run, page);
    page.items("Why", &verdict.reasons);
    page.gap();
    // The first line says that there was one round.
    let notes = verdict.warnings.iter();
    page.notes(notes.filter(|note| note.fact != Warning::OneRound));
}

/// On what the sessions ran.
fn conditions(run: &Run) -> Vec<String> {
    let mut agents: Vec<String> = Vec::new();
    for spec in &run.spec.sessions {
        let version = spec.agent.version.as_deref().unwrap_or("");
        let agent = format!("{} {version}", spec.agent.name);
        if !agents.contains(&agent.trim_end().to_owned()) {
            agents.push(agent.trim_end().to_owned());
        }
    }
    vec![
        run.command.clone(),
        head::server_of_run(&run.server),
        agents.join(", "),
        head::planned(run.spec.rounds, run.spec.auto_rounds),
    ]
}

fn settings(run: &Run) -> Vec<String> {
    let spec = &run.spec;
    let cache = match spec.cache {
        CachePolicy::Cold => "cold cache (a nonce per session)",
        CachePolicy::Warm => "warm cache",
        CachePolicy::Keep => "cache as found",
    };
    let gate = spec.gate.map(|gate| {
        format!(
            "gated arm: at most {} in the server, {}",
            plural(gate.limit, "request"),
            gate.order.label()
        )
    });
    let cap = spec
        .max_prompt_tokens
        .map(|n| format!("prompts up to {} tokens", count(float(Some(n)))));
    let mut all: Vec<String> = made_up(simulated(&run.server), "pair")
        .into_iter()
        .collect();
    all.extend(model_and_context(&run.server));
    all.push(cache.to_owned());
    all.extend(reset_before(spec.reset, "arm"));
    all.extend(gate);
    all.extend(cap);
    all.extend(prefix::setting(run));
    all.extend(project_files(&spec.sessions));
    all.push(match run.rig.sandbox.as_str() {
        "process_group" => "not contained (process groups only)".to_owned(),
        sandbox => format!("contained by {sandbox}"),
    });
    all.push(run.started_at.clone());
    all
}

fn over_rounds(run: &Run) -> String {
    let (shown, all) = (shown_rounds(run).len(), run.rounds.len());
    match (shown, all) {
        _ if run.rounds.iter().all(|r| !r.valid) => " (no round is valid)".to_owned(),
        (1, 1) => String::new(),
        (1, all) => format!(" (the one valid round of {all})"),
        (shown, all) if shown == all => format!(" (median of {shown} rounds)"),
        (shown, all) => format!(" (median of {shown} valid rounds of {all})"),
    }
}
