use super::*;
use crate::judge::{arm_figures, round_validity, verdict};
use flashrig_clock::Seconds;
use flashrig_record::SessionFailure;
use flashrig_record::testing::said;
use flashrig_record::testing::{arm, session};
use flashrig_record::*;

fn run(simulated: bool, rounds: Vec<Round>) -> Run {
    let spec = |id: &str| SessionSpec {
        task_folder: None,
        id: id.into(),
        task: id.into(),
        agent: AgentId {
            profile_file: None,
            name: "claude".into(),
            version: Some("2.1.332".into()),
        },
    };
    Run {
        schema: RUN_SCHEMA.into(),
        id: "x".into(),
        command: "pair".into(),
        command_line: Vec::new(),
        started_at: "2026-11-29T19:08:58Z".into(),
        state: RunState::Finished,
        stopped_because: None,
        rig: Rig {
            version: "0".into(),
            sandbox: "bubblewrap".into(),
            cpu_s: None,
        },
        host: Host {
            os: "Linux".into(),
            arch: "x86_64".into(),
            cores: Some(2),
        },
        server: Server {
            name: "sim".into(),
            simulated,
            speed: simulated.then_some(2.0),
            models: Some(vec!["m".to_owned()]),
            ..flashrig_record::testing::server()
        },
        spec: Spec {
            sessions: vec![spec("fix-bug"), spec("add-flag")],
            rounds: 1,
            auto_rounds: None,
            against_itself: false,
            foreign_load_accepted: false,
            cache: CachePolicy::Cold,
            time_limit_s: None,
            thresholds: Thresholds {
                pass: 1.5,
                fail: 2.0,
            },
            gate: None,
            max_prompt_tokens: None,
            answer_probes: false,
            stable_prefix: None,
            first_token_limit_s: None,
            reset: false,
        },
        rounds,
        verdict: None,
    }
}

fn judged(mut run: Run) -> String {
    for round in &mut run.rounds {
        for arm in &mut round.arms {
            arm_figures(arm, Some(2));
        }
        let kinds: Vec<ArmKind> = round.arms.iter().map(|a| a.kind).collect();
        round.invalid_reasons = round_validity(&round.arms, 2, &kinds);
        round.valid = round.invalid_reasons.is_empty();
    }
    run.verdict = Some(verdict(&run, run.state));
    console::set_colors_enabled(false);
    text(&run, View::default())
}

fn round(index: u32, together: [Session; 2], alone: [Session; 2]) -> Round {
    Round {
        index,
        valid: true,
        invalid_reasons: Vec::new(),
        arms: vec![
            arm(ArmKind::Together, together.into()),
            arm(ArmKind::BackToBack, alone.into()),
        ],
    }
}

#[test]
fn a_pair_that_finished_later_together() {
    let together = [
        session("fix-bug", 0.0, 40.0),
        session("add-flag", 0.1, 52.0),
    ];
    let alone = [
        session("fix-bug", 60.0, 80.0),
        session("add-flag", 82.0, 112.0),
    ];
    insta::assert_snapshot!(judged(run(true, vec![round(1, together, alone)])));
}

#[test]
fn a_run_with_a_gated_arm_shows_three_makespans_and_the_time_at_the_gate() {
    let split = |gate: f64| {
        Some(Split {
            startup_s: Seconds(2.0),
            gate_s: Seconds(gate),
            decoding_s: Seconds(18.0),
            ..Split::default()
        })
    };
    let at = |id: &str, start: f64, end: f64, gate: f64| Session {
        split: split(gate),
        ..session(id, start, end)
    };
    let both = |start: f64, ends: [f64; 2], gate: f64| {
        [
            at("fix-bug", start, start + ends[0], gate),
            at("add-flag", start, start + ends[1], gate),
        ]
    };
    let alone = [
        at("fix-bug", 200.0, 220.0, 0.0),
        at("add-flag", 222.0, 252.0, 0.0),
    ];
    let mut round = round(1, both(0.0, [40.0, 52.0], 0.0), alone);
    let gated = both(100.0, [24.0, 45.0], 11.0);
    round.arms.insert(1, arm(ArmKind::Gated, gated.into()));
    let mut run = run(true, vec![round]);
    run.spec.gate = Some(GateSpec {
        limit: 1,
        order: GateOrder::SideFirst,
    });
    run.spec.max_prompt_tokens = Some(32_000);
    insta::assert_snapshot!(judged(run));
}

#[test]
fn a_pair_in_which_one_agent_made_no_request() {
    let lost = |start: f64| {
        let mut s = session("add-flag", start, start + 1.0);
        s.status = Status::NoRequest;
        s.detail = said("the agent exited with code 0 without any request to the server");
        s.failures = vec![SessionFailure::NotCompleted {
            status: s.status,
            detail: s.detail.clone(),
        }];
        s
    };
    let together = [session("fix-bug", 0.0, 40.0), lost(0.0)];
    let alone = [session("fix-bug", 60.0, 80.0), lost(82.0)];
    insta::assert_snapshot!(judged(run(false, vec![round(1, together, alone)])));
}

#[test]
fn a_run_that_measured_nothing_says_so() {
    let mut empty = run(false, Vec::new());
    empty.state = RunState::Failed;
    empty.stopped_because = Some(said("the server is gone"));
    console::set_colors_enabled(false);
    insta::assert_snapshot!(text(&empty, View::default()));
}
