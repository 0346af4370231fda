//! What people read of a sweep.

use crate::judge::sweep::judged;
use crate::judge::sweep::tests::{figure, sweep, unit};
use crate::records::{FigureKind, RunState, Sweep, Unit, UnitOutcome};
use crate::report::sweep_text;

/// Requests at once, each size with all its figures.
fn measured(round: u32, combination: u32, at_4: f64) -> Unit {
    let figures = vec![
        figure(FigureKind::TtftMedianS, 1, 0.5),
        figure(FigureKind::TtftWorstS, 1, 0.5),
        figure(FigureKind::TokensPerS, 1, 40.0),
        figure(FigureKind::TtftMedianS, 4, at_4),
        figure(FigureKind::TtftWorstS, 4, 2.0 * at_4),
        figure(FigureKind::TokensPerS, 4, 60.0 / at_4),
    ];
    unit(round, combination, figures)
}

fn three() -> Sweep {
    let mut sweep = sweep("ttft", &["1", "2", "4"], 2);
    for round in 1..=2 {
        let f = f64::from(round);
        sweep.units.push(measured(round, 1, 3.0 + 0.1 * f));
        sweep.units.push(measured(round, 2, 1.5));
    }
    let mut failed = measured(1, 3, 1.0);
    failed.outcome = UnitOutcome::Failed;
    failed.words = Some("the server died while it started: exit code 1".into());
    failed.figures.clear();
    failed.server = None;
    sweep.units.push(failed);
    sweep
}

#[test]
fn a_sweep_of_which_one_combination_failed() {
    insta::assert_snapshot!(sweep_text(&judged(&three())));
}

#[test]
fn no_line_is_wider_than_100_columns_but_sentences() {
    let mut sweep = three();
    let long = "a-value-that-is-as-long-as-the-path-of-a-model-file-may-well-be";
    sweep.spec.settings[0].values[1] = long.into();
    sweep.spec.combinations[1][0] = long.into();
    let text = sweep_text(&judged(&sweep));
    assert!(text.contains(&format!("    2  parallel={long}")), "{text}");
    let tables = text.lines().filter(|line| line.contains("  "));
    for line in tables.filter(|line| !line.contains("mind:")) {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn a_killed_sweep_is_judged_by_what_it_has_and_says_how_to_go_on() {
    let mut sweep = three();
    sweep.state = RunState::Unfinished;
    sweep.units.truncate(3);
    let text = sweep_text(&judged(&sweep));
    assert!(text.contains("parallel=2 was 2.07 times as fast"), "{text}");
    assert!(
        text.contains("flashrig sweep --resume with its folder goes on"),
        "{text}"
    );
}
