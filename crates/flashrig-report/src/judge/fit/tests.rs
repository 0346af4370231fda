//! Judging runs that were made up.

use super::*;
use crate::judge::Answer;
use flashrig_clock::Seconds;
use flashrig_record::testing::{K32, K256, fit_run as run, measured};
use flashrig_record::testing::{said, texts};
use flashrig_record::{CellReason, LoadWarning};
use flashrig_record::{CellStop, CellVerdict, LeftOut, Outcome, RecallRule, SideTurn};

fn stopped(round: u32, context_tokens: u64, sessions: usize, kind: StopKind) -> Measured {
    let mut measured = measured(round, context_tokens, &vec![1.0; sessions]);
    for lane in &mut measured.lanes {
        lane.turns.truncate(1);
    }
    if kind == StopKind::Refused {
        measured.lanes[0].turns[0].outcome = Outcome::Refused;
    }
    measured.stopped = Some(CellStop {
        kind,
        reason: said("s1 turn 0: no room"),
    });
    measured
}

fn judged(run: &LoadRun, sessions: u32) -> Cell {
    cell(run, K32, sessions)
}

#[test]
fn a_session_counts_against_the_lone_one_of_the_same_round_and_the_worst_by_its_own_mean() {
    let mut run = run(&[K32], &[1, 2], 3);
    for (round, alone, walls) in [
        (1, 10.0, [17.0, 12.0]),
        (2, 20.0, [30.0, 36.0]),
        (3, 10.0, [11.0, 17.6]),
    ] {
        run.measured.push(measured(round, K32, &walls));
        run.measured.push(measured(round, K32, &[alone]));
    }
    let cell = judged(&run, 2);
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
    let rounds = &cell.slowdown.rounds;
    assert!(
        near(rounds[0], 1.2) && near(rounds[1], 1.8) && near(rounds[2], 1.76),
        "{rounds:?}"
    );
    let mean = (1.2_f64 * 1.8 * 1.76).cbrt();
    assert!(near(cell.slowdown.worst.unwrap(), mean));
    assert_eq!(cell.slowdown.worst_session.as_deref(), Some("s2"));
    assert_eq!(cell.slowdown.n, 3);
    assert_eq!(cell.verdict, CellVerdict::Inconclusive);
    // Two sessions generate 2 in 1.7, 1.8 and 1.76 of what one does in 1.
    let growth = cell.growth.unwrap();
    assert!(
        near(growth, 2.0 / (1.7_f64 * 1.8 * 1.76).cbrt()),
        "{growth}"
    );
}

#[test]
fn a_round_without_its_lone_session_is_not_compared() {
    let mut run = run(&[K32], &[1, 2], 2);
    run.measured.push(measured(1, K32, &[10.0]));
    run.measured.push(measured(2, K32, &[17.0, 17.0]));
    let cell = judged(&run, 2);
    assert_eq!(cell.slowdown.worst, None);
    assert_eq!(cell.verdict, CellVerdict::Unknown);
    assert!(
        cell.reasons[0] == CellReason::NoSlowdown,
        "{:?}",
        cell.reasons
    );
    assert_eq!(
        cell.turn_s,
        Some(Seconds(17.0)),
        "what was measured is told"
    );
}

#[test]
fn an_interrupted_combination_does_not_count_at_all() {
    let mut run = run(&[K32], &[1], 1);
    let mut cut = stopped(1, K32, 1, StopKind::Interrupted);
    cut.lanes[0].turns[0].outcome = Outcome::ClientAborted;
    run.measured.push(cut);
    let cell = judged(&run, 1);
    assert_eq!((cell.verdict, cell.errors), (CellVerdict::Unknown, None));
    assert_eq!(cell.turn_s, None);
}

#[test]
fn what_was_not_measured_has_no_zeros() {
    let cell = judged(&run(&[K32], &[1, 2], 1), 2);
    assert_eq!(
        (cell.recall, cell.errors, cell.refused.client),
        (None, None, None)
    );
    assert_eq!(cell.client_bottleneck, None);
}

#[test]
fn a_lone_session_that_the_client_was_too_slow_for_is_told_where_it_is_compared_with() {
    let mut run = run(&[K32], &[1, 2], 1);
    run.measured.push(measured(1, K32, &[10.0]));
    run.measured.push(measured(1, K32, &[14.0, 14.0]));
    run.measured[0].client.bottleneck = true;
    let two = judged(&run, 2);
    assert_eq!(two.client_bottleneck, Some(false));
    let is_reported = |r: &CellReason| *r == CellReason::BaselineBottleneck { rounds: vec![1] };
    assert!(two.reasons.iter().any(is_reported), "{:?}", two.reasons);
    let verdict = verdict(&run, &cells(&run));
    let is_reported = |w: &LoadWarning| {
        matches!(
            w,
            LoadWarning::BaselineBottleneck {
                context_tokens: K32,
                ..
            }
        )
    };
    assert!(verdict.warnings.iter().any(is_reported), "{verdict:?}");
}

#[test]
fn a_refusal_comes_before_time_and_an_error_before_both() {
    let mut run = run(&[K32], &[1, 2], 2);
    run.measured.push(measured(1, K32, &[10.0]));
    run.measured.push(measured(1, K32, &[11.0, 11.0]));
    assert_eq!(judged(&run, 2).verdict, CellVerdict::Pass);
    run.measured.push(stopped(2, K32, 2, StopKind::Refused));
    let cell = judged(&run, 2);
    assert_eq!(
        (cell.verdict, cell.refused.client),
        (CellVerdict::Refused, Some(1))
    );
    assert_eq!(cell.reasons[0].to_string(), "round 2: s1 turn 0: no room");
    run.measured.push(stopped(2, K32, 2, StopKind::Stalled));
    assert_eq!(judged(&run, 2).verdict, CellVerdict::Error);
}

#[test]
fn refusals_that_only_the_server_tells_of_count_too_and_are_told_apart() {
    let mut run = run(&[K32], &[1, 2], 1);
    run.measured.push(measured(1, K32, &[10.0]));
    let mut two = measured(1, K32, &[11.0, 11.0]);
    two.reported.refused = Some(2);
    run.measured.push(two);
    let cell = judged(&run, 2);
    assert_eq!(cell.verdict, CellVerdict::Refused);
    assert_eq!(
        (cell.refused.client, cell.refused.server),
        (Some(0), Some(2))
    );
    assert_eq!(
        texts(&cell.reasons),
        ["the server itself counts 2 refused requests, the client saw 0"]
    );
    assert_eq!(judged(&run, 1).refused.server, None, "unknown is not 0");
}

#[test]
fn recall_is_held_against_what_one_session_alone_gets() {
    let mut run = run(&[K32], &[1, 2], 1);
    let mut alone = measured(1, K32, &[10.0]);
    alone.lanes[0].turns[1].right = Some(false);
    run.measured.push(alone);
    let mut two = measured(1, K32, &[11.0, 11.0]);
    two.lanes[1].turns[2].right = Some(false);
    run.measured.push(two.clone());
    let cell = judged(&run, 2);
    assert_eq!(cell.verdict, CellVerdict::Pass);
    let recall = cell.recall.unwrap();
    assert_eq!((recall.right, recall.asked), (5, 6));
    assert_eq!((recall.worst_right, recall.worst_asked), (Some(2), Some(3)));

    two.lanes[1].turns[3].right = Some(false);
    run.measured[1] = two;
    let cell = judged(&run, 2);
    assert_eq!(cell.verdict, CellVerdict::Recall);
    assert_eq!(
        texts(&cell.reasons),
        ["s2 answered 1 of 3 questions right in round 1; one session alone gets 2 of 3"]
    );
    run.spec.recall = RecallRule::Off;
    assert_eq!(judged(&run, 2).verdict, CellVerdict::Pass);
}

#[test]
fn answers_of_unequal_length_are_said_and_time_per_token_stands_beside() {
    let mut run = run(&[K32], &[1, 2], 1);
    run.measured.push(measured(1, K32, &[10.0]));
    let mut two = measured(1, K32, &[12.0, 12.0]);
    for turn in &mut two.lanes[0].turns {
        turn.output_tokens = Some(50);
    }
    run.measured.push(two);
    let cell = judged(&run, 2);
    assert_eq!(cell.slowdown.worst, Some(1.2));
    assert_eq!(cell.slowdown.per_token_worst, Some(2.4));
    assert!(
        matches!(cell.reasons[0], CellReason::UnequalAnswers { .. }),
        "{:?}",
        cell.reasons
    );
}

#[test]
fn unknown_tokens_leave_growth_and_speed_unknown() {
    let mut run = run(&[K32], &[1, 2], 1);
    run.measured.push(measured(1, K32, &[10.0]));
    let mut two = measured(1, K32, &[12.0, 12.0]);
    two.lanes[0].turns[1].output_tokens = None;
    run.measured.push(two);
    let cell = judged(&run, 2);
    assert_eq!((cell.growth, cell.total_tokens_per_s), (None, None));
    assert_eq!(cell.slowdown.per_token_worst, None);
    assert_eq!(cell.slowdown.worst, Some(1.2));
}

#[test]
fn side_requests_that_got_no_answer_are_sent_and_not_counted_as_quick() {
    let mut run = run(&[K32], &[1], 1);
    let mut lone = measured(1, K32, &[10.0]);
    let side = |wall: Option<f64>, end| SideTurn {
        during_cold: true,
        wall_s: wall.map(Seconds),
        ttft_s: wall.map(|wall| Seconds(wall / 2.0)),
        outcome: end,
        error: None,
    };
    lone.side = vec![
        side(Some(1.0), Outcome::Complete),
        side(Some(61.0), Outcome::Complete),
        side(None, Outcome::Stalled),
    ];
    run.measured.push(lone);
    let cell = judged(&run, 1);
    let side = cell.side.unwrap();
    assert_eq!((side.n, side.sent, side.over_60s), (2, 3, 1));
    assert_eq!(side.p95_s, Some(Seconds(61.0)));
    assert_eq!(
        (side.ttft_p50_s, side.ttft_p95_s),
        (Some(Seconds(0.5)), Some(Seconds(30.5)))
    );
    assert_eq!((cell.verdict, cell.errors), (CellVerdict::Error, Some(1)));
}

/// 32K: 2 warn, 3 fail. 256K: 1 passes, 2 are refused.
fn published() -> LoadRun {
    let mut run = run(&[K32, K256], &[1, 2, 3], 1);
    run.measured = vec![
        measured(1, K32, &[10.0]),
        measured(1, K32, &[17.6, 17.0]),
        measured(1, K32, &[23.7, 23.7, 23.0]),
        measured(1, K256, &[10.0]),
        stopped(1, K256, 2, StopKind::Refused),
    ];
    run.left_out.push(LeftOut {
        round: Some(1),
        context_tokens: K256,
        sessions: 3,
        reason: blocked(&run, K256, 3).unwrap(),
    });
    run
}

#[test]
fn the_answer_is_one_sentence() {
    let run = published();
    let cells = cells(&run);
    let verdict = verdict(&run, &cells);
    assert_eq!(
        verdict.answer,
        "2 sessions fit at 32K (warning, 1.76x), 1 at 256K"
    );
    let fits: Vec<_> = verdict.fits.iter().map(|f| f.sessions).collect();
    assert_eq!(fits, [Some(2), Some(1)]);
    assert_eq!(answer(&run, &cells), Answer::Yes);
    let left = cells.last().unwrap();
    assert_eq!(left.verdict, CellVerdict::Unknown);
    assert_eq!(
        texts(&left.reasons),
        ["not measured in round 1: the server refused 2 sessions at this context length"]
    );
}

#[test]
fn sizes_above_a_refused_one_need_no_measuring_and_smaller_ones_do() {
    let run = published();
    assert!(blocked(&run, K256, 3).is_some());
    assert!(blocked(&run, K256, 2).is_some(), "nor the same one again");
    assert_eq!(blocked(&run, K256, 1), None);
    assert_eq!(blocked(&run, K32, 3), None);
}

#[test]
fn an_expected_number_must_fit_at_every_context_length() {
    let mut run = published();
    run.spec.expect = Some(2);
    let cells = cells(&run);
    assert_eq!(answer(&run, &cells), Answer::No);
    run.spec.expect = Some(1);
    assert_eq!(answer(&run, &cells), Answer::Yes);
}

#[test]
fn when_all_that_was_tried_passes_more_may_fit() {
    let mut run = run(&[K32], &[1, 2], 1);
    run.measured = vec![measured(1, K32, &[10.0]), measured(1, K32, &[10.5, 10.5])];
    let cells = cells(&run);
    assert_eq!(
        verdict(&run, &cells).answer,
        "at least 2 sessions fit at 32K"
    );
}

#[test]
fn what_a_run_cut_short_left_out_may_fit_too() {
    let mut run = run(&[K32], &[1, 2, 3, 4], 1);
    run.measured = vec![measured(1, K32, &[10.0]), measured(1, K32, &[10.5, 10.5])];
    let reported = |run: &LoadRun| verdict(run, &cells(run)).answer;
    assert_eq!(reported(&run), "at least 2 sessions fit at 32K");
    run.measured.push(measured(1, K32, &[31.0; 4]));
    assert_eq!(
        reported(&run),
        "at least 2 sessions fit at 32K",
        "3 is open"
    );
    run.measured.push(measured(1, K32, &[31.0; 3]));
    assert_eq!(reported(&run), "2 sessions fit at 32K");
}

#[test]
fn a_smaller_size_that_fails_below_one_that_passes_is_told() {
    let mut run = run(&[K32], &[1, 2, 3, 4], 1);
    run.measured = vec![
        measured(1, K32, &[10.0]),
        measured(1, K32, &[21.0, 21.0]),
        measured(1, K32, &[14.0; 3]),
        measured(1, K32, &[31.0; 4]),
    ];
    let cells = cells(&run);
    let verdict = verdict(&run, &cells);
    assert!(verdict.fits[0].non_monotonic);
    assert_eq!(verdict.fits[0].sessions, Some(3));
    let reported = &verdict.warnings;
    assert!(
        reported
            .iter()
            .any(|w| w.to_string().contains("2 (fail) did not pass though 3 did")),
        "{reported:?}"
    );
}

#[test]
fn not_even_one_session_is_a_no_and_nothing_measured_is_no_answer() {
    let mut run = run(&[K32], &[1, 2], 1);
    assert_eq!(answer(&run, &cells(&run)), Answer::NotMeasured);
    assert_eq!(verdict(&run, &cells(&run)).answer, "unknown at 32K");
    run.measured.push(stopped(1, K32, 1, StopKind::Refused));
    let cells = cells(&run);
    assert_eq!(answer(&run, &cells), Answer::No);
    assert_eq!(
        verdict(&run, &cells).answer,
        "no session fits at 32K (refused)"
    );
}

#[test]
fn rounds_that_prove_neither_leave_the_size_undecided() {
    let mut run = run(&[K32], &[1, 2], 3);
    for (round, wall) in [(1, 14.0), (2, 20.5), (3, 22.0)] {
        run.measured.push(measured(round, K32, &[10.0]));
        run.measured.push(measured(round, K32, &[wall, wall]));
    }
    let cells = cells(&run);
    assert_eq!(cells[1].verdict, CellVerdict::Inconclusive);
    assert!(
        matches!(cells[1].reasons[0], CellReason::Inconclusive { .. }),
        "{:?}",
        cells[1].reasons
    );
    assert_eq!(passes(&cells[1]), None);
    assert_eq!(answer(&run, &cells), Answer::Inconclusive);
}

#[test]
fn a_search_lists_only_what_it_looked_at() {
    let mut run = run(&[K32], &(1..=64).collect::<Vec<u32>>(), 1);
    run.spec.search = true;
    run.measured = vec![measured(1, K32, &[10.0]), measured(1, K32, &[11.0, 11.0])];
    assert_eq!(cells(&run).len(), 2);
}
