//! Whether enough questions were answered right.

use super::finished;
use flashrig_record::{CellReason, Lane, LoadRun, Measured, Recall, RecallRule, RecallWanted};

/// Right answers of a session, and questions asked that got an answer.
fn of_lane(lane: &Lane) -> (u32, u32) {
    let answered = lane.turns.iter().filter_map(|t| t.right);
    answered.fold((0, 0), |(right, asked), is_right| {
        (right + u32::from(is_right), asked + 1)
    })
}

/// Recall over the rounds of a combination.
pub fn recall(rounds: &[&Measured]) -> Recall {
    let mut sum = Recall::default();
    for lane in rounds.iter().flat_map(|m| &m.lanes) {
        let (right, asked) = of_lane(lane);
        if asked == 0 {
            continue;
        }
        sum.right += right;
        sum.asked += asked;
        // Cross-multiplied: the smaller share is the worse one, whatever was asked.
        let worse = match (sum.worst_right, sum.worst_asked) {
            (Some(r), Some(a)) => u64::from(right) * u64::from(a) < u64::from(r) * u64::from(asked),
            _ => true,
        };
        if worse {
            (sum.worst_right, sum.worst_asked) = (Some(right), Some(asked));
        }
    }
    sum
}

/// What one session alone got right at its worst, at this context length.
pub fn alone(run: &LoadRun, context_tokens: u64) -> Option<(u32, u32)> {
    let rounds: Vec<&Measured> = finished(run)
        .filter(|m| m.context_tokens == context_tokens && m.sessions == 1)
        .collect();
    let alone = recall(&rounds);
    alone.worst_right.zip(alone.worst_asked)
}

/// Why the recall of a combination is not enough; empty when it is.
pub fn shortfalls(run: &LoadRun, context_tokens: u64, rounds: &[&Measured]) -> Vec<CellReason> {
    let alone = alone(run, context_tokens);
    let mut short = Vec::new();
    for measured in rounds {
        for lane in &measured.lanes {
            let (right, asked) = of_lane(lane);
            let Some(wanted) = wanted(run.spec.recall, right, asked, alone) else {
                continue;
            };
            short.push(CellReason::RecallShort {
                session: lane.id.clone(),
                round: measured.round,
                right,
                asked,
                wanted,
            });
        }
    }
    short
}

/// What was wanted, when it was not reached.
fn wanted(
    rule: RecallRule,
    right: u32,
    asked: u32,
    alone: Option<(u32, u32)>,
) -> Option<RecallWanted> {
    if asked == 0 {
        return None;
    }
    match rule {
        RecallRule::Off => None,
        RecallRule::All => (right < asked).then_some(RecallWanted::All),
        RecallRule::Share(share) => {
            let reached = (f64::from(right) / f64::from(asked) * 100.0).round();
            let percent = (share * 100.0).round();
            (reached < percent).then_some(RecallWanted::Share { percent })
        }
        RecallRule::AsAlone => {
            let (r, a) = alone?;
            let fewer = u64::from(right) * u64::from(a) < u64::from(r) * u64::from(asked);
            fewer.then_some(RecallWanted::AsAlone {
                alone_right: r,
                alone_asked: a,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_compared_to_the_nearest_percent() {
        let reached = |right| wanted(RecallRule::Share(0.85), right, 13, None).is_none();
        assert!(reached(11), "84.6% is 85%");
        assert!(!reached(10));
    }

    #[test]
    fn without_a_rule_a_session_must_do_as_well_as_one_alone() {
        let alone = Some((11, 13));
        assert_eq!(wanted(RecallRule::AsAlone, 11, 13, alone), None);
        let message = wanted(RecallRule::AsAlone, 10, 13, alone).unwrap();
        assert_eq!(message.to_string(), "one session alone gets 11 of 13");
        assert!(wanted(RecallRule::All, 12, 13, alone).is_some());
        assert!(wanted(RecallRule::Off, 0, 13, alone).is_none());
    }
}
