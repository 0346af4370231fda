//! The answer over all combinations, in words and as an exit code needs it.

use super::cell::{BOTTLENECK, passes};
use super::recall;
use crate::judge::Answer;
use crate::judge::life::life_lines;
use crate::judge::models::of_load;
use flashrig_config::format_tokens;
use flashrig_record::{Cell, CellVerdict, Fits, LoadRun};

/// Below this share of cached prompt tokens the server reads most of every warm prompt again.
const CACHE_LOST: f64 = 0.5;

/// For each context length, the largest number of sessions that passes.
pub fn fits(run: &LoadRun, cells: &[Cell]) -> Vec<Fits> {
    run.spec
        .contexts
        .iter()
        .map(|&context_tokens| {
            let largest = largest(run, cells, context_tokens);
            Fits {
                context_tokens,
                sessions: largest.map(|c| c.sessions),
                non_monotonic: largest.is_some_and(|largest| {
                    of(cells, context_tokens).any(|c| {
                        c.sessions < largest.sessions
                            && passes(c, run.spec.thresholds) == Some(false)
                    })
                }),
            }
        })
        .collect()
}

fn of(cells: &[Cell], context_tokens: u64) -> impl Iterator<Item = &Cell> {
    cells
        .iter()
        .filter(move |c| c.context_tokens == context_tokens)
}

fn largest<'c>(run: &LoadRun, cells: &'c [Cell], context_tokens: u64) -> Option<&'c Cell> {
    of(cells, context_tokens)
        .filter(|c| passes(c, run.spec.thresholds) == Some(true))
        .max_by_key(|c| c.sessions)
}

/// The answer in one sentence: `2 sessions fit at 32K (warning, 1.76x), 1 at 256K`.
pub fn sentence(run: &LoadRun, cells: &[Cell]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for &context_tokens in &run.spec.contexts {
        let at = format_tokens(context_tokens);
        let first = parts.is_empty();
        parts.push(match largest(run, cells, context_tokens) {
            None => none(cells, context_tokens, &at, first),
            Some(cell) => {
                let least = if more_may_fit(run, cells, cell) {
                    "at least "
                } else {
                    ""
                };
                let word = match (first, cell.sessions) {
                    (false, _) => "",
                    (true, 1) => " session fits",
                    (true, _) => " sessions fit",
                };
                format!(
                    "{least}{}{word} at {at}{}",
                    cell.sessions,
                    aside(cell, open_question(run, cells, cell))
                )
            }
        });
    }
    parts.join(", ")
}

/// Whether nothing speaks against the next larger number: none was asked for, or it was not
/// measured (yet).
fn more_may_fit(run: &LoadRun, cells: &[Cell], largest: &Cell) -> bool {
    let mut larger = run.spec.sessions.iter().copied();
    larger.find(|&s| s > largest.sessions).is_none_or(|next| {
        of(cells, largest.context_tokens)
            .find(|c| c.sessions == next)
            .is_none_or(|c| c.verdict == CellVerdict::Unknown)
    })
}

fn none(cells: &[Cell], context_tokens: u64, at: &str, first: bool) -> String {
    let session = if first { " session fits" } else { "" };
    match of(cells, context_tokens).min_by_key(|c| c.sessions) {
        Some(lone) if lone.verdict != CellVerdict::Unknown => {
            format!("no{session} at {at} ({})", message(lone.verdict))
        }
        _ => format!("unknown at {at}"),
    }
}

/// The smallest larger number of which it could not be told whether it fits.
fn open_question<'c>(run: &LoadRun, cells: &'c [Cell], largest: &Cell) -> Option<&'c Cell> {
    of(cells, largest.context_tokens)
        .filter(|c| c.sessions > largest.sessions)
        .find(|c| {
            c.verdict == CellVerdict::Inconclusive && passes(c, run.spec.thresholds).is_none()
        })
}

fn aside(cell: &Cell, open: Option<&Cell>) -> String {
    let worst = cell
        .slowdown
        .worst
        .map_or_else(String::new, |w| format!(", {w:.2}x"));
    let own = match cell.verdict {
        CellVerdict::Warn => Some(format!("warning{worst}")),
        CellVerdict::Inconclusive => Some(format!("pass or warning{worst}")),
        _ => None,
    };
    let open = open.map(|c| format!("{} inconclusive", c.sessions));
    let parts: Vec<String> = own.into_iter().chain(open).collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!(" ({})", parts.join("; "))
    }
}

/// The verdict as people read it.
pub fn message(verdict: CellVerdict) -> &'static str {
    match verdict {
        CellVerdict::Pass => "pass",
        CellVerdict::Warn => "warning",
        CellVerdict::Fail => "fail",
        CellVerdict::Refused => "refused",
        CellVerdict::Recall => "recall",
        CellVerdict::Error => "error",
        CellVerdict::Inconclusive => "inconclusive",
        CellVerdict::Unknown => "unknown",
    }
}

/// That chance is not excluded where one round was compared.
fn measured_once(run: &LoadRun, cells: &[Cell]) -> Option<String> {
    let once = |c: &&Cell| c.sessions > 1 && c.slowdown.n == 1;
    let places: Vec<String> = cells.iter().filter(once).map(place).collect();
    match (places.is_empty(), run.spec.rounds) {
        (true, _) => None,
        (false, 1) => Some("one round: no interval, so chance is not excluded".to_owned()),
        (false, rounds) => Some(format!(
            "measured in 1 of {rounds} rounds: {}; no interval, so chance is not excluded there",
            places.join(", ")
        )),
    }
}

/// What a reader should know before trusting the figures.
pub fn warnings(run: &LoadRun, cells: &[Cell]) -> Vec<String> {
    let mut all: Vec<String> = life_lines(&run.server).collect();
    all.extend(of_load(run));
    all.extend(measured_once(run, cells));
    if run.calibration.is_some_and(|c| !c.fixed_output) {
        all.push(
            "the server does not keep to a fixed length of answers (ignore_eos, min_tokens): turns \
             are as long as the model made them"
                .to_owned(),
        );
    }
    let places = |is_it: &dyn Fn(&Cell) -> bool| {
        let found: Vec<String> = cells.iter().filter(|c| is_it(c)).map(place).collect();
        (!found.is_empty()).then(|| found.join(", "))
    };
    if let Some(places) = places(&|c| c.client_bottleneck == Some(true)) {
        all.push(format!(
            "{BOTTLENECK} at {places}: those figures are not the server's"
        ));
    }
    for lone in cells.iter().filter(|c| c.sessions == 1) {
        let compared = of(cells, lone.context_tokens).any(|c| c.sessions > 1 && c.slowdown.n > 0);
        if lone.client_bottleneck == Some(true) && compared {
            all.push(format!(
                "every slowdown at {} is compared with a lone session that was measured while \
                 flashrig's own client was the bottleneck, and so is what the answer says of it; \
                 repeat it on a quieter machine{}",
                format_tokens(lone.context_tokens),
                if run.server.simulated {
                    ", or at a lower --speed"
                } else {
                    ""
                },
            ));
        }
    }
    if let Some(places) = places(&|c| c.cached_share.is_some_and(|s| s < CACHE_LOST)) {
        all.push(format!(
            "at {places} the server took less than half of the warm prompts from its cache: their \
             turns read them again"
        ));
    }
    // What a chat template puts around every prompt is the same for all, and may be cached.
    let envelope = run.calibration.map_or(0.0, |c| c.envelope_tokens);
    let found_warm = run.measured.iter().any(|m| {
        let cold = m.lanes.iter().filter_map(|l| l.turns.first());
        cold.filter_map(|t| t.cached_tokens.zip(t.input_tokens))
            .any(|(cached, input)| cached * 20 > input && cached as f64 > envelope)
    });
    if found_warm {
        all.push(
            "some first turns found more than a twentieth of their prompts in the server's cache: \
             cold first-token times are flattered (was the same --seed used before?)"
                .to_owned(),
        );
    }
    for fits in fits(run, cells).iter().filter(|f| f.non_monotonic) {
        let failed: Vec<String> = of(cells, fits.context_tokens)
            .filter(|c| Some(c.sessions) < fits.sessions)
            .filter(|c| passes(c, run.spec.thresholds) == Some(false))
            .map(|c| format!("{} ({})", c.sessions, message(c.verdict)))
            .collect();
        all.push(format!(
            "at {} {} did not pass though {} did: look at both before relying on either",
            format_tokens(fits.context_tokens),
            failed.join(", "),
            fits.sessions.unwrap_or_default(),
        ));
    }
    for &context_tokens in &run.spec.contexts {
        if let Some((right, asked)) = recall::alone(run, context_tokens)
            && right < asked
        {
            all.push(format!(
                "one session alone at {} answers {right} of {asked} questions right",
                format_tokens(context_tokens)
            ));
        }
    }
    if run.resumed > 0 {
        all.push(format!(
            "the run was taken up again {}: its rounds may lie far apart",
            if run.resumed == 1 {
                "once".to_owned()
            } else {
                format!("{} times", run.resumed)
            }
        ));
    }
    all
}

fn place(cell: &Cell) -> String {
    format!("{} × {}", cell.sessions, format_tokens(cell.context_tokens))
}

/// The answer as the exit code tells it. Without `--expect` it is a yes when at least one session
/// fits at any of the context lengths; with it, when so many fit at every one.
pub fn answer(run: &LoadRun, cells: &[Cell]) -> Answer {
    let by_context: Vec<Answer> = run
        .spec
        .contexts
        .iter()
        .map(|&c| at_context(run, cells, c, run.spec.expect.unwrap_or(1)))
        .collect();
    let has = |answer| by_context.contains(&answer);
    let undecided = || {
        let open = |c: &Cell| c.verdict == CellVerdict::Inconclusive;
        if cells
            .iter()
            .any(|c| open(c) && passes(c, run.spec.thresholds).is_none())
        {
            Answer::Inconclusive
        } else {
            Answer::Yes
        }
    };
    match run.spec.expect {
        None if has(Answer::Yes) => undecided(),
        None if has(Answer::Inconclusive) => Answer::Inconclusive,
        None if has(Answer::No) => Answer::No,
        Some(_) if has(Answer::No) => Answer::No,
        Some(_) if has(Answer::NotMeasured) => Answer::NotMeasured,
        Some(_) if has(Answer::Inconclusive) => Answer::Inconclusive,
        Some(_) if has(Answer::Yes) => Answer::Yes,
        _ => Answer::NotMeasured,
    }
}

fn at_context(run: &LoadRun, cells: &[Cell], context_tokens: u64, expected: u32) -> Answer {
    let limits = run.spec.thresholds;
    if of(cells, context_tokens).any(|c| c.sessions >= expected && passes(c, limits) == Some(true))
    {
        return Answer::Yes;
    }
    // What a smaller number fails at, more would too.
    if of(cells, context_tokens).any(|c| c.sessions <= expected && passes(c, limits) == Some(false))
    {
        return Answer::No;
    }
    if of(cells, context_tokens).any(|c| c.verdict == CellVerdict::Inconclusive) {
        Answer::Inconclusive
    } else {
        Answer::NotMeasured
    }
}
