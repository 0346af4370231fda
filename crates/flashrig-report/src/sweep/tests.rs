//! What people read of a sweep.

use crate::View;
use crate::judge::sweep::judged;
use crate::judge::sweep::tests::{figure, sweep, unit};
use crate::sweep_text as text_in;
use flashrig_record::{FigureKind, ProofSource, RunState, SettingProof, Sweep, Unit, UnitOutcome};

fn sweep_text(sweep: &Sweep) -> String {
    text_in(sweep, View::default())
}

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
    failed.failure = Some(flashrig_record::testing::said(
        "the server died while it started: exit code 1",
    ));
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
    for line in tables.filter(|line| !line.contains("note:")) {
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
        text.contains("flashrig sweep --resume FOLDER goes on with it"),
        "{text}"
    );
}

fn proven(mut unit: Unit, value: &str, reported: &str) -> Unit {
    unit.server.as_mut().unwrap().proofs = vec![SettingProof {
        name: "parallel".into(),
        value: value.into(),
        reported: Some(reported.into()),
        reported_by: Some(ProofSource::Log {
            line: format!("n_parallel = {reported}"),
        }),
        engaged: Some(value == reported),
    }];
    unit
}

#[test]
fn a_value_is_proven_only_when_it_was_measured_and_no_log_line_stands_for_another_value() {
    let mut sweep = sweep("ttft", &["1", "4", "8"], 1);
    let line = |sweep: &Sweep| {
        let text = sweep_text(&judged(sweep));
        let line = text
            .lines()
            .find(|line| line.starts_with("  parallel  ") && line.contains("pro"));
        line.unwrap().to_owned()
    };
    sweep.units.push(proven(measured(1, 1, 3.0), "1", "1"));
    assert_eq!(
        line(&sweep),
        "  parallel  1 proven by the log; 4, 8 not measured"
    );
    sweep.units.push(proven(measured(1, 2, 3.0), "4", "4"));
    assert_eq!(
        line(&sweep),
        "  parallel  1, 4 proven by the log; 8 not measured"
    );
    sweep.units.push(proven(measured(1, 3, 3.0), "8", "4"));
    assert_eq!(
        line(&sweep),
        "  parallel  8 did nothing: the server reports 4 (the log: n_parallel = 4); 1, 4 proven by the log"
    );
    sweep.units[2] = proven(measured(1, 3, 3.0), "8", "8");
    assert_eq!(line(&sweep), "  parallel  proven by the log");
    sweep.units[1].server.as_mut().unwrap().proofs.clear();
    assert_eq!(
        line(&sweep),
        "  parallel  1, 8 proven by the log; 4 not proven: the server says nothing of it"
    );
}

#[test]
fn contexts_are_a_column_when_they_differ() {
    let mut sweep = three();
    assert!(!sweep_text(&judged(&sweep)).contains("  context"));
    for unit in sweep.units.iter_mut().filter(|unit| unit.combination == 2) {
        unit.server.as_mut().unwrap().context_tokens = Some(8192);
    }
    let text = sweep_text(&judged(&sweep));
    for message in [
        "measured  peak memory  context  start to ready",
        "1.5 GB    4,096",
        "1.5 GB    8,192",
    ] {
        assert!(text.contains(message), "{message}: {text}");
    }
}
