//! How long each way of running took as a whole, and which is soonest.

use crate::figures::{arms, interval, middle, seconds, times};
use crate::page::Page;
use flashrig_config::plural;
use flashrig_record::{ArmKind, GatedVerdict, Ratio, Run, Verdict};

/// Ratios closer to 1 than this are the same.
const SAME: f64 = 0.005;

/// A bias below this share is not worth a line.
const BIAS_NAMED: f64 = 0.01;

/// The times of the arms, and their ratios.
pub fn makespans(run: &Run, verdict: &Verdict, page: &mut Page) {
    let makespan = |kind| seconds(middle(&arms(run, kind), |a| a.makespan_s.map(|m| m.0)));
    let alone = middle(&arms(run, ArmKind::BackToBack), |a| {
        a.sum_of_walls_s.map(|m| m.0)
    });
    if let Some(judged) = &verdict.against_itself {
        let again = middle(&arms(run, ArmKind::BackToBackAgain), |a| {
            a.sum_of_walls_s.map(|m| m.0)
        });
        page.line(&format!(
            "Back to back {} · again {}",
            seconds(alone),
            seconds(again)
        ));
        if judged.overall.value.is_some() {
            page.line(&format!(
                "  again over first {}",
                of_rounds(&judged.overall)
            ));
        }
        return;
    }
    let mut times = vec![format!("Together {}", makespan(ArmKind::Together))];
    if run.spec.gate.is_some() {
        times.push(format!("gated {}", makespan(ArmKind::Gated)));
    }
    times.push(format!("back to back {}", seconds(alone)));
    let mut ratios = vec![(
        "together over back to back",
        verdict.together_over_back_to_back,
    )];
    if let Some(gate) = verdict.gated {
        ratios.push(("gated over back to back", gate.gated_over_back_to_back));
        ratios.push(("gated over together", gate.gated_over_together));
        ratios.push(("slowest session gated", gate.worst_slowdown));
    }
    let slowest = verdict.worst_session.as_ref();
    let slowest = slowest.map_or_else(String::new, |id| format!("slowest session ({id})"));
    ratios.push((&slowest, verdict.worst_slowdown));
    page.line(&times.join(" · "));
    for (name, ratio) in ratios.iter().filter(|(_, ratio)| ratio.value.is_some()) {
        page.line(&format!("  {name} {}", of_rounds(ratio)));
    }
    let high = verdict.evidence.map_or(0.0, |e| e.reads_high_by - 1.0);
    if high >= BIAS_NAMED {
        page.line(&format!(
            "  As the largest of {}, the slowest reads up to {:.0}% high by chance.",
            plural(count_of(verdict), "session"),
            high * 100.0
        ));
    }
}

fn count_of(verdict: &Verdict) -> u32 {
    u32::try_from(verdict.sessions.len()).unwrap_or(u32::MAX)
}

/// `0.81x (0.71 to 0.93, 95% of 3 rounds)`.
fn of_rounds(ratio: &Ratio) -> String {
    let value = times(ratio.value);
    match ratio.ci95 {
        None => value,
        ci95 => format!(
            "{value} (95% {}, {})",
            interval(ci95),
            plural(ratio.n, "round")
        ),
    }
}

/// Which arm is soonest, by the ratios; `None` when nothing is compared.
pub fn soonest(verdict: &Verdict) -> Option<String> {
    let overall = &verdict.together_over_back_to_back;
    if let Some(gate) = &verdict.gated {
        return soonest_of_three(gate, overall);
    }
    let ratio = overall.value?;
    Some(match Lead::of(overall) {
        Lead::Same => "together as long as back to back".to_owned(),
        Lead::Open => format!(
            "together and back to back cannot be told apart ({})",
            of_rounds(overall)
        ),
        Lead::Shown(by) if ratio < 1.0 => format!("together {by} sooner"),
        Lead::Shown(by) => format!("together {by} later"),
    })
}

/// How far a ratio is from 1, as far as that is shown.
enum Lead {
    /// So little that it does not matter.
    Same,
    /// The interval holds 1.
    Open,
    /// `22%`, or `22% (15 to 28%)` with an interval.
    Shown(String),
}

impl Lead {
    fn of(ratio: &Ratio) -> Self {
        let away = |ratio: f64| (ratio - 1.0).abs() * 100.0;
        let value = ratio.value.unwrap_or(1.0);
        match ratio.ci95 {
            Some([low, high]) if low <= 1.0 && high >= 1.0 => {
                let close = away(low).max(away(high)) < SAME * 100.0;
                if close { Self::Same } else { Self::Open }
            }
            _ if away(value) < SAME * 100.0 => Self::Same,
            None => Self::Shown(format!("{:.0}%", away(value))),
            Some([low, high]) => {
                let (near, far) = if value < 1.0 {
                    (high, low)
                } else {
                    (low, high)
                };
                Self::Shown(format!(
                    "{:.0}% ({:.0} to {:.0}%)",
                    away(value),
                    away(near),
                    away(far)
                ))
            }
        }
    }
}

/// One over a ratio.
fn inverse(ratio: &Ratio) -> Ratio {
    Ratio {
        value: ratio.value.map(|v| 1.0 / v),
        ci95: ratio.ci95.map(|[low, high]| [1.0 / high, 1.0 / low]),
        n: ratio.n,
    }
}

/// Which arm finishes soonest, and by how much against the next. By the ratios, which are paired
/// by round, and not by the medians beside them.
fn soonest_of_three(gate: &GatedVerdict, overall: &Ratio) -> Option<String> {
    let gated = gate.gated_over_back_to_back;
    let gated_over_together = gate.gated_over_together;
    // Each arm over the two others.
    let arms = [
        (
            "together",
            [
                ("gated", inverse(&gated_over_together)),
                ("back to back", *overall),
            ],
        ),
        (
            "gated",
            [("together", gated_over_together), ("back to back", gated)],
        ),
        (
            "back to back",
            [("together", inverse(overall)), ("gated", inverse(&gated))],
        ),
    ];
    let slowest_ratio = |others: &[(&str, Ratio); 2]| -> Option<f64> {
        Some(others[0].1.value?.max(others[1].1.value?))
    };
    let known: Option<Vec<f64>> = arms.iter().map(|(_, o)| slowest_ratio(o)).collect();
    let least = known?
        .into_iter()
        .enumerate()
        .reduce(|a, b| if b.1 < a.1 { b } else { a })?;
    let (name, others) = &arms[least.0];
    // Against the nearer of the two others.
    let [first, second] = others;
    let (next, further) = if first.1.value >= second.1.value {
        (first, second)
    } else {
        (second, first)
    };
    Some(match (Lead::of(&next.1), Lead::of(&further.1)) {
        (Lead::Shown(by), _) => format!("{name} soonest, {by} sooner than {}", next.0),
        (Lead::Same, Lead::Same) => "all three arms take the same time".to_owned(),
        (Lead::Same, _) => format!("{name} and {} soonest, with the same time", next.0),
        (Lead::Open, Lead::Shown(by)) => format!(
            "{name} or {} soonest, {by} sooner than {}",
            next.0, further.0
        ),
        (Lead::Open, _) => "which arm is soonest cannot be told".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(together: f64, gated: f64) -> String {
        let ratio = |value| Ratio {
            value: Some(value),
            ci95: None,
            n: 1,
        };
        let gate = GatedVerdict {
            worst_slowdown: ratio(1.0),
            gated_over_back_to_back: ratio(gated),
            gated_over_together: ratio(gated / together),
        };
        soonest_of_three(&gate, &ratio(together)).unwrap()
    }

    #[test]
    fn the_soonest_arm_is_named_with_its_lead_over_the_next() {
        assert_eq!(message(0.8, 0.9), "together soonest, 11% sooner than gated");
        assert_eq!(
            message(1.2, 0.9),
            "gated soonest, 10% sooner than back to back"
        );
        assert_eq!(message(0.9, 0.6), "gated soonest, 33% sooner than together");
        assert_eq!(
            message(1.5, 1.25),
            "back to back soonest, 20% sooner than gated"
        );
    }

    #[test]
    fn arms_that_take_the_same_time_share_the_lead() {
        assert_eq!(message(1.0, 1.001), "all three arms take the same time");
        assert_eq!(
            message(0.8, 0.802),
            "together and gated soonest, with the same time"
        );
        assert_eq!(
            message(1.3, 1.002),
            "back to back and gated soonest, with the same time"
        );
    }

    #[test]
    fn without_a_valid_round_nothing_is_soonest() {
        assert_eq!(
            soonest_of_three(
                &GatedVerdict {
                    worst_slowdown: Ratio::default(),
                    gated_over_back_to_back: Ratio::default(),
                    gated_over_together: Ratio::default(),
                },
                &Ratio::default()
            ),
            None
        );
    }

    #[test]
    fn a_lead_whose_interval_holds_1_is_not_claimed() {
        let ratio = |value: f64, by: f64| Ratio {
            value: Some(value),
            ci95: Some([value / by, value * by]),
            n: 4,
        };
        assert!(matches!(Lead::of(&ratio(0.93, 1.2)), Lead::Open));
        let Lead::Shown(by) = Lead::of(&ratio(0.8, 1.1)) else {
            panic!("shown")
        };
        assert_eq!(by, "20% (12 to 27%)");
        let gate = |over_together: Ratio| GatedVerdict {
            worst_slowdown: ratio(1.0, 1.1),
            gated_over_back_to_back: ratio(0.8, 1.05),
            gated_over_together: over_together,
        };
        assert_eq!(
            soonest_of_three(&gate(ratio(0.95, 1.2)), &ratio(0.84, 1.05)).unwrap(),
            "gated or together soonest, 20% (16 to 24%) sooner than back to back"
        );
    }
}
