//! The gated arm beside the other two: its ratios, and what to know before trusting them.

use super::claim::worst;
use super::time::{compared, makespan_ratio, slowdowns_of};
use crate::stats;
use flashrig_record::{Arm, ArmKind, GatedVerdict, Placed, Run, Warning};

/// Below this a request was let in at once; what is left is the rig's own work.
const HELD_S: f64 = 0.005;

/// Judges the gated arm over the valid rounds; `None` when the run has none.
pub fn judge(run: &Run) -> Option<GatedVerdict> {
    run.spec.gate?;
    let alone = compared(run, ArmKind::Gated, ArmKind::BackToBack);
    let over_alone: Vec<f64> = alone
        .iter()
        .filter_map(|(g, b)| makespan_ratio(g, b))
        .collect();
    let over_together: Vec<f64> = compared(run, ArmKind::Gated, ArmKind::Together)
        .iter()
        .filter_map(|(g, t)| {
            let (g, t) = (g.makespan_s?.0, t.makespan_s?.0);
            (t > 0.0).then(|| g / t)
        })
        .collect();
    let worst = worst(&slowdowns_of(run, &alone));
    Some(GatedVerdict {
        worst_slowdown: worst.map(|(_, ratio)| ratio).unwrap_or_default(),
        gated_over_back_to_back: stats::ratio(&over_alone),
        gated_over_together: stats::ratio(&over_together),
    })
}

/// What a reader should know about the gated arm.
pub fn warnings(run: &Run) -> Vec<Placed<Warning>> {
    let Some(gate) = run.spec.gate else {
        return Vec::new();
    };
    let gated: Vec<&Arm> = run
        .rounds
        .iter()
        .flat_map(|r| &r.arms)
        .filter(|a| a.kind == ArmKind::Gated)
        .collect();
    let splits = || gated.iter().flat_map(|a| &a.sessions).map(|s| s.split);
    let mut out = Vec::new();
    let known = splits().flatten().count() > 0;
    if known && splits().flatten().all(|s| s.gate_s.0 < HELD_S) {
        let limit = gate.limit;
        out.push(Warning::GateIdle { limit }.into());
    }
    let shares = compared(run, ArmKind::Gated, ArmKind::BackToBack)
        .into_iter()
        .filter_map(|(g, b)| Some((g.cached_share?, b.cached_share?)))
        .find(|(g, b)| (g - b).abs() > super::warnings::CACHED_SHARE_TOLERANCE);
    if let Some((g, b)) = shares {
        let differs = Warning::CacheDiffers {
            beside: ArmKind::Gated,
            cached_share: g,
            alone_cached_share: b,
        };
        out.push(differs.into());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{arm_figures, round_validity};
    use flashrig_clock::Seconds;
    use flashrig_record::testing::{arm, run, session};
    use flashrig_record::{GateOrder, GateSpec, Round, Split};

    /// A round of two sessions: the ends of each arm's two sessions, all started at 0, but for
    /// back to back.
    fn round(together: [f64; 2], gated: [f64; 2], walls: [f64; 2]) -> Round {
        let both = |kind, ends: [f64; 2]| {
            arm(
                kind,
                vec![session("a", 0.0, ends[0]), session("b", 0.0, ends[1])],
            )
        };
        let alone = vec![
            session("a", 100.0, 100.0 + walls[0]),
            session("b", 200.0, 200.0 + walls[1]),
        ];
        let mut arms = vec![
            both(ArmKind::Together, together),
            both(ArmKind::Gated, gated),
            arm(ArmKind::BackToBack, alone),
        ];
        for arm in &mut arms {
            arm_figures(arm, None);
        }
        let kinds = [ArmKind::Together, ArmKind::Gated, ArmKind::BackToBack];
        let invalid_reasons = round_validity(&arms, 2, &kinds);
        Round {
            index: 1,
            valid: invalid_reasons.is_empty(),
            invalid_reasons,
            arms,
        }
    }

    fn gated_run(rounds: Vec<Round>) -> Run {
        let mut run = run(&["a", "b"]);
        run.spec.gate = Some(GateSpec {
            limit: 1,
            order: GateOrder::Fifo,
        });
        run.rounds = rounds;
        run
    }

    #[test]
    fn the_gated_arm_is_compared_with_both_others() {
        let run = gated_run(vec![round([8.0, 8.0], [4.0, 6.0], [2.0, 4.0])]);
        let verdict = judge(&run).unwrap();
        assert_eq!(verdict.worst_slowdown.value, Some(2.0));
        assert_eq!(verdict.gated_over_back_to_back.value, Some(1.0));
        assert_eq!(verdict.gated_over_together.value, Some(0.75));
    }

    #[test]
    fn a_refusal_in_the_gated_arm_makes_the_round_incomparable() {
        let mut bad = round([8.0, 8.0], [4.0, 6.0], [2.0, 4.0]);
        bad.arms[1].sessions[0].refusals = 1;
        let kinds = [ArmKind::Together, ArmKind::Gated, ArmKind::BackToBack];
        let reasons = round_validity(&bad.arms, 2, &kinds);
        assert_eq!(
            reasons[0].to_string(),
            "a (gated): 1 request refused, 0 answers broken off"
        );
        bad.valid = false;
        let verdict = judge(&gated_run(vec![bad])).unwrap();
        assert_eq!(verdict.gated_over_together.value, None);
        assert_eq!(verdict.worst_slowdown.n, 0);
    }

    #[test]
    fn a_run_without_a_gate_has_no_gated_verdict_and_no_remark() {
        let mut run = gated_run(vec![round([8.0, 8.0], [4.0, 6.0], [2.0, 4.0])]);
        run.spec.gate = None;
        assert_eq!(judge(&run), None);
        assert!(warnings(&run).is_empty());
    }

    #[test]
    fn a_gate_that_held_nothing_back_is_called_out() {
        let mut run = gated_run(vec![round([8.0, 8.0], [4.0, 6.0], [2.0, 4.0])]);
        let hold = |run: &mut Run, gate: f64| {
            for s in &mut run.rounds[0].arms[1].sessions {
                s.split = Some(Split {
                    gate_s: Seconds(gate),
                    ..Split::default()
                });
            }
        };
        hold(&mut run, 0.001);
        assert_eq!(warnings(&run)[0].fact, Warning::GateIdle { limit: 1 });
        hold(&mut run, 1.0);
        assert!(warnings(&run).is_empty());
    }
}
