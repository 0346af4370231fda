//! How long each way of running took as a whole, and which is soonest.

use crate::figures::{arms, interval, middle, seconds, times};
use crate::page::Page;
use flashrig_config::plural;
use flashrig_record::{ArmKind, GatedVerdict, Ratio, Run, Verdict};

/// Ratios closer to 1 than this are the same.
const SAME: f64 = 0.005;

/// The times of the arms, and their ratios.
pub fn makespans(run: &Run, verdict: &Verdict, page: &mut Page) {
    let makespan = |kind| seconds(middle(&arms(run, kind), |a| a.makespan_s.map(|m| m.0)));
    let alone = middle(&arms(run, ArmKind::BackToBack), |a| {
        a.sum_of_walls_s.map(|m| m.0)
    });
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
    let percent = format!("{:.0}%", ((ratio - 1.0) * 100.0).abs());
    Some(match ratio {
        _ if (ratio - 1.0).abs() < SAME => "together as long as back to back".to_owned(),
        r if r < 1.0 => format!("together {percent} sooner"),
        _ => format!("together {percent} later"),
    })
}

/// Which arm finishes soonest, and by how much against the next. By the ratios, which are paired
/// by round, and not by the medians beside them.
fn soonest_of_three(gate: &GatedVerdict, overall: &Ratio) -> Option<String> {
    // Each over back to back; gated and together are compared by their own ratio.
    let (together, gated) = (overall.value?, gate.gated_over_back_to_back.value?);
    let gated_over_together = gate.gated_over_together.value?;
    let same = |ratio: f64| (ratio - 1.0).abs() < SAME;
    if same(together) && same(gated) && same(gated_over_together) {
        return Some("all three arms take the same time".to_owned());
    }
    let (name, against, by_alone, by_other) = if gated_over_together < 1.0 {
        ("gated", "together", gated, gated_over_together)
    } else {
        ("together", "gated", together, 1.0 / gated_over_together)
    };
    let percent = |ratio: f64| format!("{:.0}%", (1.0 - ratio) * 100.0);
    if by_alone > 1.0 && !same(by_alone) {
        return Some(format!(
            "back to back soonest, {} sooner than {name}",
            percent(1.0 / by_alone)
        ));
    }
    // Against the nearer of the two others.
    let (other, ratio) = if by_alone >= by_other {
        ("back to back", by_alone)
    } else {
        (against, by_other)
    };
    Some(if same(ratio) {
        format!("{name} and {other} soonest, with the same time")
    } else {
        format!("{name} soonest, {} sooner than {other}", percent(ratio))
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
            "gated and back to back soonest, with the same time"
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
}
