//! Made-up records, for tests. Behind the feature `testing`.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use flashrig_clock::Seconds;

use crate::*;

/// A context length of fit runs, in tokens.
pub const K32: u64 = 32_768;
/// Another one, in tokens.
pub const K256: u64 = 262_144;
/// Warm turns of a fit run's session.
pub const CHECKS: u32 = 3;
/// The thresholds that are in force when nobody says otherwise.
pub const THRESHOLDS: Thresholds = Thresholds {
    pass: 1.5,
    fail: 2.0,
};

/// Facts as their sentences.
pub fn texts<F: ToString>(facts: &[F]) -> Vec<String> {
    facts.iter().map(F::to_string).collect()
}

/// A fact of which only the sentence is known.
pub fn said<F: Fact>(text: &str) -> F {
    F::other(text.to_owned())
}

/// An attempt from `head` to `end`, in seconds.
pub fn attempt(
    role: Role,
    end: Outcome,
    head: f64,
    first_token: Option<f64>,
    ended: f64,
) -> Attempt {
    Attempt {
        number: 1,
        method: "POST".into(),
        path: "/v1/messages".into(),
        model: Some("m".into()),
        stream: true,
        tools: Some(3),
        messages: Some(1),
        status: Some(200),
        outcome: end,
        request_bytes: 100,
        response_bytes: 100,
        input_tokens: Some(100),
        cached_tokens: Some(40),
        output_tokens: Some(10),
        content_events: 10,
        clocks: Clocks {
            head_s: Seconds(head),
            first_token_s: first_token.map(Seconds),
            end_s: Seconds(ended),
            ..Clocks::default()
        },
        ..Attempt::begun(Dialect::AnthropicMessages, role)
    }
}

/// A completed session with the given span and no traffic.
pub fn session(id: &str, start: f64, end: f64) -> Session {
    Session {
        id: id.into(),
        folder: id.into(),
        task: id.into(),
        agent: AgentId {
            profile_file: None,
            name: "command".into(),
            version: None,
        },
        status: Status::Completed,
        detail: SessionDetail::Completed,
        started_s: Some(Seconds(start)),
        ended_s: Some(Seconds(end)),
        wall_s: Some(Seconds(end - start)),
        split: None,
        exit: Exit::Code(0),
        requests: 1,
        sub_agent_requests: 0,
        side_requests: 0,
        probe_requests: 0,
        answered_by_gateway: 0,
        refusals: 0,
        lost_streams: 0,
        repeats: 0,
        repeats_open: 0,
        amplification: None,
        unknown_routes: Vec::new(),
        missing_fields: Vec::new(),
        models_asked: Vec::new(),
        other_models: Vec::new(),
        rejected_requests: 0,
        long_prompts: 0,
        redirected: None,
        unmarked_requests: 0,
        odd_answers: Vec::new(),
        cut_prompts: None,
        first_cached_tokens: None,
        tree_end: None,
        verified: true,
        turns: None,
        tool_calls: None,
        input_tokens: None,
        cached_tokens: None,
        output_tokens: None,
        prefix: None,
        bodies: None,
        cpu_s: None,
        peak_rss_bytes: None,
        leftovers: Vec::new(),
        egress: Vec::new(),
        tried_to_leave: false,
        checks: Vec::new(),
        diff: None,
        failures: Vec::new(),
    }
}

/// A rig without a sandbox.
pub fn rig() -> Rig {
    Rig {
        version: "0".into(),
        sandbox: "none".into(),
        cpu_s: None,
    }
}

/// A host of which nothing is known.
pub fn host() -> Host {
    Host {
        os: "os".into(),
        arch: "arch".into(),
        cores: None,
    }
}

/// A simulated server of which little is known.
pub fn server() -> Server {
    Server {
        profile_file: None,
        url: "http://127.0.0.1:1".into(),
        name: "server".into(),
        simulated: true,
        speed: None,
        settings: Vec::new(),
        version: None,
        model: "m".into(),
        models: None,
        quantization: None,
        context_tokens: None,
        context_source: ContextSource::Unknown,
        context_reported_tokens: None,
        managed: None,
        life: Vec::new(),
    }
}

/// A run of these sessions before its first round.
pub fn run(ids: &[&str]) -> Run {
    let spec = |id: &&str| SessionSpec {
        task_folder: None,
        id: (*id).into(),
        task: (*id).into(),
        agent: AgentId {
            profile_file: None,
            name: "command".into(),
            version: None,
        },
    };
    Run {
        schema: RUN_SCHEMA.into(),
        id: "run".into(),
        command: "pair".into(),
        command_line: Vec::new(),
        started_at: "2026-01-01T00:00:00Z".into(),
        state: RunState::Finished,
        stopped_because: None,
        rig: rig(),
        host: host(),
        server: server(),
        spec: Spec {
            sessions: ids.iter().map(spec).collect(),
            rounds: 1,
            auto_rounds: None,
            cache: CachePolicy::Keep,
            time_limit_s: None,
            thresholds: THRESHOLDS,
            gate: None,
            against_itself: false,
            foreign_load_accepted: false,
            max_prompt_tokens: None,
            answer_probes: false,
            stable_prefix: None,
            first_token_limit_s: None,
            reset: false,
        },
        rounds: Vec::new(),
        verdict: None,
    }
}

/// An arm of these sessions.
pub fn arm(kind: ArmKind, sessions: Vec<Session>) -> Arm {
    Arm {
        sessions,
        ..Arm::unmeasured(kind)
    }
}

/// A run before its first combination.
pub fn fit_run(contexts: &[u64], sessions: &[u32], rounds: u32) -> LoadRun {
    LoadRun {
        schema: RUN_SCHEMA.into(),
        id: "20260101T000000Z-fit".into(),
        command: "fit".into(),
        command_line: Vec::new(),
        started_at: "2026-01-01T00:00:00Z".into(),
        state: RunState::Finished,
        stopped_because: None,
        rig: rig(),
        host: host(),
        server: Server {
            name: "flash-next".into(),
            speed: Some(200.0),
            version: Some("0.1.0".into()),
            models: Some(vec!["m".to_owned()]),
            context_tokens: Some(K256),
            context_source: ContextSource::Server,
            ..server()
        },
        spec: LoadSpec {
            contexts: contexts.to_vec(),
            sessions: sessions.to_vec(),
            rounds,
            auto_rounds: None,
            checks: CHECKS,
            answer_tokens: 100,
            seed: 1,
            think_s: Seconds(0.0),
            stagger_s: Seconds(0.0),
            side: None,
            thresholds: Thresholds {
                pass: 1.5,
                fail: 2.0,
            },
            recall: RecallRule::AsAlone,
            search: false,
            expect: None,
            first_token_limit_s: Seconds(900.0),
            long_tokens: None,
            reset: false,
            shared_prefix: false,
        },
        calibration: None,
        measured: Vec::new(),
        left_out: Vec::new(),
        resumed: 0,
        cells: Vec::new(),
        ttft: Vec::new(),
        verdict: None,
    }
}

/// A turn of so many seconds.
pub fn turn(index: u32, wall_s: f64) -> Turn {
    Turn {
        index,
        sent_at_s: Seconds(0.0),
        wall_s: Some(Seconds(wall_s)),
        ttft_s: Some(Seconds(1.0)),
        decode_s: Some(Seconds(wall_s - 1.0)),
        input_tokens: Some(1000),
        cached_tokens: Some(if index == 0 { 0 } else { 900 }),
        output_tokens: Some(100),
        answered_model: None,
        asked: (index > 0).then(|| "K0001".into()),
        right: (index > 0).then_some(true),
        outcome: Outcome::Complete,
        refusal: None,
        error: None,
    }
}

/// A combination whose sessions' warm turns take so long each.
pub fn measured(round: u32, context_tokens: u64, walls: &[f64]) -> Measured {
    let lane = |(index, wall): (usize, &f64)| Lane {
        id: format!("s{}", index + 1),
        turns: (0..=CHECKS).map(|i| turn(i, *wall)).collect(),
    };
    let longest = walls.iter().copied().reduce(f64::max).unwrap();
    Measured {
        round,
        context_tokens,
        sessions: u32::try_from(walls.len()).unwrap(),
        idle_wait_s: None,
        reset_s: None,
        idle_by: None,
        start_skew_s: Some(Seconds(0.001)),
        warm_span_s: Some(Seconds(longest * f64::from(CHECKS))),
        lanes: walls.iter().enumerate().map(lane).collect(),
        side: Vec::new(),
        client: ClientHonesty::default(),
        reported: ServerReported::default(),
        watched: None,
        stopped: None,
    }
}
