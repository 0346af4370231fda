use super::*;
use flashrig_record::testing::attempt;
use flashrig_record::{ErrorDetail, RefusalKind};

fn evidence<'a>(attempts: &'a [Attempt], transcript: &'a Summary, exit: Exit) -> Evidence<'a> {
    Evidence {
        ending: Ending::Exited,
        exit,
        transcript,
        end_required: true,
        attempts,
        context_tokens: Some(8192),
        stderr_tail: "",
    }
}

fn done() -> Summary {
    Summary {
        turns: Some(2),
        tool_calls: Some(1),
        ended: true,
        error: None,
        turn_limit: false,
    }
}

#[test]
fn exit_0_after_a_failed_last_request_is_a_server_error() {
    let mut lost = attempt(Role::Main, Outcome::Overloaded, 3.0, None, 4.0);
    lost.status = Some(529);
    let attempts = [
        attempt(Role::Main, Outcome::Complete, 1.0, Some(1.5), 2.0),
        lost,
    ];
    let summary = Summary {
        error: Some("API Error".into()),
        ..done()
    };
    let outcome = judge(&evidence(&attempts, &summary, Exit::Code(0)));
    assert_eq!(outcome.status, Status::ServerError);
    assert_eq!(
        outcome.detail.to_string(),
        "the server was too busy for request 1 (529)"
    );
}

#[test]
fn exit_1_after_a_recovered_error_is_completed_and_says_so() {
    let attempts = [
        attempt(Role::Main, Outcome::Overloaded, 1.0, None, 1.5),
        attempt(Role::Main, Outcome::Complete, 2.0, Some(2.5), 3.0),
    ];
    let outcome = judge(&evidence(&attempts, &done(), Exit::Code(1)));
    assert_eq!(outcome.status, Status::Completed);
    assert!(
        outcome.detail.to_string().contains("code 1"),
        "{}",
        outcome.detail
    );
}

#[test]
fn exit_0_without_any_request_is_no_request_whatever_the_transcript_says() {
    let outcome = judge(&evidence(&[], &done(), Exit::Code(0)));
    assert_eq!(outcome.status, Status::NoRequest);
}

#[test]
fn a_result_without_an_exit_is_completed_no_exit() {
    let attempts = [attempt(Role::Main, Outcome::Complete, 1.0, Some(1.5), 2.0)];
    let summary = done();
    let mut e = evidence(&attempts, &summary, Exit::Stopped);
    e.ending = Ending::DidNotExit;
    assert_eq!(judge(&e).status, Status::CompletedNoExit);
}

#[test]
fn a_time_limit_amid_a_flowing_answer_says_that_it_flowed() {
    let mut open = attempt(Role::Main, Outcome::ClientAborted, 1.0, Some(1.5), 9.0);
    open.clocks.last_token_s = Some(flashrig_clock::Seconds(8.9));
    let attempts = [open];
    let message = cut_off_request(&attempts);
    assert_eq!(message, Some(RequestTrouble::StillAnswered { request: 1 }));
}

#[test]
fn a_time_limit_with_a_request_open_tells_how_long_the_server_was_silent() {
    let mut open = attempt(Role::Main, Outcome::ClientAborted, 1.0, Some(1.5), 9.0);
    open.clocks.last_token_s = Some(flashrig_clock::Seconds(2.0));
    let summary = Summary::default();
    let attempts = [open];
    let mut e = evidence(&attempts, &summary, Exit::Stopped);
    e.ending = Ending::TimeLimit(Duration::from_secs(8));
    let outcome = judge(&e);
    assert_eq!(outcome.status, Status::Timeout);
    assert_eq!(
        outcome.detail.to_string(),
        "not done within 8 s; raise it with --time-limit, if the server is just slow; request 1 was \
         cut off after 7.0 s without a further token"
    );
}

#[test]
fn a_time_limit_while_the_gate_held_the_request_is_not_laid_at_the_servers_door() {
    let mut held = attempt(Role::Main, Outcome::ClientAborted, 1.0, None, 9.0);
    held.gate = Some(flashrig_record::GateFact {
        let_in: 1,
        in_line: 0,
        overtaken: 0,
    });
    let message = cut_off_request(&[held]);
    assert_eq!(
        message.map(|m| m.to_string()).as_deref(),
        Some("request 1 had been held by flashrig's gate for 8.0 s")
    );
}

#[test]
fn a_crash_before_the_result_is_an_agent_error_with_its_last_words() {
    let attempts = [attempt(Role::Main, Outcome::Complete, 1.0, Some(1.5), 2.0)];
    let summary = Summary {
        ended: false,
        ..done()
    };
    let mut e = evidence(&attempts, &summary, Exit::Code(134));
    e.stderr_tail = "panic: out of cheese";
    let outcome = judge(&e);
    assert_eq!(outcome.status, Status::AgentError);
    assert!(
        outcome.detail.to_string().contains("out of cheese"),
        "{}",
        outcome.detail
    );
}

#[test]
fn a_prompt_beyond_the_context_names_the_knob() {
    let mut refused = attempt(Role::Main, Outcome::Refused, 1.0, None, 1.1);
    refused.status = Some(400);
    refused.refusal = Some(RefusalKind::ContextTooSmall);
    refused.error = Some(ErrorDetail {
        kind: Some("invalid_request_error".into()),
        message: "Prompt exceeds maximum context length: 40000 tokens requested, 8192 available"
            .into(),
        field: None,
    });
    let attempts = [refused];
    let outcome = judge(&evidence(&attempts, &done(), Exit::Code(1)));
    assert_eq!(outcome.status, Status::ServerRefused);
    assert!(
        outcome.detail.to_string().starts_with("context too small"),
        "{}",
        outcome.detail
    );
    assert!(
        outcome
            .detail
            .to_string()
            .contains("40000 tokens requested"),
        "{}",
        outcome.detail
    );
}

#[test]
fn an_agent_that_stops_before_any_request_is_quoted_with_the_context_that_it_was_given() {
    let summary = Summary {
        error: Some("Prompt is too long".into()),
        ..Summary::default()
    };
    let outcome = judge(&evidence(&[], &summary, Exit::Code(1)));
    assert_eq!(outcome.status, Status::NoRequest);
    assert_eq!(
        outcome.detail.to_string(),
        "the agent exited with code 1 without any request to the server; its last error: Prompt is \
         too long (it was told a context of 8192 tokens)"
    );
}
