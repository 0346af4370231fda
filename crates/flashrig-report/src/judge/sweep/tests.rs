//! Judging sweeps that were made up.

use super::*;
use flashrig_clock::Seconds;
use flashrig_record::testing;
use flashrig_record::testing::{said, texts};
use flashrig_record::{
    Arm, ArmKind, Figure, FigureKind, FigureOf, Functional, LifeKind, Proven, Round, RunState,
    SWEEP_SCHEMA, ServerLife, SettingProof, SweepSetting, SweepSpec, SweepVerdict, UnitBegun,
    UnitServer,
};
use flashrig_record::{LifeFact, ProofSource, SweepWarning, UnitFault, VerdictReason};

fn setting(name: &str, values: &[&str]) -> SweepSetting {
    SweepSetting {
        name: name.to_owned(),
        values: values.iter().map(|v| (*v).to_owned()).collect(),
    }
}

/// A sweep over one setting before its first unit.
pub(crate) fn sweep(measures: &str, values: &[&str], rounds: u32) -> Sweep {
    Sweep {
        schema: SWEEP_SCHEMA.into(),
        id: "20260101T000000Z-sweep-ttft".into(),
        command: "sweep".into(),
        command_line: Vec::new(),
        started_at: "2026-01-01T00:00:00Z".into(),
        state: RunState::Finished,
        stopped_because: None,
        rig: testing::rig(),
        host: testing::host(),
        spec: SweepSpec {
            server: "sim".into(),
            profile_sha256: "p".into(),
            rig_sha256: "r".into(),
            server_files: Vec::new(),
            measures: measures.into(),
            command: vec![measures.into(), "--agents".into(), "1,4".into()],
            added: vec!["--rounds".into(), "1".into()],
            settings: vec![setting("parallel", values)],
            one_at_a_time: false,
            combinations: values.iter().map(|v| vec![(*v).to_owned()]).collect(),
            rounds,
            seed: 7,
        },
        units: Vec::new(),
        open: None,
        cut_short: Vec::new(),
        resumed: 0,
        rows: Vec::new(),
        verdict: None,
    }
}

pub(crate) fn server() -> UnitServer {
    UnitServer {
        name: "sim with parallel=1".into(),
        simulated: true,
        speed: Some(10.0),
        version: Some("0.1.0".into()),
        model: "m".into(),
        context_tokens: Some(4096),
        program_sha256: None,
        model_sha256: None,
        ready_after_s: Some(Seconds(0.5)),
        peak_memory_bytes: Some(1_500_000_000),
        peak_memory_by: None,
        proofs: Vec::new(),
    }
}

pub(crate) fn figure(kind: FigureKind, sessions: u32, value: f64) -> Figure {
    Figure {
        of: FigureOf {
            context_tokens: None,
            sessions: Some(sessions),
            kind,
        },
        value: Some(value),
        sound: true,
    }
}

pub(crate) fn unit(round: u32, combination: u32, figures: Vec<Figure>) -> Unit {
    Unit {
        round,
        combination,
        folder: format!("runs/r{round}-c{combination}"),
        run: None,
        took_s: Seconds(1.0),
        exit_code: Some(0),
        outcome: UnitOutcome::Measured,
        failure: None,
        faults: Vec::new(),
        client_bottleneck: Some(false),
        figures,
        server: Some(server()),
    }
}

/// A unit in which so many requests at once waited so long.
fn waited(round: u32, combination: u32, seconds: f64) -> Unit {
    let figures = vec![figure(FigureKind::TtftMedianS, 4, seconds)];
    unit(round, combination, figures)
}

fn failed(round: u32, combination: u32) -> Unit {
    Unit {
        outcome: UnitOutcome::Failed,
        failure: Some(said("the server did not start")),
        figures: Vec::new(),
        server: None,
        ..unit(round, combination, Vec::new())
    }
}

fn judge(sweep: &Sweep) -> SweepVerdict {
    verdict(sweep, &rows(sweep))
}

#[test]
fn the_best_is_told_with_its_interval_paired_by_round() {
    let mut sweep = sweep("ttft", &["1", "4"], 3);
    // Every round is slower than the one before, by as much for both.
    for (round, slow) in [(1, 1.0), (2, 3.0), (3, 9.0)] {
        sweep.units.push(waited(round, 1, 2.0 * slow));
        sweep.units.push(waited(round, 2, slow));
    }
    let rows = rows(&sweep);
    let ratio = rows[1].figures[0].of_first;
    assert_eq!((ratio.value, ratio.n), (Some(0.5), 3));
    let [low, high] = ratio.ci95.unwrap();
    assert!((low - 0.5).abs() < 1e-9 && (high - 0.5).abs() < 1e-9);
    let verdict = verdict(&sweep, &rows);
    assert_eq!((verdict.best, verdict.equals.len()), (Some(2), 0));
    assert_eq!(
        verdict.answer,
        [
            "parallel=4 is 2.00 times as fast as parallel=1 by median TTFT of 4 requests \
          at once (2.00 to 2.00, 3 rounds)."
        ]
    );
}

#[test]
fn of_an_even_number_of_rounds_the_answer_is_one_over_what_the_table_says() {
    let mut sweep = sweep("ttft", &["1", "4"], 2);
    for (round, ratio) in [(1, 0.588), (2, 0.233)] {
        sweep.units.push(waited(round, 1, 1.0));
        sweep.units.push(waited(round, 2, ratio));
    }
    let rows = rows(&sweep);
    let of_first = rows[1].figures[0].of_first.value.unwrap();
    assert!((of_first - (0.588_f64 * 0.233).sqrt()).abs() < 1e-12);
    let answer = &verdict(&sweep, &rows).answer[0];
    let times = format!(": {} times as fast", factor(1.0 / of_first));
    assert!(answer.contains(&times), "{times} in {answer}");
    assert_eq!(
        (factor(of_first), times.as_str()),
        ("0.37".to_owned(), ": 2.70 times as fast")
    );
}

#[test]
fn there_is_no_best_while_another_combination_was_not_measured_yet() {
    let mut sweep = sweep("ttft", &["1", "4"], 2);
    sweep.units = vec![waited(1, 1, 2.0), waited(2, 1, 2.0)];
    let verdict = judge(&sweep);
    assert_eq!((verdict.best, verdict.equals.len()), (None, 0));
    assert_eq!(
        verdict.answer,
        ["Only parallel=1 has been measured so far: there is no best combination yet."]
    );
    sweep.units.push(waited(1, 2, 1.0));
    let verdict = judge(&sweep);
    assert_eq!(verdict.best, None);
    assert_eq!(
        verdict.answer[0],
        "There is no best combination yet: 1 of 2 combinations lack rounds."
    );
    assert!(
        verdict.answer[1].starts_with("So far: parallel=4 was 2.00 times as fast as parallel=1"),
        "{:?}",
        verdict.answer
    );
    sweep.units.push(failed(2, 2));
    assert_eq!(judge(&sweep).best, Some(1));
}

#[test]
fn what_cannot_be_told_apart_is_said_with_the_rounds_that_would_tell() {
    let mut sweep = sweep("ttft", &["1", "2", "4"], 3);
    for (round, wobble) in [(1, 0.9), (2, 1.0), (3, 1.0 / 0.9)] {
        sweep.units.push(waited(round, 1, 4.0));
        sweep.units.push(waited(round, 2, 1.1));
        sweep.units.push(waited(round, 3, wobble));
    }
    let verdict = judge(&sweep);
    assert_eq!((verdict.best, verdict.equals), (Some(3), vec![2]));
    let needed = verdict.rounds_needed.unwrap();
    assert!(needed > 3, "{needed}");
    assert!(verdict.answer[0].starts_with("parallel=4 is 4.00 times as fast as parallel=1"));
    assert_eq!(
        verdict.answer[1],
        format!(
            "parallel=4 cannot be told apart from [parallel=2]; {needed} rounds in all would tell, \
             if the spread stays as it is."
        )
    );
}

#[test]
fn one_round_has_no_interval_and_says_so() {
    let mut sweep = sweep("ttft", &["1", "4"], 1);
    sweep.units = vec![waited(1, 1, 2.0), waited(1, 2, 1.0)];
    let verdict = judge(&sweep);
    assert_eq!((verdict.best, verdict.equals), (Some(2), vec![1]));
    assert_eq!(verdict.rounds_needed, None);
    assert!(
        verdict.answer[0].ends_with("(one round, no interval)."),
        "{:?}",
        verdict.answer
    );
    assert!(verdict.warnings[0] == SweepWarning::OneRound);
}

#[test]
fn the_first_combination_can_be_the_best_and_is_compared_with_the_next() {
    let mut sweep = sweep("ttft", &["1", "2", "4"], 2);
    for round in 1..=2 {
        let f = f64::from(round);
        sweep.units.push(waited(round, 1, f));
        sweep.units.push(waited(round, 2, 3.0 * f));
        sweep.units.push(waited(round, 3, 2.0 * f));
    }
    let verdict = judge(&sweep);
    assert_eq!(verdict.best, Some(1));
    assert!(
        verdict.answer[0].starts_with("parallel=1 is 2.00 times as fast as parallel=4 by"),
        "{:?}",
        verdict.answer
    );
}

#[test]
fn a_combination_that_failed_once_is_a_row_with_its_words_and_never_the_best() {
    let mut sweep = sweep("ttft", &["1", "4"], 2);
    sweep.units = vec![
        waited(1, 1, 2.0),
        waited(1, 2, 0.1),
        waited(2, 1, 2.0),
        failed(2, 2),
    ];
    let rows = rows(&sweep);
    assert_eq!((rows[1].measured, rows[1].failed), (1, 1));
    assert_eq!(
        texts(&rows[1].faults),
        ["round 2: the server did not start"]
    );
    assert_eq!(rows[1].figures[0].value, Some(0.1));
    let verdict = verdict(&sweep, &rows);
    assert_eq!(verdict.best, Some(1));
    assert!(
        verdict.answer[0].starts_with("parallel=1 is the only one of 2 combinations that did all"),
        "{:?}",
        verdict.answer
    );
}

#[test]
fn the_largest_size_that_anybody_serves_decides_and_who_does_not_serve_it_is_out() {
    let mut sweep = sweep("ttft", &["1", "2"], 1);
    let figures = |at_8: Option<f64>, sound: bool| {
        vec![
            figure(FigureKind::TtftMedianS, 1, 0.1),
            Figure {
                value: at_8,
                sound,
                ..figure(FigureKind::TtftMedianS, 8, 0.0)
            },
        ]
    };
    sweep.units = vec![
        unit(1, 1, figures(Some(0.5), false)),
        unit(1, 2, figures(Some(5.0), true)),
    ];
    let verdict = judge(&sweep);
    assert_eq!(verdict.by.and_then(|by| by.sessions), Some(8));
    assert_eq!(verdict.best, Some(2));
    // When nobody does, a smaller size decides.
    sweep.units[1].figures = figures(None, false);
    let verdict = judge(&sweep);
    assert_eq!(verdict.by.and_then(|by| by.sessions), Some(1));
}

#[test]
fn nothing_measured_and_nothing_done_are_two_things() {
    let mut sweep = sweep("ttft", &["1", "2"], 1);
    sweep.units = vec![failed(1, 1), failed(1, 2)];
    assert_eq!(judge(&sweep).answer, ["Nothing could be measured."]);
    let mut undone = waited(1, 1, 1.0);
    undone.figures[0].sound = false;
    sweep.units = vec![undone, failed(1, 2)];
    let verdict = judge(&sweep);
    assert_eq!((verdict.best, verdict.by), (None, None));
    assert!(verdict.answer[0].contains("none did all that was asked"));
}

fn by() -> ProofSource {
    let (path, field) = ("/props".to_owned(), "/n".to_owned());
    ProofSource::Field { path, field }
}

fn reported(engaged: Option<bool>) -> Vec<SettingProof> {
    vec![SettingProof {
        name: "parallel".into(),
        value: "4".into(),
        reported: engaged.map(|yes| if yes { "4" } else { "1" }.to_owned()),
        reported_by: engaged.map(|_| by()),
        engaged,
    }]
}

#[test]
fn a_setting_is_proven_in_all_rounds_or_not_and_one_that_did_nothing_is_never_the_best() {
    let proven = |rounds: &[Option<bool>]| {
        let mut sweep = sweep("ttft", &["1", "4"], 2);
        for (round, engaged) in (1..).zip(rounds) {
            sweep.units.push(waited(round, 1, 2.0));
            let mut unit = waited(round, 2, 1.0);
            unit.server.as_mut().unwrap().proofs = reported(*engaged);
            sweep.units.push(unit);
        }
        let rows = rows(&sweep);
        let best = verdict(&sweep, &rows).best;
        (rows[1].proofs[0].proven, rows[1].proofs[0].by.clone(), best)
    };
    assert_eq!(
        proven(&[Some(true), Some(true)]),
        (Proven::Proven, Some(by()), Some(2))
    );
    assert_eq!(
        proven(&[Some(true), None]),
        (Proven::NotProven, None, Some(2))
    );
    assert_eq!(
        proven(&[Some(true), Some(false)]),
        (Proven::DidNothing, Some(by()), Some(1))
    );
}

#[test]
fn another_build_in_a_later_round_is_told() {
    let mut sweep = sweep("ttft", &["1", "4"], 2);
    sweep.units = vec![waited(1, 1, 1.0), waited(2, 1, 1.0)];
    sweep.units[1].server.as_mut().unwrap().version = Some("0.2.0".into());
    assert_eq!(
        texts(&rows(&sweep)[0].faults),
        ["it was not the same server in every round: its version was 0.1.0 and then 0.2.0"]
    );
}

#[test]
fn many_comparisons_cuts_and_resumes_are_told() {
    let values = ["1", "2", "3", "4", "5", "6"];
    let mut sweep = sweep("ttft", &values, 2);
    for round in 1..=2 {
        for n in 1..=6 {
            sweep.units.push(waited(round, n, f64::from(n + round)));
        }
    }
    sweep.resumed = 1;
    sweep.cut_short.push(UnitBegun {
        round: 1,
        combination: 1,
        folder: "runs/r1-c1".into(),
    });
    let warnings = texts(&judge(&sweep).warnings).join("\n");
    for message in [
        "5 combinations are compared with the first, each at 95%: by chance alone about 0.2",
        "1 unit was cut short and measured anew",
        "taken up again once",
    ] {
        assert!(warnings.contains(message), "{message}: {warnings}");
    }
}

#[test]
fn a_pair_gives_makespans_slowdown_and_what_was_done() {
    let mut run = testing::run(&["a", "b"]);
    let session = testing::session;
    let together = Arm {
        makespan_s: Some(Seconds(18.0)),
        sum_of_walls_s: Some(Seconds(34.0)),
        ..testing::arm(
            ArmKind::Together,
            vec![session("a", 0.0, 16.0), session("b", 0.0, 18.0)],
        )
    };
    let alone = Arm {
        sum_of_walls_s: Some(Seconds(20.0)),
        ..testing::arm(
            ArmKind::BackToBack,
            vec![session("a", 20.0, 30.0), session("b", 30.0, 40.0)],
        )
    };
    run.rounds = vec![Round {
        index: 1,
        valid: true,
        invalid_reasons: Vec::new(),
        arms: vec![together, alone],
    }];
    run.verdict = Some(crate::judge::verdict(&run, RunState::Finished));
    let reading = of_pair(&run);
    assert_eq!(reading.failed, None);
    let value = |kind| reading.figures.iter().find(|f| f.of.kind == kind).unwrap();
    let together = value(FigureKind::TogetherS);
    assert_eq!((together.value, together.sound), (Some(18.0), true));
    assert_eq!(value(FigureKind::BackToBackS).value, Some(20.0));
    assert_eq!(value(FigureKind::TogetherOverBackToBack).value, Some(0.9));
    assert_eq!(value(FigureKind::WorstSlowdown).value, Some(1.8));
    assert_eq!(value(FigureKind::DoneShare).value, Some(1.0));
    assert_eq!(reading.faults, []);

    run.rounds[0].arms[0].sessions[0].failures = vec![said("a check failed")];
    run.verdict.as_mut().unwrap().functional = Functional::Fail;
    let reading = of_pair(&run);
    assert_eq!(reading.failed, None);
    assert!(reading.figures.iter().all(|figure| !figure.sound));
    assert_eq!(
        reading.faults[0],
        UnitFault::SessionsNotDone { done: 3, of: 4 }
    );

    for round in &mut run.rounds {
        round.valid = false;
    }
    let mut verdict = run.verdict.take().unwrap();
    verdict.reasons = vec![said::<VerdictReason>("round 1: the server died").into()];
    run.verdict = Some(verdict);
    assert_eq!(
        of_pair(&run).failed.unwrap().to_string(),
        "round 1: the server died"
    );
}

#[test]
fn a_fit_gives_figures_of_each_size_and_what_forgets_is_not_sound() {
    let mut run = testing::fit_run(&[testing::K32], &[1, 2], 1);
    run.measured = vec![
        testing::measured(1, testing::K32, &[10.0]),
        testing::measured(1, testing::K32, &[17.0, 16.0]),
    ];
    run.cells = crate::judge::fit::cells(&run);
    run.verdict = Some(crate::judge::fit::verdict(&run, &run.cells));
    let reading = of_load(&run);
    let find = |reading: &Reading, kind, sessions| {
        let mut found = reading.figures.iter();
        let found = found.find(|f| f.of.kind == kind && f.of.sessions == sessions);
        *found.unwrap()
    };
    assert_eq!(find(&reading, FigureKind::Fits, None).value, Some(2.0));
    let slow = find(&reading, FigureKind::WorstSlowdown, Some(2));
    assert_eq!((slow.value, slow.sound), (Some(1.7), true));

    run.cells[1].verdict = flashrig_record::CellVerdict::Recall;
    run.cells[1].reasons = vec![said("s1 answered 2 of 3")];
    let reading = of_load(&run);
    assert!(!find(&reading, FigureKind::WarmTurnS, Some(2)).sound);
    assert!(find(&reading, FigureKind::WarmTurnS, Some(1)).sound);
    assert_eq!(
        texts(&reading.faults),
        ["2 × 32K: recall: s1 answered 2 of 3"]
    );
}

#[test]
fn a_servers_death_in_a_unit_is_told_of_its_combination() {
    let life = |what, fact| ServerLife {
        at_s: Seconds(1.0),
        what,
        fact,
        last_lines: Vec::new(),
        ready_after_s: None,
    };
    let died = "the server sim died: it was killed by SIGKILL";
    let mut run = testing::fit_run(&[testing::K32], &[1], 1);
    run.measured = vec![testing::measured(1, testing::K32, &[10.0])];
    run.cells = crate::judge::fit::cells(&run);
    run.server.life = vec![
        life(LifeKind::Died, LifeFact::Lost { loss: said(died) }),
        life(
            LifeKind::Restarted,
            LifeFact::Restarted {
                server: "sim".into(),
                ready_after_s: Seconds(1.0),
            },
        ),
    ];
    let again = format!("{died}, and was started again");
    let reading = of_load(&run);
    assert_eq!(reading.faults[0].to_string(), again);
    run.server.life.truncate(1);
    assert_eq!(of_load(&run).faults[0].to_string(), died);
    run.server.life.clear();
    assert!(
        !of_load(&run)
            .faults
            .iter()
            .any(|fault| matches!(fault, UnitFault::ServerLost { .. }))
    );

    let mut sweep = sweep("fit", &["1", "4"], 1);
    sweep.units = vec![waited(1, 1, 1.0), waited(1, 2, 1.0)];
    sweep.units[1].faults = reading.faults;
    assert_eq!(
        rows(&sweep)[1].faults[0].to_string(),
        format!("round 1: {again}")
    );
    let text = crate::sweep_text(&judged(&sweep), crate::View::default());
    assert!(
        text.contains(&format!("parallel=4: round 1: {again}")),
        "{text}"
    );
}

#[test]
fn units_whose_client_was_the_bottleneck_are_named() {
    let mut sweep = sweep("ttft", &["1", "4"], 3);
    for round in 1..=3 {
        for n in 1..=2 {
            sweep.units.push(waited(round, n, 1.0));
        }
    }
    let slow = |sweep: &mut Sweep, at: &[usize]| {
        for index in at {
            sweep.units[*index].client_bottleneck = Some(true);
        }
        texts(&judge(sweep).warnings).join("\n")
    };
    assert_eq!(
        slow(&mut sweep, &[3]),
        "flashrig's own client was the bottleneck in 1 of 6 units ([parallel=4] in round 2): those \
         figures are not the server's"
    );
    let many = slow(&mut sweep, &[0, 1, 2, 4]);
    assert!(
        many.contains("in 5 of 6 units ([parallel=1] in round 1, [parallel=4] in round 1, ")
            && many.contains(", [parallel=4] in round 2 and 1 more): those"),
        "{many}"
    );
}
