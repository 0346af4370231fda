//! How long each way of running took as a whole, and which is soonest.

use std::fmt::Write as _;

use console::Style;

use super::figures::{arms, middle, seconds};
use flashrig_record::{ArmKind, GatedVerdict, Ratio, Run};

/// Ratios closer to 1 than this are the same.
const SAME: f64 = 0.005;

/// The sentence on makespans: of two arms, or of three when one was gated.
pub fn makespans(run: &Run, out: &mut String) {
    match run.spec.gate {
        None => two(run, out),
        Some(_) => three(run, out),
    }
}

fn two(run: &Run, out: &mut String) {
    let together = middle(&arms(run, ArmKind::Together), |a| a.makespan_s.map(|m| m.0));
    let alone = middle(&arms(run, ArmKind::BackToBack), |a| {
        a.sum_of_walls_s.map(|m| m.0)
    });
    let _ = write!(
        out,
        "Together {}, back to back {}",
        seconds(together),
        seconds(alone)
    );
    let Some(overall) = run.verdict.as_ref().map(|v| v.together_over_back_to_back) else {
        let _ = writeln!(out, ".");
        return;
    };
    let _ = match overall.value {
        None => writeln!(out, ": not compared, no round is valid."),
        Some(r) => {
            let percent = ((r - 1.0) * 100.0).abs();
            let message = match r {
                _ if (r - 1.0).abs() < SAME => "both take the same time".to_owned(),
                r if r < 1.0 => format!("together finishes {percent:.0}% sooner"),
                _ => format!("together finishes {percent:.0}% later"),
            };
            let interval = overall.ci95.map_or_else(String::new, |[low, high]| {
                format!(" (ratio {r:.2}, 95% {low:.2}–{high:.2}, n={})", overall.n)
            });
            writeln!(
                out,
                ": {}{interval}.",
                Style::new().bold().apply_to(message)
            )
        }
    };
}

fn three(run: &Run, out: &mut String) {
    let together = middle(&arms(run, ArmKind::Together), |a| a.makespan_s.map(|m| m.0));
    let gated = middle(&arms(run, ArmKind::Gated), |a| a.makespan_s.map(|m| m.0));
    let alone = middle(&arms(run, ArmKind::BackToBack), |a| {
        a.sum_of_walls_s.map(|m| m.0)
    });
    let _ = write!(
        out,
        "Together {}, gated {}, back to back {}",
        seconds(together),
        seconds(gated),
        seconds(alone)
    );
    let verdict = run.verdict.as_ref();
    let Some((gate, overall)) =
        verdict.and_then(|v| Some((v.gated?, v.together_over_back_to_back)))
    else {
        let _ = writeln!(out, ".");
        return;
    };
    match soonest(&gate, &overall) {
        None => {
            let _ = writeln!(out, ": not compared, no round is valid.");
        }
        Some(message) => {
            let _ = writeln!(out, ": {}.", Style::new().bold().apply_to(message));
        }
    }
    for (name, ratio) in [
        ("together over back to back", overall),
        ("gated over back to back", gate.gated_over_back_to_back),
        ("gated over together", gate.gated_over_together),
        ("worst slowdown gated", gate.worst_slowdown),
    ] {
        let _ = writeln!(out, "  {name} {}", super::figures::ratio(&ratio));
    }
}

/// Which arm finishes soonest, and by how much against the next. By the ratios, which are paired
/// by round, and not by the medians beside them.
fn soonest(gate: &GatedVerdict, overall: &Ratio) -> Option<String> {
    // Each over back to back; gated and together are compared by their own ratio.
    let (together, gated) = (overall.value?, gate.gated_over_back_to_back.value?);
    let gated_over_together = gate.gated_over_together.value?;
    let same = |ratio: f64| (ratio - 1.0).abs() < SAME;
    if same(together) && same(gated) && same(gated_over_together) {
        return Some("all three take the same time".to_owned());
    }
    let (name, against, by_alone, by_other) = if gated_over_together < 1.0 {
        ("gated", "together", gated, gated_over_together)
    } else {
        ("together", "gated", together, 1.0 / gated_over_together)
    };
    let percent = |ratio: f64| format!("{:.0}%", (1.0 - ratio) * 100.0);
    if by_alone > 1.0 && !same(by_alone) {
        return Some(format!(
            "back to back is soonest, {} sooner than {name}, the next",
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
        format!("{name} and {other} are soonest, with the same time")
    } else {
        format!(
            "{name} is soonest, {} sooner than {other}, the next",
            percent(ratio)
        )
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
        soonest(&gate, &ratio(together)).unwrap()
    }

    #[test]
    fn the_soonest_arm_is_named_with_its_lead_over_the_next() {
        assert_eq!(
            message(0.8, 0.9),
            "together is soonest, 11% sooner than gated, the next"
        );
        assert_eq!(
            message(1.2, 0.9),
            "gated is soonest, 10% sooner than back to back, the next"
        );
        assert_eq!(
            message(0.9, 0.6),
            "gated is soonest, 33% sooner than together, the next"
        );
        assert_eq!(
            message(1.5, 1.25),
            "back to back is soonest, 20% sooner than gated, the next"
        );
    }

    #[test]
    fn arms_that_take_the_same_time_share_the_lead() {
        assert_eq!(message(1.0, 1.001), "all three take the same time");
        assert_eq!(
            message(0.8, 0.802),
            "together and gated are soonest, with the same time"
        );
        assert_eq!(
            message(1.3, 1.002),
            "gated and back to back are soonest, with the same time"
        );
    }

    #[test]
    fn without_a_valid_round_nothing_is_soonest() {
        assert_eq!(
            soonest(
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
