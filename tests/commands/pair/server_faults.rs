//! Servers that refuse, break off or fall silent, and agents that hide it: cases D2, F3, J1.

use serde_json::Value;

use crate::pair::faulty::{Answer, Faulty};
use crate::pair::stage::{Agent, GOOD, Ran, Stage, text};

/// A pair of one scripted agent on a server that answers as told.
fn pair(agent: &Agent<'_>, answer: fn(usize) -> Answer, more: &[&str]) -> Ran {
    let stage = Stage::new();
    stage.agent(agent);
    let server = Faulty::start(answer);
    let mut args = vec!["--server", &server.url, "--rounds", "1"];
    args.extend(more);
    stage.pair(&args)
}

fn good_steps() -> Agent<'static> {
    Agent {
        steps: &GOOD,
        end_required: true,
        ..Agent::default()
    }
}

fn assert_failed(ran: &Ran) {
    assert_eq!(ran.functional(), "fail", "{ran:#?}");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
}

#[test]
fn a_server_that_answers_whole_makes_a_plain_pass() {
    let ran = pair(&good_steps(), |_| Answer::Good, &["--fail-above", "1000"]);
    for session in ran.both("completed") {
        assert_eq!(session["input_tokens"], 100);
        assert_eq!(session["output_tokens"], 3);
        // This server does not tell them, and unknown is not zero.
        assert_eq!(session["cached_tokens"], Value::Null);
    }
    assert_eq!(ran.functional(), "pass");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

#[test]
fn a_truncated_answer_is_never_success_though_work_and_result_line_are_there() {
    let ran = pair(&good_steps(), |_| Answer::Truncated, &[]);
    for session in ran.both("server_error") {
        assert_eq!(session["lost_streams"], 1);
        let detail = text(&session, "detail");
        assert!(
            detail.starts_with("the server broke off its answer to request 1"),
            "{detail}"
        );
    }
    assert_failed(&ran);
}

#[test]
fn an_error_event_after_a_200_is_never_success_and_the_servers_words_are_shown() {
    let ran = pair(&good_steps(), |_| Answer::ErrorEvent, &[]);
    for session in ran.both("server_error") {
        assert_eq!(session["lost_streams"], 1);
        let detail = text(&session, "detail");
        assert!(
            detail.starts_with("the server reported an error within its answer to request 1"),
            "{detail}"
        );
        assert!(detail.contains("out of memory"), "{detail}");
    }
    assert_failed(&ran);
}

#[test]
fn an_answer_that_falls_silent_is_never_success_and_the_words_name_the_open_request() {
    let ran = pair(&good_steps(), |_| Answer::Silent, &["--time-limit", "7s"]);
    for session in ran.both("timeout") {
        let detail = text(&session, "detail");
        assert!(
            detail.contains("request 1 was cut off after")
                && detail.contains("without a further token"),
            "{detail}"
        );
    }
    assert_failed(&ran);
}

#[test]
fn a_broken_answer_that_was_got_over_still_counts_as_a_lost_stream() {
    let agent = Agent {
        steps: &["ask", "ask", "write greeting.txt hello", "result"],
        ..good_steps()
    };
    let ran = pair(
        &agent,
        |n| {
            if n % 2 == 1 {
                Answer::Truncated
            } else {
                Answer::Good
            }
        },
        &[],
    );
    for session in ran.both("completed") {
        assert_eq!(session["lost_streams"], 1);
        assert_eq!(session["repeats"], 1);
        assert!(session["failures"].to_string().contains("broke off"));
    }
    assert_failed(&ran);
}

#[test]
fn an_agent_that_gives_up_on_529_and_sits_is_idle_soon_and_the_refusal_is_counted() {
    let agent = Agent {
        steps: &["ask", "hang"],
        idle_limit: "3s",
        ..Agent::default()
    };
    let ran = pair(&agent, |_| Answer::Overloaded, &[]);
    for session in ran.both("idle") {
        assert_eq!(session["refusals"], 1);
        let detail = text(&session, "detail");
        assert!(
            detail.contains("the server was too busy for request 1 (529): come back later"),
            "{detail}"
        );
    }
    assert_failed(&ran);
}

#[test]
fn an_agent_that_gives_up_on_529_and_exits_is_a_server_error() {
    let agent = Agent {
        steps: &["ask", "exit 0"],
        ..Agent::default()
    };
    let ran = pair(&agent, |_| Answer::Overloaded, &[]);
    for session in ran.both("server_error") {
        assert_eq!(session["refusals"], 1);
        assert!(text(&session, "detail").contains("too busy for request 1 (529)"));
    }
    assert_failed(&ran);
}

#[test]
fn exit_0_and_a_result_line_after_a_refused_last_request_is_no_success() {
    let agent = Agent {
        steps: &["ask", "ask", "write greeting.txt hello", "result", "exit 0"],
        ..good_steps()
    };
    let ran = pair(
        &agent,
        |n| {
            if n % 2 == 1 {
                Answer::Good
            } else {
                Answer::Refused
            }
        },
        &[],
    );
    for session in ran.both("server_refused") {
        assert_eq!(session["exit"]["value"], 0);
        assert!(text(&session, "detail").contains("no such thing"));
    }
    assert_failed(&ran);
}

#[test]
fn exit_1_after_a_recovered_request_and_a_result_line_is_completed() {
    let agent = Agent {
        steps: &["ask", "ask", "write greeting.txt hello", "result", "exit 1"],
        ..good_steps()
    };
    let ran = pair(
        &agent,
        |n| {
            if n % 2 == 1 {
                Answer::Overloaded
            } else {
                Answer::Good
            }
        },
        &[],
    );
    for session in ran.both("completed") {
        assert_eq!(session["exit"]["value"], 1);
        let detail = text(&session, "detail");
        assert!(detail.contains("exited with code 1"), "{detail}");
        assert!(session["split"]["backoff_s"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn an_error_told_by_the_agent_itself_is_an_agent_error_whatever_its_exit_code() {
    let agent = Agent {
        steps: &[
            "ask",
            r#"say {"type":"error","message":"lost my way"}"#,
            "exit 0",
        ],
        ..good_steps()
    };
    let ran = pair(&agent, |_| Answer::Good, &[]);
    for session in ran.both("agent_error") {
        assert!(text(&session, "detail").contains("lost my way"));
    }
    assert_failed(&ran);
}

#[test]
fn a_result_line_after_a_line_of_8_mib_is_found() {
    let agent = Agent {
        steps: &["ask", "write greeting.txt hello", "noise 8388608", "result"],
        ..good_steps()
    };
    let ran = pair(&agent, |_| Answer::Good, &["--fail-above", "1000"]);
    ran.both("completed");
    assert_eq!(ran.functional(), "pass");
}

#[test]
fn a_request_sent_again_while_the_first_still_runs_is_called_out_with_its_amplification() {
    let agent = Agent {
        steps: &["ask-twice", "write greeting.txt hello", "result"],
        ..good_steps()
    };
    let answer = |n| {
        if n % 2 == 1 {
            Answer::Silent
        } else {
            Answer::Good
        }
    };
    let ran = pair(&agent, answer, &["--fail-above", "1000"]);
    for session in ran.both("completed") {
        assert_eq!(session["repeats_open"], 1);
        assert_eq!(session["amplification"], 2.0);
    }
    let warnings = ran.record()["verdict"]["warnings"].to_string();
    assert!(
        warnings.contains("sent 2 requests again while the first still ran (up to 2.0"),
        "{warnings}"
    );
}

#[test]
fn another_model_than_the_one_asked_for_is_told() {
    let ran = pair(
        &good_steps(),
        |_| Answer::OtherModel,
        &["--fail-above", "1000"],
    );
    for session in ran.both("completed") {
        assert_eq!(
            session["other_models"],
            serde_json::json!([{"asked": "m", "answered": "small", "answers": 1}])
        );
    }
    let warnings = ran.record()["verdict"]["warnings"].to_string();
    let message = "another model than the one asked for answered";
    assert!(warnings.contains(message), "{warnings}");
}

#[test]
fn unknown_routes_and_models_are_listed_and_a_probes_404_fails_nothing() {
    let agent = Agent {
        steps: &[
            "probe HEAD /",
            "probe POST /v1/messages/count_tokens",
            "probe HEAD /",
            "ask",
            "write greeting.txt hello",
            "result",
        ],
        ..good_steps()
    };
    let ran = pair(&agent, |_| Answer::Good, &["--fail-above", "1000"]);
    for session in ran.both("completed") {
        let count = "/v1/messages/count_tokens";
        let routes = serde_json::json!([
            {"method": "HEAD", "path": "/", "status": 404, "requests": 2},
            {"method": "POST", "path": count, "status": 404, "requests": 1},
        ]);
        assert_eq!(session["unknown_routes"], routes);
        assert_eq!(session["models_asked"], serde_json::json!(["m"]));
        assert_eq!(session["refusals"], 0);
    }
    assert_eq!(ran.functional(), "pass");
}
