//! The answer over all combinations, in words and as an exit code needs it.

use super::cell::passes;
use super::recall;
use crate::judge::Answer;
use crate::judge::life::restarted;
use crate::judge::models::of_load;
use flashrig_config::format_tokens;
use flashrig_record::{Cell, CellPlace, CellVerdict, FailedSize, Fits, LoadRun, LoadWarning};

/// Below this share of cached prompt tokens the server reads most of every warm prompt again.
const CACHE_LOST: f64 = 0.5;

/// For each context length, the largest number of sessions that passes.
pub fn fits(run: &LoadRun, cells: &[Cell]) -> Vec<Fits> {
    run.spec
        .contexts
        .iter()
        .map(|&context_tokens| {
            let largest = largest(cells, context_tokens);
            Fits {
                context_tokens,
                sessions: largest.map(|c| c.sessions),
                non_monotonic: largest.is_some_and(|largest| {
                    of(cells, context_tokens)
                        .any(|c| c.sessions < largest.sessions && passes(c) == Some(false))
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

fn largest(cells: &[Cell], context_tokens: u64) -> Option<&Cell> {
    of(cells, context_tokens)
        .filter(|c| passes(c) == Some(true))
        .max_by_key(|c| c.sessions)
}

/// The answer in one sentence: `2 sessions fit at 32K (warning, 1.76x), 1 at 256K`.
pub fn sentence(run: &LoadRun, cells: &[Cell]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for &context_tokens in &run.spec.contexts {
        let at = format_tokens(context_tokens);
        let first = parts.is_empty();
        parts.push(match largest(cells, context_tokens) {
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
                    aside(cell, open_question(cells, cell))
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
            format!("no{session} at {at} ({})", lone.verdict.label())
        }
        _ => format!("unknown at {at}"),
    }
}

/// The smallest larger number of which it could not be told whether it fits.
fn open_question<'c>(cells: &'c [Cell], largest: &Cell) -> Option<&'c Cell> {
    of(cells, largest.context_tokens)
        .filter(|c| c.sessions > largest.sessions)
        .find(|c| c.verdict == CellVerdict::Inconclusive)
}

fn aside(cell: &Cell, open: Option<&Cell>) -> String {
    let worst = cell
        .slowdown
        .worst
        .map_or_else(String::new, |w| format!(", {w:.2}x"));
    let own = match cell.verdict {
        CellVerdict::Warn | CellVerdict::PassOrWarn => {
            Some(format!("{}{worst}", cell.verdict.label()))
        }
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

/// That chance is not excluded where one round was compared.
fn measured_once(run: &LoadRun, cells: &[Cell]) -> Option<LoadWarning> {
    let once = places(cells, |c| c.sessions > 1 && c.slowdown.n == 1)?;
    Some(match run.spec.rounds {
        1 => LoadWarning::OneRound,
        rounds => LoadWarning::MeasuredOnce {
            rounds,
            cells: once,
        },
    })
}

/// The combinations of which something holds; `None` when there is none.
fn places(cells: &[Cell], is_it: impl Fn(&Cell) -> bool) -> Option<Vec<CellPlace>> {
    let found = cells.iter().filter(|cell| is_it(cell));
    let places: Vec<CellPlace> = found
        .map(|cell| CellPlace {
            sessions: cell.sessions,
            context_tokens: cell.context_tokens,
        })
        .collect();
    (!places.is_empty()).then_some(places)
}

/// What a reader should know before trusting the figures.
pub fn warnings(run: &LoadRun, cells: &[Cell]) -> Vec<LoadWarning> {
    let mut all = restarted(run);
    all.extend(of_load(run));
    all.extend(measured_once(run, cells));
    if run.calibration.is_some_and(|c| !c.fixed_output) {
        all.push(LoadWarning::AnswerLengthNotFixed);
    }
    let slow = places(cells, |c| c.client_bottleneck == Some(true));
    all.extend(slow.map(|cells| LoadWarning::ClientBottleneck { cells }));
    for lone in cells.iter().filter(|c| c.sessions == 1) {
        let compared = of(cells, lone.context_tokens).any(|c| c.sessions > 1 && c.slowdown.n > 0);
        if lone.client_bottleneck == Some(true) && compared {
            all.push(LoadWarning::BaselineBottleneck {
                context_tokens: lone.context_tokens,
                simulated: run.server.simulated,
            });
        }
    }
    let lost = places(cells, |c| c.cached_share.is_some_and(|s| s < CACHE_LOST));
    all.extend(lost.map(|cells| LoadWarning::CacheLost { cells }));
    // What a chat template puts around every prompt is the same for all, and may be cached.
    let envelope = run.calibration.map_or(0.0, |c| c.envelope_tokens);
    let found_warm = run.measured.iter().any(|m| {
        let cold = m.lanes.iter().filter_map(|l| l.turns.first());
        cold.filter_map(|t| t.cached_tokens.zip(t.input_tokens))
            .any(|(cached, input)| cached * 20 > input && cached as f64 > envelope)
    });
    if found_warm {
        all.push(LoadWarning::CacheNotCold);
    }
    for fits in fits(run, cells).iter().filter(|f| f.non_monotonic) {
        let failed: Vec<FailedSize> = of(cells, fits.context_tokens)
            .filter(|c| Some(c.sessions) < fits.sessions)
            .filter(|c| passes(c) == Some(false))
            .map(|c| FailedSize {
                sessions: c.sessions,
                verdict: c.verdict,
            })
            .collect();
        all.push(LoadWarning::NonMonotonic {
            context_tokens: fits.context_tokens,
            failed,
            passed: fits.sessions.unwrap_or_default(),
        });
    }
    for &context_tokens in &run.spec.contexts {
        if let Some((right, asked)) = recall::alone(run, context_tokens)
            && right < asked
        {
            all.push(LoadWarning::RecallAlone {
                context_tokens,
                right,
                asked,
            });
        }
    }
    if run.resumed > 0 {
        let times = run.resumed;
        all.push(LoadWarning::Resumed { times });
    }
    all
}

/// The answer as the exit code tells it. Without `--expect` it is a yes when at least one session
/// fits at any of the context lengths; with it, when so many fit at every one.
pub fn answer(run: &LoadRun, cells: &[Cell]) -> Answer {
    let by_context: Vec<Answer> = run
        .spec
        .contexts
        .iter()
        .map(|&c| at_context(cells, c, run.spec.expect.unwrap_or(1)))
        .collect();
    let has = |answer| by_context.contains(&answer);
    let undecided = || {
        let open = |c: &Cell| c.verdict == CellVerdict::Inconclusive;
        if cells.iter().any(|c| open(c) && passes(c).is_none()) {
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

fn at_context(cells: &[Cell], context_tokens: u64, expected: u32) -> Answer {
    if of(cells, context_tokens).any(|c| c.sessions >= expected && passes(c) == Some(true)) {
        return Answer::Yes;
    }
    // What a smaller number fails at, more would too.
    if of(cells, context_tokens).any(|c| c.sessions <= expected && passes(c) == Some(false)) {
        return Answer::No;
    }
    if of(cells, context_tokens).any(|c| c.verdict == CellVerdict::Inconclusive) {
        Answer::Inconclusive
    } else {
        Answer::NotMeasured
    }
}
