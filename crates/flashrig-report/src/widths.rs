//! Every kind of report at every width: no line is wider, no word is broken.

use std::collections::BTreeSet;

use super::*;
use crate::judge::sweep::tests as sweeps;
use flashrig_clock::Seconds;
use flashrig_record::testing::{K32, K256, arm, fit_run, measured, run, session};
use flashrig_record::{
    ArmKind, ContextSource, Dialect, DialectTried, Endpoint, EndpointState, FigureKind, FirstToken,
    Generates, MetricFound, Probe, Round, Run, RunState, Session, SideFigures, Split, Status,
    Watched,
};

/// A report as a function of its view.
type Report = Box<dyn Fn(View) -> String>;

fn reports() -> Vec<(&'static str, Report)> {
    let pair = |run: Run| -> Report { Box::new(move |view| pair_text(&run, view)) };
    let load = |run: LoadRun| -> Report { Box::new(move |view| load_text(&run, view)) };
    let (sweep, probe) = (sweep(), probe());
    vec![
        ("pair", pair(agents(3, false))),
        ("gated", pair(agents(2, true))),
        ("24 sessions", pair(agents(24, false))),
        ("killed", pair(killed())),
        ("nothing", pair(run(&["a"]))),
        ("fit", load(fit())),
        ("ttft", load(ttft())),
        ("sweep", Box::new(move |view| sweep_text(&sweep, view))),
        ("probe", Box::new(move |view| probe_text(&probe, view))),
    ]
}

#[test]
fn no_line_is_wider_than_the_terminal_and_no_word_is_broken() {
    console::set_colors_enabled(false);
    for (name, report) in reports() {
        let whole = report(View {
            wide: true,
            ..View::default()
        });
        let hint = "hidden at this width: ; --wide shows all";
        let words = whole.split_whitespace().chain(hint.split_whitespace());
        let words: BTreeSet<&str> = words.map(bare).collect();
        for width in [60, 80, 100, 120] {
            let text = report(View { width, wide: false });
            for line in text.lines() {
                let columns = console::measure_text_width(line);
                assert!(columns <= width, "{name} at {width}: {columns}: {line}");
                // A row of several sessions is there only where rows are folded.
                if name == "24 sessions" {
                    continue;
                }
                for word in line.split_whitespace() {
                    assert!(
                        words.contains(bare(word)),
                        "{name} at {width}: {word:?} in {line}"
                    );
                }
            }
        }
    }
}

fn bare(word: &str) -> &str {
    word.trim_end_matches([',', ';'])
}

#[test]
fn every_report_begins_with_its_answer_and_its_conditions() {
    console::set_colors_enabled(false);
    let view = View::new(Some(200), false);
    for (name, report) in reports().into_iter().filter(|(name, _)| *name != "probe") {
        let text = report(view);
        let lines: Vec<&str> = text.lines().take(2).collect();
        assert!(
            lines[0].contains(" of ") || lines[0] == "nothing was measured",
            "{name}: {text}"
        );
        assert!(lines[1].contains("SIMULATED server"), "{name}: {text}");
        assert!(lines[1].contains("round"), "{name}: {text}");
    }
}

#[test]
fn many_sessions_of_one_task_share_a_row_and_one_that_failed_keeps_its_name() {
    console::set_colors_enabled(false);
    let mut many = agents(24, false);
    let arms = many.rounds.iter_mut().flat_map(|round| &mut round.arms);
    for session in arms.flat_map(|arm| &mut arm.sessions) {
        if session.id == "fix-bug-7" {
            session.status = Status::Timeout;
        }
    }
    let text = pair_text(&many, View::default());
    assert!(text.contains("fix-bug · claude ×23"), "{text}");
    assert!(text.contains("fix-bug-7"), "{text}");
    assert!(!text.contains("fix-bug-8"), "{text}");
    assert!(text.contains("(20.0 to 43.0)"), "{text}");
    assert!(text.lines().count() < 40, "{text}");
    let wide = View {
        wide: true,
        ..View::default()
    };
    let all = pair_text(&many, wide);
    assert!(
        (1..=24).all(|n| all.contains(&format!("fix-bug-{n} "))),
        "{all}"
    );
}

fn agents(n: usize, gated: bool) -> Run {
    let ids: Vec<String> = (1..=n).map(|n| format!("fix-bug-{n}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut run = run(&ids);
    run.spec.rounds = 2;
    for spec in &mut run.spec.sessions {
        spec.task = "fix-bug".into();
        spec.agent.name = "claude".into();
        spec.agent.version = Some("2.1.332".into());
    }
    let kinds = [ArmKind::BackToBack, ArmKind::Together, ArmKind::Gated];
    let kinds = &kinds[..if gated { 3 } else { 2 }];
    run.spec.gate = gated.then_some(flashrig_record::GateSpec {
        limit: 1,
        order: flashrig_record::GateOrder::SideFirst,
    });
    for index in 1..=2 {
        let arms = kinds.iter().map(|kind| {
            let start = |i: usize| match kind {
                ArmKind::BackToBack => 1000.0 * (i + 1) as f64,
                _ => 0.0,
            };
            let sessions = ids.iter().enumerate().map(|(i, id)| {
                let wall = (20 + i) as f64 * if *kind == ArmKind::Together { 1.5 } else { 1.0 };
                measured_session(id, start(i), start(i) + wall)
            });
            let mut arm = arm(*kind, sessions.collect());
            arm.watched = Some(Box::new(Watched {
                max_running: Some(2.0),
                max_waiting: Some(1.0),
                peak_rss_bytes: Some(127_000_000),
                ..Watched::default()
            }));
            crate::judge::arm_figures(&mut arm, Some(2));
            arm
        });
        run.rounds.push(Round {
            index,
            valid: true,
            invalid_reasons: Vec::new(),
            arms: arms.collect(),
        });
    }
    run
}

fn measured_session(id: &str, start: f64, end: f64) -> Session {
    Session {
        split: Some(Split {
            startup_s: Seconds(2.0),
            decoding_s: Seconds(end - start - 2.0),
            ..Split::default()
        }),
        input_tokens: Some(1_234_567),
        cached_tokens: Some(234_567),
        output_tokens: Some(34_567),
        cpu_s: Some(Seconds(12.3)),
        peak_rss_bytes: Some(418_000_000),
        ..session(id, start, end)
    }
}

fn killed() -> Run {
    let mut run = agents(2, false);
    run.state = RunState::Unfinished;
    run.rounds.truncate(1);
    run.rounds[0].valid = false;
    run.rounds[0].arms.truncate(1);
    run
}

fn fit() -> LoadRun {
    let mut run = fit_run(&[K32, K256], &[1, 2, 16], 2);
    for round in 1..=2 {
        run.measured.push(measured(round, K32, &[10.0]));
        run.measured.push(measured(round, K32, &[17.4, 17.0]));
        run.measured.push(measured(round, K32, &[23.7; 16]));
    }
    for measured in &mut run.measured {
        measured.watched = Some(Box::new(Watched {
            max_waiting: Some(12.0),
            peak_rss_bytes: Some(17_000_000_000),
            ..Watched::default()
        }));
    }
    run.cells = judge::fit::cells(&run);
    for cell in &mut run.cells {
        cell.side = Some(SideFigures {
            n: 12,
            sent: 12,
            p50_s: Some(Seconds(61.2)),
            p95_s: Some(Seconds(125.0)),
            max_s: Some(Seconds(130.0)),
            over_60s: 8,
            ttft_p50_s: Some(Seconds(31.2)),
            ttft_p95_s: Some(Seconds(63.0)),
        });
        cell.peak_memory_bytes = Some(17_000_000_000);
    }
    run.verdict = Some(judge::fit::verdict(&run, &run.cells));
    run
}

fn ttft() -> LoadRun {
    let mut run = fit_run(&[2048], &[1, 2, 8], 2);
    run.command = "ttft".into();
    run.spec.long_tokens = Some(32_768);
    for round in 1..=2 {
        for n in [1, 2, 8] {
            run.measured.push(measured(round, 2048, &vec![4.0; n]));
        }
    }
    for measured in &mut run.measured {
        measured.watched = Some(Box::new(Watched {
            max_waiting: Some(7.0),
            peak_rss_bytes: Some(17_000_000_000),
            ..Watched::default()
        }));
    }
    run
}

fn sweep() -> Sweep {
    let mut sweep = sweeps::sweep("ttft", &["1", "2", "a-value-as-long-as-a-path-may-be"], 2);
    for round in 1..=2 {
        for (combination, at_8) in [(1, 3.0), (2, 1.5), (3, 2.0)] {
            let figures = [1, 8].into_iter().flat_map(|n| {
                [
                    sweeps::figure(FigureKind::TtftMedianS, n, at_8),
                    sweeps::figure(FigureKind::TtftWorstS, n, 2.0 * at_8),
                    sweeps::figure(FigureKind::TokensPerS, n, 60.0 / at_8),
                ]
            });
            let unit = sweeps::unit(round, combination, figures.collect());
            sweep.units.push(unit);
        }
    }
    sweep
}

fn probe() -> Probe {
    Probe {
        schema: "flashrig.probe/1".into(),
        name: "server".into(),
        url: "http://127.0.0.1:1".into(),
        simulated: false,
        speed: None,
        version: Some("1".into()),
        fingerprint: Some("fp".into()),
        models: Some(vec!["org/a-model-of-some-length".to_owned(); 7]),
        model: Some("m".into()),
        context_tokens: Some(4096),
        context_source: ContextSource::Server,
        quantization: None,
        slots: Some(4),
        managed: None,
        endpoints: vec![Endpoint {
            route: "POST /v1/chat/completions".into(),
            status: Some(400),
            state: EndpointState::Refuses,
            message: Some("a sentence of the server that is as long as such sentences are".into()),
        }],
        dialects: vec![DialectTried {
            dialect: Dialect::AnthropicMessages,
            streams: Some(false),
            message: Some("a sentence of the server that is as long as such sentences are".into()),
            tool: None,
            in_profile: Some(true),
        }],
        counted_tokens: Some(12),
        counts_as_usage: Some(false),
        first_tokens: vec![FirstToken {
            prompt_tokens: Some(2000),
            aimed_tokens: None,
            cached_tokens: Some(12),
            first_token_s: Some(Seconds(0.5)),
            message: None,
        }],
        metrics: Vec::<MetricFound>::new(),
        generates: Generates::Yes,
        answer: "it generates".into(),
        remarks: vec!["a remark that is a whole sentence, and goes on until it is long".into()],
    }
}
