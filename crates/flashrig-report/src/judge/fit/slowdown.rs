//! Slowdown and growth: warm turns beside others over warm turns alone, of the same round.

use super::finished;
use crate::judge::claim;
use crate::stats;
use flashrig_record::{Lane, LoadRun, Measured, Outcome, Slowdown};

/// Answers that differ by more than this are not equally long.
const SAME_LENGTH: f64 = 0.05;

/// The warm turns of a session, all of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warm {
    /// Their walls together, in seconds.
    pub wall_s: f64,
    /// Tokens generated; `None` when the server left any unknown.
    pub tokens: Option<u64>,
}

/// The warm turns of a session; `None` when not all of them came to their end.
pub fn warm(lane: &Lane, checks: u32) -> Option<Warm> {
    let mut sum = Warm {
        wall_s: 0.0,
        tokens: Some(0),
    };
    let mut n = 0;
    for turn in lane.turns.iter().filter(|t| t.index > 0) {
        if turn.outcome != Outcome::Complete {
            return None;
        }
        sum.wall_s += turn.wall_s?.0;
        sum.tokens = sum.tokens.zip(turn.output_tokens).map(|(a, b)| a + b);
        n += 1;
    }
    (n == checks && n > 0 && sum.wall_s > 0.0).then_some(sum)
}

/// One round of a combination beside the lone session of the same round.
struct Compared<'r> {
    alone: Warm,
    alone_measured: &'r Measured,
    lanes: Vec<Warm>,
    measured: &'r Measured,
}

/// What the rounds of a combination come to.
pub struct Compare {
    /// The slowdown.
    pub slowdown: Slowdown,
    /// For each session its slowdown in each round.
    pub per_session: Vec<Vec<f64>>,
    /// Generation speed together over alone.
    pub growth: Option<f64>,
    /// Whether answers were equally long alone and together; `None` when tokens are unknown.
    pub same_length: Option<bool>,
}

/// Compares a combination with the lone session.
pub fn compare(run: &LoadRun, context_tokens: u64, sessions: u32) -> Compare {
    let rounds = compared(run, context_tokens, sessions);
    let plain = |lane: &Warm, alone: &Warm| Some(lane.wall_s / alone.wall_s);
    let per_token = |lane: &Warm, alone: &Warm| {
        let (t, a) = (tokens(lane)?, tokens(alone)?);
        Some((lane.wall_s / t) / (alone.wall_s / a))
    };
    let per_session = by_session(&rounds, &plain).unwrap_or_default();
    let means: Vec<f64> = per_session
        .iter()
        .filter_map(|values| stats::geometric_mean(values))
        .collect();
    let worst = claim::worst(&per_session);
    let worst_session = worst.and_then(|(index, _)| {
        let lanes = &rounds.first()?.measured.lanes;
        Some(lanes.get(index)?.id.clone())
    });
    let by_token = by_session(&rounds, &per_token);
    let by_token = by_token.and_then(|all| claim::worst(&all)?.1.value);
    let points = worst.map(|(index, _)| per_session[index].clone());
    let ratio = worst.map(|(_, ratio)| ratio).unwrap_or_default();
    let growth: Vec<f64> = rounds.iter().filter_map(growth).collect();
    Compare {
        slowdown: Slowdown {
            worst: ratio.value,
            worst_session,
            median: stats::median(&means),
            ci95: ratio.ci95,
            n: ratio.n,
            per_token_worst: by_token,
            rounds: points.unwrap_or_default(),
        },
        per_session,
        growth: stats::geometric_mean(&growth),
        same_length: same_length(&rounds),
    }
}

/// A ratio of every session in every round; `None` when one of them is unknown.
fn by_session(
    rounds: &[Compared],
    of: &dyn Fn(&Warm, &Warm) -> Option<f64>,
) -> Option<Vec<Vec<f64>>> {
    let count = rounds.first()?.lanes.len();
    (0..count)
        .map(|index| {
            let of_round = |r: &Compared| of(r.lanes.get(index)?, &r.alone);
            rounds.iter().map(of_round).collect()
        })
        .collect()
}

fn compared(run: &LoadRun, context_tokens: u64, sessions: u32) -> Vec<Compared<'_>> {
    let checks = run.spec.checks;
    let of = |n: u32| {
        finished(run).filter(move |m| {
            m.context_tokens == context_tokens && m.sessions == n && m.stopped.is_none()
        })
    };
    of(sessions)
        .filter_map(|measured| {
            let alone_measured = of(1).find(|m| m.round == measured.round)?;
            let alone = warm(alone_measured.lanes.first()?, checks)?;
            let lanes: Option<Vec<Warm>> = measured.lanes.iter().map(|l| warm(l, checks)).collect();
            Some(Compared {
                alone,
                alone_measured,
                lanes: lanes?,
                measured,
            })
        })
        .collect()
}

/// Tokens, when they can be divided by.
#[expect(
    clippy::cast_precision_loss,
    reason = "tokens of a run are far below 2^53"
)]
fn tokens(warm: &Warm) -> Option<f64> {
    warm.tokens.filter(|t| *t > 0).map(|t| t as f64)
}

/// Generation speed of all sessions of a combination in its warm turns, tokens a second.
pub fn total_speed(measured: &Measured, lanes: &[Warm]) -> Option<f64> {
    let span = measured.warm_span_s?.0;
    let all: Option<f64> = lanes.iter().map(tokens).sum();
    (span > 0.0).then_some(all? / span)
}

fn growth(round: &Compared) -> Option<f64> {
    let together = total_speed(round.measured, &round.lanes)?;
    let alone = total_speed(round.alone_measured, &[round.alone])?;
    Some(together / alone)
}

fn same_length(rounds: &[Compared]) -> Option<bool> {
    let mut all = None;
    for round in rounds {
        let alone = tokens(&round.alone)?;
        for lane in &round.lanes {
            let same = (tokens(lane)? / alone - 1.0).abs() <= SAME_LENGTH;
            all = Some(all.unwrap_or(true) && same);
        }
    }
    all
}
