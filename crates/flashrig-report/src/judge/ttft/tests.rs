use super::*;
use flashrig_record::LeftOutReason;
use flashrig_record::testing::{said, texts};
use flashrig_record::{
    CellStop, ClientHonesty, ErrorDetail, Host, LeftOut, LoadSpec, RUN_SCHEMA, RecallRule, Rig,
    RunState, Server, ServerReported, Thresholds,
};

fn turn(sent: f64, ttft: Option<f64>, wall: Option<f64>, end: Outcome) -> Turn {
    let whole = end == Outcome::Complete;
    Turn {
        index: 0,
        sent_at_s: Seconds(sent),
        wall_s: wall.map(Seconds),
        ttft_s: ttft.map(Seconds),
        decode_s: None,
        input_tokens: whole.then_some(100),
        cached_tokens: None,
        output_tokens: whole.then_some(10),
        answered_model: None,
        asked: None,
        right: None,
        outcome: end,
        refusal: None,
        error: (!whole).then(|| ErrorDetail {
            message: "no".to_owned(),
            ..ErrorDetail::default()
        }),
    }
}

fn good(ttft: f64) -> Turn {
    turn(0.0, Some(ttft), Some(ttft + 1.0), Outcome::Complete)
}

fn measured(round: u32, turns: Vec<(&str, Turn)>) -> Measured {
    Measured {
        round,
        context_tokens: 2048,
        sessions: u32::try_from(turns.len()).unwrap(),
        idle_wait_s: None,
        reset_s: None,
        idle_by: None,
        start_skew_s: Some(Seconds(0.01)),
        warm_span_s: None,
        lanes: turns
            .into_iter()
            .map(|(id, turn)| Lane {
                id: id.to_owned(),
                turns: vec![turn],
            })
            .collect(),
        side: Vec::new(),
        client: ClientHonesty {
            max_in_flight: Some(8),
            ..ClientHonesty::default()
        },
        reported: ServerReported::default(),
        watched: None,
        stopped: None,
    }
}

fn run(agents: &[u32], measured: Vec<Measured>) -> LoadRun {
    LoadRun {
        schema: RUN_SCHEMA.to_owned(),
        id: "r".to_owned(),
        command: "ttft".to_owned(),
        command_line: Vec::new(),
        started_at: String::new(),
        state: RunState::Finished,
        stopped_because: None,
        rig: Rig {
            version: String::new(),
            sandbox: "none".to_owned(),
            cpu_s: None,
        },
        host: Host {
            os: String::new(),
            arch: String::new(),
            cores: None,
        },
        server: Server {
            name: "s".to_owned(),
            url: "http://h:1".to_owned(),
            simulated: false,
            ..flashrig_record::testing::server()
        },
        spec: LoadSpec {
            contexts: vec![2048],
            sessions: agents.to_vec(),
            rounds: 1,
            auto_rounds: None,
            checks: 0,
            answer_tokens: 10,
            seed: 1,
            think_s: Seconds(0.0),
            stagger_s: Seconds(0.0),
            side: None,
            thresholds: Thresholds {
                pass: 1.5,
                fail: 2.0,
            },
            recall: RecallRule::Off,
            search: false,
            expect: None,
            first_token_limit_s: Seconds(600.0),
            long_tokens: None,
            reset: false,
            shared_prefix: false,
        },
        calibration: None,
        measured,
        left_out: Vec::new(),
        resumed: 0,
        cells: Vec::new(),
        ttft: Vec::new(),
        verdict: None,
    }
}

#[test]
fn times_are_pooled_over_rounds_and_the_spread_is_that_of_one_round() {
    let run = run(
        &[2],
        vec![
            measured(1, vec![("a1", good(1.0)), ("a2", good(3.0))]),
            measured(2, vec![("a1", good(5.0)), ("a2", good(6.0))]),
        ],
    );
    let row = &rows(&run)[0];
    let spread = row.ttft_s.unwrap();
    assert_eq!((row.asked, row.answered, row.rounds), (4, 4, 2));
    assert_eq!(
        (spread.best, spread.worst, spread.n),
        (Seconds(1.0), Seconds(6.0), 4)
    );
    assert_eq!(spread.median, Seconds(4.0));
    assert_eq!(
        spread.spread,
        Seconds(2.0),
        "not 5: no round had both 1 and 6"
    );
    assert_eq!(row.wall_s, Some(Seconds(5.5)), "the median of 4 and 7");
    assert_eq!((row.input_tokens, row.output_tokens), (Some(400), Some(40)));
    assert_eq!(row.cached_tokens, None, "unknown is not 0");
    let speed = row.tokens_per_s.unwrap();
    assert!((speed - (5.0 + 20.0 / 7.0) / 2.0).abs() < 1e-9, "{speed}");
}

#[test]
fn the_long_prompt_is_not_among_the_others() {
    let run = run(
        &[2],
        vec![measured(1, vec![(LONG, good(90.0)), ("a2", good(2.0))])],
    );
    let row = &rows(&run)[0];
    assert_eq!(row.long_ttft_s, Some(Seconds(90.0)));
    assert_eq!(row.ttft_s.unwrap().worst, Seconds(2.0));
}

#[test]
fn failed_requests_are_counted_by_kind_and_leave_no_speed() {
    let stalled = turn(0.0, None, None, Outcome::Stalled);
    let refused = turn(0.0, None, None, Outcome::Overloaded);
    let broken = turn(0.0, Some(2.0), None, Outcome::Truncated);
    let turns = vec![
        ("a1", good(1.0)),
        ("a2", stalled),
        ("a3", refused),
        ("a4", broken),
    ];
    let run = run(&[4, 8], vec![measured(1, turns)]);
    let rows = rows(&run);
    assert_eq!(rows.len(), 1, "what was not measured has no line");
    let row = &rows[0];
    assert_eq!(
        (row.stalled, row.refused, row.failed, row.answered),
        (1, 1, 1, 1)
    );
    assert_eq!((row.wall_s, row.tokens_per_s), (None, None));
    assert_eq!(row.ttft_s.unwrap().n, 2, "a first token that came counts");
    assert_eq!(row.reasons.len(), 3, "{:?}", row.reasons);
}

#[test]
fn requests_that_were_not_open_at_once_are_said_to_be_so() {
    let mut one = measured(1, vec![("a1", good(1.0)), ("a2", good(1.0))]);
    one.client.max_in_flight = Some(1);
    one.client.bottleneck = true;
    let row = &rows(&run(&[2], vec![one]))[0];
    assert!(
        row.reasons[0] == TtftReason::FewerOpen { most: 1 },
        "{:?}",
        row.reasons
    );
    assert!(row.client_bottleneck && row.reasons[1] == TtftReason::ClientBottleneck);
}

#[test]
fn the_answer_names_the_first_and_the_last_number() {
    let mut run = run(
        &[1, 4, 8],
        vec![
            measured(1, vec![("a1", good(0.5))]),
            measured(1, vec![("a1", good(2.0)); 4]),
        ],
    );
    run.left_out.push(LeftOut {
        round: Some(1),
        context_tokens: 2048,
        sessions: 8,
        reason: LeftOutReason::ServerGone,
    });
    let rows = rows(&run);
    let verdict = verdict(&run, &rows, Some(&said("the server is gone")));
    assert_eq!(
        verdict.answer,
        "median TTFT 500 ms alone, 2.00 s with 4 at once (worst 2.00 s)"
    );
    assert_eq!(
        texts(&verdict.warnings),
        ["8 at once: not tried: the server was gone"]
    );
}

#[test]
fn a_stop_is_no_measurement_and_a_refusal_is_a_no() {
    let with = |turns, stopped| {
        let mut one = measured(1, turns);
        one.stopped = stopped;
        let mut run = run(&[2], vec![one]);
        run.ttft = rows(&run);
        answer(&run)
    };
    let refused = || turn(0.0, None, None, Outcome::Refused);
    assert_eq!(
        with(vec![("a1", good(1.0)), ("a2", good(1.0))], None),
        Answer::All
    );
    assert_eq!(
        with(vec![("a1", good(1.0)), ("a2", refused())], None),
        Answer::Some
    );
    assert_eq!(
        with(vec![("a1", refused()), ("a2", refused())], None),
        Answer::Some
    );
    let stall = CellStop {
        kind: StopKind::Stalled,
        reason: said(""),
    };
    let turns = vec![
        ("a1", good(1.0)),
        ("a2", turn(0.0, None, None, Outcome::Stalled)),
    ];
    assert_eq!(with(turns, Some(stall)), Answer::None);
}
