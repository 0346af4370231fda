//! How a session ended: the verdict from its last event, its traffic and its exit together.
//!
//! An exit code is evidence, not the verdict (case J1): agents exit 0 after a failed request,
//! 1 after a recovered one, or not at all. Pure.

use super::Summary;
use crate::records::{Attempt, End, Exit, Role, Status};

/// Why a session's process is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It exited by itself.
    Exited,
    /// It told its result and did not exit within the grace.
    DidNotExit,
    /// No main request within the limit, in words.
    NoRequestInTime(String),
    /// Nothing happened for the limit with no request open, in words.
    Idle(String),
    /// The session's time limit, in words.
    TimeLimit(String),
    /// The run was stopped.
    Interrupted,
    /// The rig failed, in words.
    RigFailed(String),
}

/// What is known of a session once its process is gone.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    /// Why it is gone.
    pub ending: Ending,
    /// How the process ended.
    pub exit: Exit,
    /// What its transcript told.
    pub transcript: &'a Summary,
    /// Whether the transcript should have told the end.
    pub end_required: bool,
    /// Its requests, roles settled.
    pub attempts: &'a [Attempt],
    /// The last lines of its standard error.
    pub stderr_tail: &'a str,
}

/// A status with its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The status.
    pub status: Status,
    /// What is known of the cause, and what to do next.
    pub detail: String,
}

/// Judges one session.
pub fn judge(evidence: &Evidence<'_>) -> Outcome {
    let Evidence {
        ending,
        exit,
        transcript,
        attempts,
        ..
    } = evidence;
    let outcome = |status: Status, detail: String| Outcome { status, detail };
    let reached = |a: &&Attempt| a.role == Role::Main && a.end != End::RejectedByGateway;
    let mains = attempts.iter().filter(reached).count();
    match ending {
        Ending::RigFailed(words) => return outcome(Status::RigError, words.clone()),
        Ending::Interrupted => {
            return outcome(Status::Interrupted, "the run was stopped".to_owned());
        }
        Ending::TimeLimit(words) => {
            let cause = cut_off_request(attempts).or_else(|| last_failure(attempts));
            let cause = cause.map_or_else(String::new, |c| format!("; {c}"));
            return outcome(Status::Timeout, format!("{words}{cause}"));
        }
        Ending::NoRequestInTime(words) => {
            return outcome(Status::NoRequest, with_stderr(words, evidence));
        }
        Ending::Idle(words) => {
            let cause = last_failure(attempts).map_or_else(String::new, |f| format!("; {f}"));
            return outcome(
                Status::Idle,
                with_stderr(&format!("{words}{cause}"), evidence),
            );
        }
        Ending::Exited | Ending::DidNotExit => {}
    }
    if mains == 0 {
        let turned_away = last_failure(attempts).map_or_else(
            || "it did not reach the model: check its settings and its standard error".to_owned(),
            |why| format!("{why}; does it send the token that it is given?"),
        );
        let words = format!(
            "the agent {} without any request to the server; {turned_away}",
            exit_words(*exit)
        );
        return outcome(Status::NoRequest, with_stderr(&words, evidence));
    }
    if transcript.turn_limit {
        return outcome(
            Status::TurnLimit,
            "the agent reached its own limit of turns".to_owned(),
        );
    }
    if let Some((status, words)) = lost_last_request(attempts) {
        return outcome(status, words);
    }
    if let Some(error) = &transcript.error {
        return outcome(
            Status::AgentError,
            format!("the agent reported an error: {error}"),
        );
    }
    if let Exit::Signal(signal) = exit {
        let words = format!("the agent was ended by signal {signal}, which flashrig did not send");
        return outcome(Status::AgentError, with_stderr(&words, evidence));
    }
    if evidence.end_required && !transcript.ended {
        let words = format!("the agent {} without telling its result", exit_words(*exit));
        return outcome(Status::AgentError, with_stderr(&words, evidence));
    }
    if !transcript.ended && matches!(exit, Exit::Code(code) if *code != 0) {
        let words = format!("the agent {}", exit_words(*exit));
        return outcome(Status::AgentError, with_stderr(&words, evidence));
    }
    match (ending, exit) {
        (Ending::DidNotExit, _) => outcome(
            Status::CompletedNoExit,
            "the agent told its result and did not exit; it was ended after the grace".to_owned(),
        ),
        (_, Exit::Code(code)) if *code != 0 => outcome(
            Status::Completed,
            format!("completed; it exited with code {code} although its last request succeeded"),
        ),
        _ => outcome(Status::Completed, "completed".to_owned()),
    }
}

/// The last main request, when the server refused it, failed it or broke it off, and the agent
/// made no further one.
fn lost_last_request(attempts: &[Attempt]) -> Option<(Status, String)> {
    let last = last_main(attempts)?;
    let words = failure_words(last)?;
    let status = match last.end {
        End::Refused => Status::ServerRefused,
        End::RejectedByGateway => Status::AgentError,
        _ => Status::ServerError,
    };
    Some((status, words))
}

fn last_failure(attempts: &[Attempt]) -> Option<String> {
    failure_words(last_main(attempts)?)
}

/// The last main request, when its client was gone before its answer was whole, as it is when the
/// session is ended: a server that fell silent is another cause than an agent that took its time.
fn cut_off_request(attempts: &[Attempt]) -> Option<String> {
    let last = last_main(attempts).filter(|a| a.end == End::ClientAborted)?;
    let clocks = &last.clocks;
    let (since, what) = match clocks.last_token_s {
        Some(token) => (token, "no further token"),
        None => (clocks.head_s, "no token"),
    };
    let silence = clocks.end_s.0 - since.0;
    if silence < FLOWING_S {
        return Some(format!("request {} was still being answered", last.number));
    }
    Some(format!(
        "request {} was cut off when {what} had come for {silence:.1} s",
        last.number
    ))
}

/// An answer whose last token is younger than this still flows, in seconds: a slow server takes
/// that long for a token.
const FLOWING_S: f64 = 2.0;

fn last_main(attempts: &[Attempt]) -> Option<&Attempt> {
    attempts
        .iter()
        .filter(|a| a.role == Role::Main)
        .max_by(|a, b| a.clocks.end_s.0.total_cmp(&b.clocks.end_s.0))
}

/// What happened to a request that was not answered whole; `None` when it was, or when the
/// client left by itself.
fn failure_words(attempt: &Attempt) -> Option<String> {
    let said = attempt.error.as_ref().map_or_else(String::new, |e| {
        let field = e
            .field
            .as_ref()
            .map_or_else(String::new, |f| format!(" (field {f})"));
        format!(": {}{field}", e.message)
    });
    let status = attempt
        .status
        .map_or_else(|| "no status".to_owned(), |s| s.to_string());
    let number = attempt.number;
    Some(match attempt.end {
        End::Complete | End::ClientAborted => return None,
        End::Refused => refused_words(number, &status, &said),
        End::RejectedByGateway => {
            format!("flashrig's gateway rejected request {number} ({status}){said}")
        }
        End::Overloaded => format!("the server was too busy for request {number} ({status}){said}"),
        End::UpstreamError => format!("the server failed request {number} ({status}){said}"),
        End::Unreachable => format!("the server could not be reached for request {number}{said}"),
        End::Truncated => format!("the server broke off its answer to request {number}{said}"),
        End::Stalled => format!("the server fell silent in its answer to request {number}{said}"),
        End::ErrorInStream => {
            format!("the server reported an error within its answer to request {number}{said}")
        }
    })
}

/// The words for a refusal, with the knob to turn when the cause is a known kind.
fn refused_words(number: u32, status: &str, said: &str) -> String {
    let lower = said.to_lowercase();
    let too_long = [
        "context length",
        "context size",
        "context window",
        "maximum context",
        "n_ctx",
        "too long",
        "exceeds the available context",
    ]
    .iter()
    .any(|w| lower.contains(w));
    if too_long {
        return format!(
            "context too small: the server refused request {number} ({status}){said}; start the \
             server with a longer context, or give --context the length that it has"
        );
    }
    let shape = [
        "role",
        "system message",
        "unexpected",
        "unsupported",
        "unknown field",
        "not supported",
        "invalid type",
    ]
    .iter()
    .any(|w| lower.contains(w));
    if status == "400" && shape {
        return format!(
            "the server rejects the shape of the agent's requests: request {number} ({status}){said}"
        );
    }
    format!("the server refused request {number} ({status}){said}")
}

fn exit_words(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exited with code {code}"),
        Exit::Signal(signal) => format!("was ended by signal {signal}"),
        Exit::Stopped => "was ended by flashrig".to_owned(),
        Exit::NotStarted => "did not start".to_owned(),
    }
}

fn with_stderr(words: &str, evidence: &Evidence<'_>) -> String {
    let tail = evidence.stderr_tail.trim();
    if tail.is_empty() {
        words.to_owned()
    } else {
        format!("{words}; its last words: {tail}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tests::attempt;
    use crate::records::AttemptError;

    fn evidence<'a>(attempts: &'a [Attempt], transcript: &'a Summary, exit: Exit) -> Evidence<'a> {
        Evidence {
            ending: Ending::Exited,
            exit,
            transcript,
            end_required: true,
            attempts,
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
        let mut lost = attempt(Role::Main, End::Overloaded, 3.0, None, 4.0);
        lost.status = Some(529);
        let attempts = [
            attempt(Role::Main, End::Complete, 1.0, Some(1.5), 2.0),
            lost,
        ];
        let summary = Summary {
            error: Some("API Error".into()),
            ..done()
        };
        let outcome = judge(&evidence(&attempts, &summary, Exit::Code(0)));
        assert_eq!(outcome.status, Status::ServerError);
        assert_eq!(
            outcome.detail,
            "the server was too busy for request 1 (529)"
        );
    }

    #[test]
    fn exit_1_after_a_recovered_error_is_completed_and_says_so() {
        let attempts = [
            attempt(Role::Main, End::Overloaded, 1.0, None, 1.5),
            attempt(Role::Main, End::Complete, 2.0, Some(2.5), 3.0),
        ];
        let outcome = judge(&evidence(&attempts, &done(), Exit::Code(1)));
        assert_eq!(outcome.status, Status::Completed);
        assert!(outcome.detail.contains("code 1"), "{}", outcome.detail);
    }

    #[test]
    fn exit_0_without_any_request_is_no_request_whatever_the_transcript_says() {
        let outcome = judge(&evidence(&[], &done(), Exit::Code(0)));
        assert_eq!(outcome.status, Status::NoRequest);
    }

    #[test]
    fn a_result_without_an_exit_is_completed_no_exit() {
        let attempts = [attempt(Role::Main, End::Complete, 1.0, Some(1.5), 2.0)];
        let summary = done();
        let mut e = evidence(&attempts, &summary, Exit::Stopped);
        e.ending = Ending::DidNotExit;
        assert_eq!(judge(&e).status, Status::CompletedNoExit);
    }

    #[test]
    fn a_time_limit_amid_a_flowing_answer_says_that_it_flowed() {
        let mut open = attempt(Role::Main, End::ClientAborted, 1.0, Some(1.5), 9.0);
        open.clocks.last_token_s = Some(crate::clock::Seconds(8.9));
        let attempts = [open];
        let words = cut_off_request(&attempts);
        assert_eq!(words.as_deref(), Some("request 1 was still being answered"));
    }

    #[test]
    fn a_time_limit_with_a_request_open_tells_how_long_the_server_was_silent() {
        let mut open = attempt(Role::Main, End::ClientAborted, 1.0, Some(1.5), 9.0);
        open.clocks.last_token_s = Some(crate::clock::Seconds(2.0));
        let summary = Summary::default();
        let attempts = [open];
        let mut e = evidence(&attempts, &summary, Exit::Stopped);
        e.ending = Ending::TimeLimit("not done within 8 s".to_owned());
        let outcome = judge(&e);
        assert_eq!(outcome.status, Status::Timeout);
        assert_eq!(
            outcome.detail,
            "not done within 8 s; request 1 was cut off when no further token had come for 7.0 s"
        );
    }

    #[test]
    fn a_crash_before_the_result_is_an_agent_error_with_its_last_words() {
        let attempts = [attempt(Role::Main, End::Complete, 1.0, Some(1.5), 2.0)];
        let summary = Summary {
            ended: false,
            ..done()
        };
        let mut e = evidence(&attempts, &summary, Exit::Code(134));
        e.stderr_tail = "panic: out of cheese";
        let outcome = judge(&e);
        assert_eq!(outcome.status, Status::AgentError);
        assert!(
            outcome.detail.contains("out of cheese"),
            "{}",
            outcome.detail
        );
    }

    #[test]
    fn a_prompt_beyond_the_context_names_the_knob() {
        let mut refused = attempt(Role::Main, End::Refused, 1.0, None, 1.1);
        refused.status = Some(400);
        refused.error = Some(AttemptError {
            kind: Some("invalid_request_error".into()),
            message:
                "Prompt exceeds maximum context length: 40000 tokens requested, 8192 available"
                    .into(),
            field: None,
        });
        let attempts = [refused];
        let outcome = judge(&evidence(&attempts, &done(), Exit::Code(1)));
        assert_eq!(outcome.status, Status::ServerRefused);
        assert!(
            outcome.detail.starts_with("context too small"),
            "{}",
            outcome.detail
        );
        assert!(
            outcome.detail.contains("40000 tokens requested"),
            "{}",
            outcome.detail
        );
    }
}
