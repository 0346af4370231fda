//! Judgement of `ttft`: from requests at once to one line for each number of them. Pure; no I/O.

use super::models::of_load;
use crate::judge::life::restarted;
use crate::stats::median;
use flashrig_clock::Seconds;
use flashrig_config::format_seconds;
use flashrig_record::{
    CellStopReason, Lane, LoadRun, LoadVerdict, LoadWarning, Measured, Outcome, StopKind,
    StoppedBecause, TtftReason, TtftRow, TtftSpread, Turn,
};

/// Name of the one long prompt among the short ones.
pub const LONG: &str = "long";

/// What a run says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Every request was answered.
    All,
    /// Some were refused or failed.
    Some,
    /// The server stopped answering, or nothing was measured.
    None,
}

/// What the run says.
pub fn answer(run: &LoadRun) -> Answer {
    let is_over = |m: &Measured| {
        m.stopped
            .as_ref()
            .is_some_and(|stop| stop.kind != StopKind::Interrupted)
    };
    let answered: u32 = run.ttft.iter().map(|row| row.answered).sum();
    let asked: u32 = run.ttft.iter().map(|row| row.asked).sum();
    let is_refused = |turn: &Turn| matches!(turn.outcome, Outcome::Refused | Outcome::Overloaded);
    let refused = run.measured.iter().flat_map(turns).any(is_refused);
    if run.measured.iter().any(is_over) || (answered == 0 && !refused) {
        Answer::None
    } else if answered < asked {
        Answer::Some
    } else {
        Answer::All
    }
}

/// A line for each number of requests at once that was measured, ascending.
pub fn rows(run: &LoadRun) -> Vec<TtftRow> {
    run.spec
        .sessions
        .iter()
        .filter_map(|agents| {
            let rounds: Vec<&Measured> = run
                .measured
                .iter()
                .filter(|m| m.sessions == *agents && !m.lanes.is_empty())
                .collect();
            (!rounds.is_empty()).then(|| row(run, *agents, &rounds))
        })
        .collect()
}

fn turns(measured: &Measured) -> impl Iterator<Item = &Turn> {
    measured.lanes.iter().flat_map(|lane| &lane.turns)
}

fn row(run: &LoadRun, agents: u32, rounds: &[&Measured]) -> TtftRow {
    let all = || rounds.iter().flat_map(|m| turns(m));
    let count = |of: fn(Outcome) -> bool| count(all().filter(|turn| of(turn.outcome)));
    let whole: Vec<(f64, Option<f64>)> = rounds
        .iter()
        .filter_map(|m| whole(m, run.server.speed.unwrap_or(1.0)))
        .collect();
    let walls: Vec<f64> = whole.iter().map(|(wall, _)| *wall).collect();
    let speeds: Option<Vec<f64>> = whole.iter().map(|(_, speed)| *speed).collect();
    let answered = || all().filter(|turn| turn.outcome == Outcome::Complete);
    let long: Vec<f64> = rounds
        .iter()
        .flat_map(|m| m.lanes.iter().filter(|lane| lane.id == LONG))
        .filter_map(first_token)
        .collect();
    let client_bottleneck = rounds.iter().any(|m| m.client.bottleneck);
    TtftRow {
        agents,
        rounds: u32::try_from(rounds.len()).unwrap_or(u32::MAX),
        asked: self::count(all()),
        answered: self::count(answered()),
        ttft_s: spread(rounds),
        long_ttft_s: median(&long).map(Seconds),
        wall_s: median(&walls).map(Seconds),
        input_tokens: sum(answered().map(|turn| turn.input_tokens)),
        cached_tokens: sum(answered().map(|turn| turn.cached_tokens)),
        output_tokens: sum(answered().map(|turn| turn.output_tokens)),
        tokens_per_s: speeds.and_then(|speeds| median(&speeds)),
        start_skew_s: rounds
            .iter()
            .filter_map(|m| m.start_skew_s)
            .reduce(|a, b| if b > a { b } else { a }),
        refused: count(|end| matches!(end, Outcome::Refused | Outcome::Overloaded)),
        stalled: count(|end| end == Outcome::Stalled),
        failed: count(|end| {
            !matches!(
                end,
                Outcome::Complete | Outcome::Refused | Outcome::Overloaded | Outcome::Stalled
            )
        }),
        client_bottleneck,
        reasons: reasons(run, agents, rounds, client_bottleneck),
    }
}

fn count<'t>(turns: impl Iterator<Item = &'t Turn>) -> u32 {
    u32::try_from(turns.count()).unwrap_or(u32::MAX)
}

/// The sum; `None` when any is unknown, or when there are none.
fn sum(values: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    let values: Option<Vec<u64>> = values.collect();
    values.filter(|v| !v.is_empty()).map(|v| v.iter().sum())
}

fn first_token(lane: &Lane) -> Option<f64> {
    lane.turns.first()?.ttft_s.map(|s| s.0)
}

/// First-token times of all requests but the long one.
fn spread(rounds: &[&Measured]) -> Option<TtftSpread> {
    let mut all = Vec::new();
    let mut spread: f64 = 0.0;
    for measured in rounds {
        let short = measured.lanes.iter().filter(|lane| lane.id != LONG);
        let times: Vec<f64> = short.filter_map(first_token).collect();
        if let (Some(best), Some(worst)) = (least(&times), most(&times)) {
            spread = spread.max(worst - best);
        }
        all.extend(times);
    }
    Some(TtftSpread {
        best: Seconds(least(&all)?),
        median: Seconds(median(&all)?),
        worst: Seconds(most(&all)?),
        spread: Seconds(spread),
        n: u32::try_from(all.len()).unwrap_or(u32::MAX),
    })
}

fn least(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::min)
}

fn most(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}

/// A round's wall and its generation speed, when all its answers came whole.
fn whole(measured: &Measured, speed: f64) -> Option<(f64, Option<f64>)> {
    let starts: Vec<f64> = turns(measured)
        .map(|turn| turn.sent_at_s.0 * speed)
        .collect();
    let ends: Option<Vec<f64>> = turns(measured)
        .map(|turn| Some(turn.sent_at_s.0 * speed + turn.wall_s?.0))
        .collect();
    let wall = most(&ends?)? - least(&starts)?;
    let tokens = sum(turns(measured).map(|turn| turn.output_tokens));
    let speed = tokens
        .filter(|_| wall > 0.0)
        .map(|tokens| tokens as f64 / wall);
    Some((wall, speed))
}

fn reasons(
    run: &LoadRun,
    agents: u32,
    rounds: &[&Measured],
    client_bottleneck: bool,
) -> Vec<TtftReason> {
    let mut reasons: Vec<TtftReason> = Vec::new();
    for turn in rounds.iter().flat_map(|m| turns(m)) {
        let reason = match turn.outcome {
            Outcome::Complete if turn.ttft_s.is_none() => TtftReason::AnswerInOnePiece,
            Outcome::Complete => continue,
            outcome => TtftReason::RequestFailed {
                outcome,
                message: turn.error.as_ref().map(|e| e.message.clone()),
            },
        };
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    let most = rounds.iter().filter_map(|m| m.client.max_in_flight).max();
    let fewer = most.filter(|most| *most < agents);
    reasons.extend(fewer.map(|most| TtftReason::FewerOpen { most }));
    if client_bottleneck {
        reasons.push(TtftReason::ClientBottleneck);
    }
    let planned = run.spec.rounds;
    let measured = u32::try_from(rounds.len()).unwrap_or(u32::MAX);
    if measured < planned {
        reasons.push(TtftReason::RoundsMissing { measured, planned });
    }
    reasons
}

/// The run in one sentence, and what to know before trusting it.
pub fn verdict(
    run: &LoadRun,
    rows: &[TtftRow],
    stopped_because: Option<&StoppedBecause>,
) -> LoadVerdict {
    let mut warnings = restarted(run);
    warnings.extend(losses(run, stopped_because));
    warnings.extend(of_load(run));
    for row in rows {
        warnings.extend(row.reasons.iter().map(|reason| LoadWarning::Row {
            requests: row.agents,
            reason: reason.clone(),
        }));
    }
    if let Some(first) = run.left_out.first() {
        let is_out = |n: &&u32| run.left_out.iter().any(|l| l.sessions == **n);
        warnings.push(LoadWarning::StepsLeftOut {
            requests: run.spec.sessions.iter().filter(is_out).copied().collect(),
            reason: first.reason.clone(),
        });
    }
    if run.calibration.is_some_and(|c| !c.fixed_output) {
        warnings.push(LoadWarning::AnswerLengthNotFixed);
    }
    LoadVerdict {
        answer: sentence(rows),
        fits: Vec::new(),
        warnings,
    }
}

/// Where the server was lost; what ended the run is said with the answer.
fn losses(
    run: &LoadRun,
    stopped_because: Option<&StoppedBecause>,
) -> impl Iterator<Item = LoadWarning> {
    let said = stopped_because.and_then(StoppedBecause::loss);
    run.measured.iter().filter_map(move |m| {
        let stop = m.stopped.as_ref()?;
        let is_said = match &stop.reason {
            CellStopReason::ServerLost { loss } => said == Some(loss),
            _ => false,
        };
        (stop.kind == StopKind::Failed && !is_said).then(|| LoadWarning::StepEndedEarly {
            requests: m.sessions,
            reason: stop.reason.clone(),
        })
    })
}

/// `median TTFT 641 ms alone, 968 ms with 2 at once (worst 1.28 s)`.
fn sentence(rows: &[TtftRow]) -> String {
    let measured = rows.iter().filter_map(|row| Some((row, row.ttft_s?)));
    let measured: Vec<(&TtftRow, TtftSpread)> = measured.collect();
    let times = match measured.as_slice() {
        [] => return "no TTFT was measured".to_owned(),
        [only] => at_once(*only),
        [first, .., last] => format!("{}, {}", at_once(*first), at_once(*last)),
    };
    format!("median TTFT {times}")
}

fn at_once((row, spread): (&TtftRow, TtftSpread)) -> String {
    let [median, worst] = [spread.median, spread.worst].map(|s| format_seconds(s.0));
    match row.agents {
        1 => format!("{median} alone"),
        n => format!("{median} with {n} at once (worst {worst})"),
    }
}

#[cfg(test)]
mod tests;
