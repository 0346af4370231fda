//! The report of `ttft`.

use super::figures::{count, float, percent, rate, seconds, share};
use super::head::{
    self, ending, head, made_up, model_and_context, reset_before, rounds, simulated, unfinished,
};
use super::page::Page;
use super::server;
use super::table::Table;
use super::view::View;
use flashrig_clock::Seconds;
use flashrig_config::{format_tokens, plural};
use flashrig_record::{LoadRun, LoadVerdict, TtftRow};

/// Renders a run whose rows are judged.
pub fn text(run: &LoadRun, verdict: &LoadVerdict, view: View) -> String {
    let mut page = Page::new(view);
    head(
        &mut page,
        &answer(run, verdict),
        &conditions(run),
        &settings(run),
    );
    if !run.ttft.is_empty() {
        page.gap();
        page.table(&table(run));
        page.gap();
        server::of_load(run, |m| plural(m.sessions, "request"), &mut page);
        page.gap();
    }
    page.notes(&verdict.warnings);
    let because = run.stopped_because.as_ref().map(ToString::to_string);
    ending(&mut page, run.state, because.as_deref(), None);
    page.text()
}

/// How many requests were answered, and how long their first tokens took.
fn answer(run: &LoadRun, verdict: &LoadVerdict) -> Vec<String> {
    let mut parts: Vec<String> = unfinished(run.state).into_iter().collect();
    if run.ttft.is_empty() {
        parts.push("nothing was measured".to_owned());
        return parts;
    }
    let sum = |of: fn(&TtftRow) -> u32| run.ttft.iter().map(of).sum::<u32>();
    let (answered, asked) = (sum(|row| row.answered), sum(|row| row.asked));
    parts.push(format!("{answered} of {asked} answered"));
    parts.push(verdict.answer.clone());
    let measured = run.ttft.iter().map(|row| row.rounds).max();
    parts.extend(rounds(measured.unwrap_or(0), run.spec.rounds, None));
    parts
}

fn conditions(run: &LoadRun) -> Vec<String> {
    vec![
        run.command.clone(),
        head::server_of_run(&run.server),
        "synthetic requests".to_owned(),
        plural(run.spec.rounds, "round"),
    ]
}

fn settings(run: &LoadRun) -> Vec<String> {
    let spec = &run.spec;
    let size = spec.contexts.first().copied().unwrap_or(0);
    let long = spec.long_tokens.map_or_else(String::new, |tokens| {
        format!(", one of them of {}", format_tokens(tokens))
    });
    let mut all: Vec<String> = made_up(simulated(&run.server), &run.command)
        .into_iter()
        .collect();
    all.extend(model_and_context(&run.server));
    all.push(format!("prompts of {} tokens{long}", format_tokens(size)));
    all.push(match spec.shared_prefix {
        true => "prompts share their beginning".to_owned(),
        false => "prompts differ from the first line".to_owned(),
    });
    all.push(format!(
        "answers of {}",
        plural(spec.answer_tokens, "token")
    ));
    all.extend(reset_before(spec.reset, "number of requests"));
    all.push(run.started_at.clone());
    all
}

fn table(run: &LoadRun) -> Table<'_, TtftRow> {
    let of = |row: &TtftRow| {
        let requests = row.agents;
        let all = run.measured.iter();
        all.filter(move |m| m.sessions == requests)
    };
    let time = |value: Option<Seconds>| seconds(value.map(|s| s.0));
    let table = Table::new(&run.ttft)
        .name("requests", |row| row.agents.to_string())
        .figure("TTFT", 0, |row| time(row.ttft_s.map(|s| s.median)))
        .figure("worst", 0, |row| time(row.ttft_s.map(|s| s.worst)))
        .figure("spread", 2, |row| time(row.ttft_s.map(|s| s.spread)));
    let table = match run.spec.long_tokens {
        Some(_) => table.figure("long one", 0, |row| time(row.long_ttft_s)),
        None => table,
    };
    table
        .known("most in queue", 1, |row| {
            count(server::most(of(row), |watched| watched.max_waiting))
        })
        .figure("answered", 0, |row| {
            format!("{} of {}", row.answered, row.asked)
        })
        .figure("until all ended", 2, |row| time(row.wall_s))
        .figure("tokens in", 3, |row| count(float(row.input_tokens)))
        .figure("cached", 1, |row| {
            percent(share(row.cached_tokens, row.input_tokens))
        })
        .figure("tokens out", 3, |row| count(float(row.output_tokens)))
        .figure("tokens/s", 0, |row| rate(row.tokens_per_s))
        .known("process memory", 2, |row| server::process_memory(of(row)))
}
