//! How a session ended: the verdict from its last event, its traffic and its exit together.
//!
//! An exit code is evidence, not the verdict (case J1): agents exit 0 after a failed request,
//! 1 after a recovered one, or not at all. Pure.

use super::Summary;
use flashrig_record::{Attempt, Exit, Outcome, RefusalKind, Role, Status};

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
    /// The server was lost or stopped answering, in words.
    ServerLost(String),
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
pub struct SessionEnd {
    /// The status.
    pub status: Status,
    /// What is known of the cause, and what to do next.
    pub detail: String,
}

/// Judges one session.
pub fn judge(evidence: &Evidence<'_>) -> SessionEnd {
    let Evidence {
        ending,
        exit,
        transcript,
        attempts,
        ..
    } = evidence;
    let outcome = |status: Status, detail: String| SessionEnd { status, detail };
    let reached = |a: &&Attempt| a.role == Role::Main && a.outcome != Outcome::RejectedByGateway;
    let mains = attempts.iter().filter(reached).count();
    match ending {
        Ending::RigFailed(message) => return outcome(Status::RigError, message.clone()),
        Ending::Interrupted => {
            return outcome(Status::Interrupted, "the run was stopped".to_owned());
        }
        Ending::ServerLost(message) => return outcome(Status::ServerError, message.clone()),
        Ending::TimeLimit(message) => {
            let cause = cut_off_request(attempts).or_else(|| last_failure(attempts));
            let cause = cause.map_or_else(String::new, |c| format!("; {c}"));
            return outcome(Status::Timeout, format!("{message}{cause}"));
        }
        Ending::NoRequestInTime(message) => {
            return outcome(Status::NoRequest, with_stderr(message, evidence));
        }
        Ending::Idle(message) => {
            let cause = last_failure(attempts).map_or_else(String::new, |f| format!("; {f}"));
            return outcome(
                Status::Idle,
                with_stderr(&format!("{message}{cause}"), evidence),
            );
        }
        Ending::Exited | Ending::DidNotExit => {}
    }
    if mains == 0 {
        let turned_away = last_failure(attempts).map_or_else(
            || "it did not reach the model: check its settings and its standard error".to_owned(),
            |why| match last_main(attempts).is_some_and(Attempt::is_long_prompt) {
                true => format!("{why}; give --max-prompt a larger figure"),
                false => format!("{why}; does it send the token that it is given?"),
            },
        );
        let message = format!(
            "the agent {} without any request to the server; {turned_away}",
            exit_message(*exit)
        );
        return outcome(Status::NoRequest, with_stderr(&message, evidence));
    }
    if transcript.turn_limit {
        return outcome(
            Status::TurnLimit,
            "the agent reached its own limit of turns".to_owned(),
        );
    }
    if let Some((status, message)) = lost_last_request(attempts) {
        return outcome(status, message);
    }
    if let Some(error) = &transcript.error {
        return outcome(
            Status::AgentError,
            format!("the agent reported an error: {error}"),
        );
    }
    if let Exit::Signal(signal) = exit {
        let message =
            format!("the agent was ended by signal {signal}, which flashrig did not send");
        return outcome(Status::AgentError, with_stderr(&message, evidence));
    }
    if evidence.end_required && !transcript.ended {
        let message = format!(
            "the agent {} without telling its result",
            exit_message(*exit)
        );
        return outcome(Status::AgentError, with_stderr(&message, evidence));
    }
    if !transcript.ended && matches!(exit, Exit::Code(code) if *code != 0) {
        let message = format!("the agent {}", exit_message(*exit));
        return outcome(Status::AgentError, with_stderr(&message, evidence));
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
    let message = failure_message(last)?;
    let status = match last.outcome {
        Outcome::Refused => Status::ServerRefused,
        Outcome::RejectedByGateway => Status::AgentError,
        _ => Status::ServerError,
    };
    Some((status, message))
}

fn last_failure(attempts: &[Attempt]) -> Option<String> {
    failure_message(last_main(attempts)?)
}

/// The last main request, when its client was gone before its answer was whole, as it is when the
/// session is ended: a server that fell silent is another cause than an agent that took its time.
fn cut_off_request(attempts: &[Attempt]) -> Option<String> {
    let last = last_main(attempts).filter(|a| a.outcome == Outcome::ClientAborted)?;
    let clocks = &last.clocks;
    if last.gate.is_some() && clocks.permit_s.is_none() {
        let held = clocks.end_s.0 - clocks.body_s.unwrap_or(clocks.head_s).0;
        return Some(format!(
            "request {} had been held by flashrig's gate for {held:.1} s",
            last.number
        ));
    }
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
fn failure_message(attempt: &Attempt) -> Option<String> {
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
    Some(match attempt.outcome {
        Outcome::Complete | Outcome::ClientAborted => return None,
        Outcome::Refused => refusal_message(attempt.refusal, number, &status, &said),
        Outcome::RejectedByGateway => {
            format!("flashrig's gateway rejected request {number} ({status}){said}")
        }
        Outcome::Overloaded => {
            format!("the server was too busy for request {number} ({status}){said}")
        }
        Outcome::UpstreamError => format!(
            "the server failed request {number} ({status}){said}{}",
            knob(attempt.refusal)
        ),
        Outcome::Unreachable => {
            format!("the server could not be reached for request {number}{said}")
        }
        Outcome::Truncated => format!("the server broke off its answer to request {number}{said}"),
        Outcome::Stalled => {
            format!("the server fell silent in its answer to request {number}{said}")
        }
        Outcome::ErrorInStream => {
            format!(
                "the server reported an error within its answer to request {number}{said}{}",
                knob(attempt.refusal)
            )
        }
    })
}

/// The words for a refusal: its kind, what the server said, and the knob to turn.
fn refusal_message(kind: Option<RefusalKind>, number: u32, status: &str, said: &str) -> String {
    let class = match kind {
        Some(RefusalKind::ContextTooSmall) => "context too small: ",
        Some(RefusalKind::OutOfMemory) => "prompt too large for the server's memory: ",
        Some(RefusalKind::RequestShape) => {
            return format!(
                "the server rejects the shape of the agent's requests: request {number} \
                 ({status}){said}"
            );
        }
        Some(RefusalKind::Auth) => "key missing or wrong: ",
        Some(RefusalKind::UnknownModel) => "unknown model: ",
        Some(RefusalKind::UnknownRoute) => "unknown route: ",
        Some(RefusalKind::TooMany | RefusalKind::Other) | None => "",
    };
    let knob = knob(kind);
    format!("{class}the server refused request {number} ({status}){said}{knob}")
}

/// What to do about a refusal of this kind.
fn knob(kind: Option<RefusalKind>) -> &'static str {
    match kind {
        Some(RefusalKind::ContextTooSmall) => {
            "; start the server with a longer context, or give --context the length that it has"
        }
        Some(RefusalKind::OutOfMemory) => {
            "; give the server more memory or a smaller cache, or run fewer sessions at once"
        }
        Some(RefusalKind::Auth) => {
            "; put the server's key into a variable and name it with --key-env"
        }
        Some(RefusalKind::UnknownModel) => "; name one that the server serves with --model",
        Some(RefusalKind::UnknownRoute) => {
            "; at this address the server does not speak the agent's protocol"
        }
        Some(RefusalKind::RequestShape | RefusalKind::TooMany | RefusalKind::Other) | None => "",
    }
}

fn exit_message(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exited with code {code}"),
        Exit::Signal(signal) => format!("was ended by signal {signal}"),
        Exit::Stopped => "was ended by flashrig".to_owned(),
        Exit::NotStarted => "did not start".to_owned(),
    }
}

fn with_stderr(message: &str, evidence: &Evidence<'_>) -> String {
    let tail = evidence.stderr_tail.trim();
    if tail.is_empty() {
        message.to_owned()
    } else {
        format!("{message}; its last words: {tail}")
    }
}

#[cfg(test)]
mod tests;
