//! One combination of the grid, judged over its rounds.

use super::slowdown::{self, Compare, Warm, total_speed};
use super::{finished, recall};
use crate::judge::claim::{Claim, Slowdowns, looks, more_rounds};
use crate::stats::median;
use flashrig_clock::Seconds;
use flashrig_record::{
    Cell, CellReason, CellVerdict, LeftOutReason, LoadRun, Measured, Outcome, Refused, SideFigures,
    SideTurn, StopKind, TimeVerdict, Turn,
};

/// A side request above this is counted apart.
const LONG_SIDE_S: f64 = 60.0;

/// Judges a combination by what was measured so far.
pub fn judge(run: &LoadRun, context_tokens: u64, sessions: u32) -> Cell {
    let rounds: Vec<&Measured> = finished(run)
        .filter(|m| m.context_tokens == context_tokens && m.sessions == sessions)
        .collect();
    let compare = slowdown::compare(run, context_tokens, sessions);
    let cold: Vec<&Turn> = turns(&rounds).filter(|t| t.index == 0).collect();
    let warm: Vec<&Turn> = turns(&rounds).filter(|t| t.index > 0).collect();
    let ttft_cold: Vec<f64> = cold.iter().filter_map(|t| Some(t.ttft_s?.0)).collect();
    let mut cell = Cell {
        context_tokens,
        sessions,
        growth: compare.growth,
        turn_s: middle(&warm, |t| complete(t).then_some(t.wall_s?.0)).map(Seconds),
        decode_tokens_per_s: middle(&warm, decode_speed),
        total_tokens_per_s: median(&speeds(run, &rounds)),
        ttft_cold_s: median(&ttft_cold).map(Seconds),
        ttft_cold_worst_s: ttft_cold.into_iter().reduce(f64::max).map(Seconds),
        ttft_warm_s: middle(&warm, |t| Some(t.ttft_s?.0)).map(Seconds),
        side: side(&rounds, |_| true),
        side_during_cold: side(&rounds, |s| s.during_cold),
        recall: Some(recall::recall(&rounds)).filter(|r| r.asked > 0),
        refused: refused(&rounds),
        errors: (!rounds.is_empty()).then(|| errors(&rounds)),
        cached_share: cached_share(&warm),
        peak_memory_bytes: rounds
            .iter()
            .filter_map(|m| m.reported.peak_memory_bytes)
            .max(),
        client_bottleneck: (!rounds.is_empty()).then(|| rounds.iter().any(|m| m.client.bottleneck)),
        verdict: CellVerdict::Unknown,
        rounds_needed: None,
        reasons: Vec::new(),
        slowdown: compare.slowdown.clone(),
        evidence: None,
    };
    let slowdowns = Slowdowns {
        per_session: &compare.per_session,
        looks: looks(run.spec.auto_rounds),
        censored: false,
        limits: run.spec.thresholds,
    };
    let claim = slowdowns.claim();
    let (verdict, reasons) = verdict(run, &rounds, &cell, &compare, &claim);
    cell.evidence = claim.evidence.filter(|_| sessions > 1);
    if is_of_time(verdict) {
        cell.rounds_needed = claim.rounds_needed;
    }
    cell.verdict = verdict;
    cell.reasons = reasons;
    cell
}

/// Whether a verdict is about time, and not about what went wrong.
fn is_of_time(verdict: CellVerdict) -> bool {
    matches!(
        verdict,
        CellVerdict::Pass
            | CellVerdict::PassOrWarn
            | CellVerdict::Warn
            | CellVerdict::WarnOrFail
            | CellVerdict::Fail
            | CellVerdict::Inconclusive
    )
}

/// Whether so many sessions fit; `None` when that cannot be told. A warning for which a fail is not
/// excluded does not count as fitting.
pub fn passes(cell: &Cell) -> Option<bool> {
    match cell.verdict {
        CellVerdict::Pass | CellVerdict::PassOrWarn | CellVerdict::Warn => Some(true),
        CellVerdict::WarnOrFail
        | CellVerdict::Fail
        | CellVerdict::Refused
        | CellVerdict::Recall
        | CellVerdict::Error => Some(false),
        CellVerdict::Inconclusive | CellVerdict::Unknown => None,
    }
}

fn turns<'r>(rounds: &[&'r Measured]) -> impl Iterator<Item = &'r Turn> {
    let rounds: Vec<&'r Measured> = rounds.to_vec();
    rounds
        .into_iter()
        .flat_map(|m| &m.lanes)
        .flat_map(|l| &l.turns)
}

fn complete(turn: &Turn) -> bool {
    turn.outcome == Outcome::Complete
}

fn middle(turns: &[&Turn], of: impl Fn(&Turn) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = turns.iter().filter_map(|t| of(t)).collect();
    median(&values)
}

/// From the first token to the last there is one interval less than there are tokens.
#[expect(
    clippy::cast_precision_loss,
    reason = "tokens of a turn are far below 2^53"
)]
fn decode_speed(turn: &Turn) -> Option<f64> {
    let (tokens, span) = (turn.output_tokens?, turn.decode_s?.0);
    (tokens > 1 && span > 0.0).then(|| (tokens - 1) as f64 / span)
}

fn speeds(run: &LoadRun, rounds: &[&Measured]) -> Vec<f64> {
    rounds
        .iter()
        .filter_map(|m| {
            let lanes: Option<Vec<Warm>> = m
                .lanes
                .iter()
                .map(|l| slowdown::warm(l, run.spec.checks))
                .collect();
            total_speed(m, &lanes?)
        })
        .collect()
}

fn side(rounds: &[&Measured], is_it: impl Fn(&SideTurn) -> bool) -> Option<SideFigures> {
    let all = rounds.iter().flat_map(|m| &m.side);
    let sent: Vec<&SideTurn> = all.filter(|s| is_it(s)).collect();
    if sent.is_empty() {
        return None;
    }
    let sorted = |of: &dyn Fn(&SideTurn) -> Option<Seconds>| {
        let whole = sent.iter().filter(|s| s.outcome == Outcome::Complete);
        let mut values: Vec<f64> = whole.filter_map(|s| Some(of(s)?.0)).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (walls, firsts) = (sorted(&|s| s.wall_s), sorted(&|s| s.ttft_s));
    Some(SideFigures {
        n: whole(walls.len()),
        sent: whole(sent.len()),
        p50_s: nearest_rank(&walls, 50).map(Seconds),
        p95_s: nearest_rank(&walls, 95).map(Seconds),
        max_s: walls.last().copied().map(Seconds),
        over_60s: whole(walls.iter().filter(|w| **w > LONG_SIDE_S).count()),
        ttft_p50_s: nearest_rank(&firsts, 50).map(Seconds),
        ttft_p95_s: nearest_rank(&firsts, 95).map(Seconds),
    })
}

fn whole(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The smallest value that at least `percent` of them do not exceed; `sorted` ascending.
fn nearest_rank(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

fn refused(rounds: &[&Measured]) -> Refused {
    let reported: Vec<u64> = rounds.iter().filter_map(|m| m.reported.refused).collect();
    Refused {
        client: (!rounds.is_empty()).then(|| count(rounds, is_refusal)),
        server: (!reported.is_empty()).then(|| reported.iter().sum()),
    }
}

fn errors(rounds: &[&Measured]) -> u64 {
    count(rounds, |end| {
        // What flashrig itself broke off is no error of the server.
        !matches!(end, Outcome::Complete | Outcome::ClientAborted) && !is_refusal(end)
    })
}

fn is_refusal(end: Outcome) -> bool {
    matches!(end, Outcome::Refused | Outcome::Overloaded)
}

fn count(rounds: &[&Measured], is_it: impl Fn(Outcome) -> bool) -> u64 {
    let of_turns = turns(rounds).filter(|t| is_it(t.outcome)).count();
    let sides = rounds.iter().flat_map(|m| &m.side);
    (of_turns + sides.filter(|s| is_it(s.outcome)).count()) as u64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "tokens of a run are far below 2^53"
)]
fn cached_share(warm: &[&Turn]) -> Option<f64> {
    let reported: Vec<(u64, u64)> = warm
        .iter()
        .filter_map(|t| t.cached_tokens.zip(t.input_tokens))
        .collect();
    let (cached, all) = reported
        .iter()
        .fold((0, 0), |(c, i), (cached, input)| (c + cached, i + input));
    (all > 0).then(|| cached as f64 / all as f64)
}

/// Why rounds of a combination were left out, each reason once.
fn left_out(run: &LoadRun, cell: &Cell) -> Vec<CellReason> {
    let mut by_reason: Vec<(&LeftOutReason, Vec<u32>)> = Vec::new();
    let of_cell = run
        .left_out
        .iter()
        .filter(|l| l.context_tokens == cell.context_tokens && l.sessions == cell.sessions);
    for left in of_cell {
        match by_reason.iter_mut().find(|(r, _)| **r == left.reason) {
            Some((_, rounds)) => rounds.extend(left.round),
            None => by_reason.push((&left.reason, left.round.into_iter().collect())),
        }
    }
    let left_out = |(reason, rounds): (&LeftOutReason, Vec<u32>)| CellReason::LeftOut {
        rounds,
        reason: reason.clone(),
    };
    by_reason.into_iter().map(left_out).collect()
}

fn verdict(
    run: &LoadRun,
    rounds: &[&Measured],
    cell: &Cell,
    compare: &Compare,
    claim: &Claim,
) -> (CellVerdict, Vec<CellReason>) {
    let mut reasons = left_out(run, cell);
    if rounds.is_empty() {
        if reasons.is_empty() {
            reasons.push(CellReason::NotMeasured);
        }
        return (CellVerdict::Unknown, reasons);
    }
    for measured in rounds {
        if let Some(stop) = &measured.stopped {
            reasons.push(CellReason::EndedEarly {
                round: measured.round,
                reason: stop.reason.clone(),
            });
        }
    }
    let slow = rounds.iter().filter(|m| m.client.bottleneck);
    let slow: Vec<u32> = slow.map(|m| m.round).collect();
    if !slow.is_empty() {
        reasons.push(CellReason::ClientBottleneck { rounds: slow });
    }
    let baseline = slow_baseline(run, cell, rounds);
    if !baseline.is_empty() {
        reasons.push(CellReason::BaselineBottleneck { rounds: baseline });
    }
    let client = cell.refused.client.unwrap_or_default();
    let server = cell.refused.server.filter(|n| *n > client);
    reasons.extend(server.map(|server| CellReason::ServerCountsRefused { server, client }));
    let short = recall::shortfalls(run, cell.context_tokens, rounds);
    let has_short = !short.is_empty();
    reasons.extend(short);
    let ended_early = rounds.iter().any(|m| m.stopped.is_some());
    let time = time(run, cell, compare, claim, ended_early, &mut reasons);
    let stopped = |kinds: &[StopKind]| {
        rounds
            .iter()
            .filter_map(|m| m.stopped.as_ref())
            .any(|s| kinds.contains(&s.kind))
    };
    let verdict = if cell.errors > Some(0) || stopped(&[StopKind::Failed, StopKind::Stalled]) {
        CellVerdict::Error
    } else if cell.refused.client > Some(0)
        || cell.refused.server.is_some_and(|n| n > 0)
        || stopped(&[StopKind::Refused])
    {
        CellVerdict::Refused
    } else if has_short {
        CellVerdict::Recall
    } else {
        time
    };
    (verdict, reasons)
}

/// The rounds in which the client was too slow for the lone session that these are compared with.
fn slow_baseline(run: &LoadRun, cell: &Cell, rounds: &[&Measured]) -> Vec<u32> {
    if cell.sessions == 1 {
        return Vec::new();
    }
    finished(run)
        .filter(|m| m.context_tokens == cell.context_tokens && m.sessions == 1)
        .filter(|m| m.client.bottleneck && rounds.iter().any(|own| own.round == m.round))
        .map(|m| m.round)
        .collect()
}

/// The time side, and what is to be said of it.
fn time(
    run: &LoadRun,
    cell: &Cell,
    compare: &Compare,
    claim: &Claim,
    ended_early: bool,
    reasons: &mut Vec<CellReason>,
) -> CellVerdict {
    let Some(slowdown) = cell.slowdown.worst else {
        // What ended it early was said.
        if !ended_early {
            reasons.push(CellReason::NoSlowdown);
        }
        return CellVerdict::Unknown;
    };
    if compare.same_length == Some(false) {
        let per_token = cell.slowdown.per_token_worst;
        reasons.push(CellReason::UnequalAnswers { per_token });
    }
    reasons.extend(time_reason(run, cell, claim, slowdown));
    match claim.verdict {
        TimeVerdict::Pass => CellVerdict::Pass,
        TimeVerdict::PassOrWarn => CellVerdict::PassOrWarn,
        TimeVerdict::Warn => CellVerdict::Warn,
        TimeVerdict::WarnOrFail => CellVerdict::WarnOrFail,
        TimeVerdict::Fail => CellVerdict::Fail,
        TimeVerdict::Inconclusive => CellVerdict::Inconclusive,
        TimeVerdict::Unknown | TimeVerdict::NotCompared => CellVerdict::Unknown,
    }
}

/// Why the time side is not a plain pass.
fn time_reason(run: &LoadRun, cell: &Cell, claim: &Claim, slowdown: f64) -> Option<CellReason> {
    let limits = run.spec.thresholds;
    let rounds_in_all = claim.rounds_needed;
    let more_rounds = more_rounds(cell.slowdown.n, rounds_in_all);
    let above = |limit| CellReason::TooSlow {
        slowdown,
        limit,
        at_least: claim.evidence.map(|e| e.at_least),
    };
    Some(match (claim.verdict, claim.evidence) {
        (TimeVerdict::Warn, _) => above(limits.pass),
        (TimeVerdict::Fail, _) => above(limits.fail),
        (TimeVerdict::PassOrWarn, Some(e)) => CellReason::PassNotProven {
            at_most: e.at_most?,
            limit: limits.pass,
            more_rounds,
            rounds_in_all,
        },
        (TimeVerdict::WarnOrFail, Some(e)) => CellReason::FailNotExcluded {
            at_least: e.at_least,
            limit: limits.fail,
            more_rounds,
            rounds_in_all,
        },
        (TimeVerdict::Inconclusive, Some(e)) => CellReason::Inconclusive {
            low: e.at_least,
            high: e.at_most,
            more_rounds,
            rounds_in_all,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let walls: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(nearest_rank(&walls, 95), Some(19.0));
        assert_eq!(nearest_rank(&walls, 50), Some(10.0));
        assert_eq!(nearest_rank(&walls[..1], 95), Some(1.0));
        assert_eq!(nearest_rank(&[], 95), None);
    }
}
