//! What servers say and do not say, end to end: cases C1, C3, C4, D1, E2, F2, K1.

use serde_json::{Value, json};

use crate::pair::faulty::{Answer, Faulty};
use crate::pair::stage::{Agent, GOOD, Ran, Stage, text};

fn pair(steps: &[&str], answer: fn(usize) -> Answer, more: &[&str]) -> (Stage, Ran) {
    let stage = Stage::new();
    stage.agent(&Agent {
        steps,
        end_required: true,
        ..Agent::default()
    });
    let server = Faulty::start(answer);
    let mut args = vec!["--server", &server.url, "--rounds", "1"];
    args.extend(["--fail-above", "1000"]);
    args.extend(more);
    let ran = stage.pair(&args);
    (stage, ran)
}

fn report(stage: &Stage) -> String {
    let folder = stage.results().display().to_string();
    stage.run(&["report", "--wide", &folder]).stdout
}

const PROBING: [&str; 8] = [
    "probe HEAD /",
    "probe GET /api/hello",
    "probe GET /v1/models/m",
    "probe POST /v1/messages/count_tokens",
    "probe GET /v1/elsewhere",
    "ask",
    GOOD[1],
    GOOD[2],
];

/// The status of each probe, by path, in the first session.
fn probes(stage: &Stage) -> Vec<(String, u64, Value)> {
    let lines = stage.result_text("requests.jsonl");
    lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|row| row["role"] == "probe" && row["arm"] == "together")
        .map(|row| {
            (
                text(&row, "path").to_owned(),
                row["status"].as_u64().unwrap(),
                row["answered_by_gateway"]["kind"].clone(),
            )
        })
        .collect()
}

#[test]
fn probes_that_the_server_does_not_know_are_answered_by_flashrig_when_it_is_told_to() {
    let (stage, ran) = pair(&PROBING, |_| Answer::Good, &["--answer-probes"]);
    let row = |path: &str, status, kind: Value| (path.to_owned(), status, kind);
    assert_eq!(
        probes(&stage),
        [
            row("/", 200, json!("greeting")),
            row("/api/hello", 200, json!("greeting")),
            row("/v1/models/m", 200, json!("models")),
            row("/v1/messages/count_tokens", 200, json!("token_estimate")),
            row("/v1/elsewhere", 404, Value::Null),
        ]
    );
    for session in ran.both("completed") {
        assert_eq!(session["answered_by_gateway"], 4);
        assert_eq!(session["probe_requests"], 5);
        // What is asked for stays listed, whoever answers.
        let routes = [
            json!({"method": "HEAD", "path": "/", "status": 200, "requests": 1}),
            json!({"method": "GET", "path": "/api/hello", "status": 200, "requests": 1}),
            json!({"method": "GET", "path": "/v1/elsewhere", "status": 404, "requests": 1}),
        ];
        assert_eq!(session["unknown_routes"], json!(routes));
    }
    assert_eq!(ran.record()["spec"]["answer_probes"], true);
    assert_eq!(ran.functional(), "pass");
    let said = report(&stage);
    assert!(
        said.contains("Probes: flashrig answered 8 of 10 itself (--answer-probes)"),
        "{said}"
    );
}

#[test]
fn without_being_told_to_flashrig_answers_no_probe_and_their_404s_are_no_failed_run() {
    let (stage, ran) = pair(&PROBING, |_| Answer::Good, &[]);
    let all = probes(&stage);
    assert_eq!(all.len(), 5);
    for (path, status, answered) in all {
        assert_eq!((status, answered), (404, Value::Null), "{path}");
    }
    for session in ran.both("completed") {
        assert_eq!(session["answered_by_gateway"], 0);
    }
    assert_eq!(ran.record()["spec"]["answer_probes"], false);
    assert_eq!(ran.functional(), "pass");
    assert!(!report(&stage).contains("Probes:"));
}

#[test]
fn a_stable_prefix_that_the_server_lost_is_laid_at_its_door() {
    let steps = ["ask", "ask", "ask", GOOD[1], GOOD[2]];
    let (stage, ran) = pair(&steps, |_| Answer::Forgotten, &[]);
    for session in ran.both("completed") {
        let prefix = &session["prefix"];
        let figures = ["turns", "changed", "judged", "lost", "reused_tokens"];
        let got: Vec<&Value> = figures.iter().map(|name| &prefix[name]).collect();
        assert_eq!(got, [2, 0, 2, 2, 0], "{prefix}");
        assert!(
            prefix["reusable_tokens"].as_u64().unwrap() > 1000,
            "{prefix}"
        );
    }
    let said = report(&stage);
    let want = "Prompt prefix of mine: stable in all 4 turns; the server lost a stable prefix in 4 of \
                4 turns";
    assert!(said.contains(want), "{said}");
    assert!(!said.contains("the agent changed its prefix"), "{said}");
}

#[test]
fn an_overflow_that_fails_all_in_flight_is_one_event_of_the_server_and_gives_no_ratio() {
    // Together both fail; alone, later, each is answered.
    let answer = |n| match n {
        1 | 2 => Answer::FailedTogether(2),
        _ => Answer::Good,
    };
    let (stage, ran) = pair(&GOOD, answer, &["--task", "tiny", "--task", "tiny"]);
    let record = ran.record();
    let arms = ran.arms();
    let events = arms[0]["server_events"].as_array().unwrap();
    assert_eq!(arms[0]["kind"], "together");
    assert_eq!(events.len(), 1, "{events:#?}");
    assert_eq!(events[0]["sessions"], json!(["tiny", "tiny-2"]));
    assert_eq!(
        (&events[0]["requests"], &events[0]["status"]),
        (&json!(2), &json!(500))
    );
    assert_eq!(arms[1]["server_events"], json!([]));
    let round = &record["rounds"][0];
    assert_eq!(round["valid"], false);
    let want = "the server failed as a whole: all 2 requests in flight failed at once (500: context \
                does not fit), of tiny and tiny-2";
    let reasons = round["invalid_reasons"].as_array().unwrap();
    assert_eq!(reasons.len(), 1, "{reasons:#?}");
    assert_eq!(reasons[0]["code"], "server_failed");
    assert_eq!(reasons[0]["text"], format!("together: {want}"));
    let verdict = &record["verdict"];
    assert_eq!(verdict["worst_slowdown"]["value"], Value::Null);
    assert_eq!(verdict["together_over_back_to_back"]["value"], Value::Null);
    assert_eq!(verdict["functional"], "fail");
    let reasons = verdict["reasons"].as_array().unwrap();
    let texts: Vec<&str> = reasons.iter().map(|reason| text(reason, "text")).collect();
    let want = [
        format!("together, round 1: {want}"),
        format!("round 1 is not compared: together: {want}"),
    ];
    assert_eq!(texts, want);
    assert!(report(&stage).contains("the server failed as a whole"));
}

#[test]
fn a_refused_request_shape_is_the_servers_doing_in_its_own_words_with_the_field() {
    let answer = |_| {
        Answer::Says(
            "400 Bad Request",
            r#"{"error":{"message":"messages[1].role: system is not allowed here","type":"invalid_request_error"}}"#,
        )
    };
    let (_stage, ran) = pair(&["ask", "exit 1"], answer, &[]);
    for session in ran.both("server_refused") {
        let detail = text(&session, "detail");
        assert!(
            detail.starts_with("the server rejects the shape of the agent's requests: request 1 (400): messages[1].role: system is not allowed here (field messages[1].role)"),
            "{detail}"
        );
    }
}

#[test]
fn a_context_that_is_too_small_is_named_with_the_knob_to_turn() {
    let answer = |_| {
        Answer::Says(
            "400 Bad Request",
            r#"{"error":{"message":"'max_tokens' is too large: 32000. This model's maximum context length is 8192 tokens"}}"#,
        )
    };
    let (_stage, ran) = pair(&["ask", "exit 1"], answer, &[]);
    for session in ran.both("server_refused") {
        let detail = text(&session, "detail");
        assert!(detail.starts_with("context too small: "), "{detail}");
        assert!(
            detail.contains("maximum context length is 8192"),
            "{detail}"
        );
        assert!(detail.contains("give --context the length"), "{detail}");
    }
}

#[test]
fn a_stream_that_lacks_required_fields_is_named_with_them_and_the_same_again_is_a_retry() {
    // The client asks the same again, as one does that refuses the answer.
    let steps = ["ask-twice", GOOD[1], GOOD[2]];
    let (_stage, ran) = pair(&steps, |_| Answer::Lacking, &[]);
    for session in ran.sessions() {
        assert_eq!(session["repeats"], 1, "{session:#}");
        assert_eq!(
            session["missing_fields"],
            json!([{"field": "choices", "streams": 2}])
        );
    }
    let warnings = ran.record()["verdict"]["warnings"].to_string();
    assert!(
        warnings.contains("tiny: its streams lack required fields, by the number of streams: choices (2); its client may refuse such answers: 2 requests were sent again"),
        "{warnings}"
    );
}

#[test]
fn a_clients_own_limit_stands_above_what_the_session_may_take() {
    let stage = Stage::new();
    stage.agent(&Agent {
        steps: &["ask", "sh echo $LIMIT > limit.txt", GOOD[1], GOOD[2]],
        ..Agent::default()
    });
    let path = "harness/agents/mine.toml";
    let profile = std::fs::read_to_string(stage.project().join(path)).unwrap();
    let with_limit = profile.replace("[env]\n", "[env]\nLIMIT = \"{client_limit_ms}\"\n");
    stage.write(path, &with_limit);
    let ran = stage.pair(&["--keep", "--time-limit", "5m"]);
    for session in ran.both("completed") {
        let file = format!("sessions/{}/workspace/limit.txt", text(&session, "folder"));
        let limit: u64 = stage.result_text(&file).trim().parse().unwrap();
        assert!(limit > 5 * 60 * 1000, "{limit}");
    }
}
