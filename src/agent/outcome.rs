//! How a session ended: the verdict from its last event, its traffic and its exit together.
//!
//! An exit code is evidence, not the verdict (case J1): agents exit 0 after a failed request,
//! 1 after a recovered one, or not at all. Pure.

use std::time::Duration;

use super::Summary;
use flashrig_clock::Seconds;
use flashrig_record::{
    Attempt, Exit, Outcome, RequestTrouble, Role, ServerTrouble, SessionDetail, Status,
};

/// Why a session's process is gone.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// It exited by itself.
    Exited,
    /// It told its result and did not exit within the grace.
    DidNotExit,
    /// No main request within the limit.
    NoRequestInTime(Duration),
    /// Nothing happened for the limit with no request open.
    Idle {
        /// The limit.
        limit: Duration,
        /// Requests so far.
        requests: u64,
    },
    /// The session's time limit.
    TimeLimit(Duration),
    /// The run was stopped.
    Interrupted,
    /// The server was lost or stopped answering.
    ServerLost(ServerTrouble),
    /// The rig failed.
    RigFailed(SessionDetail),
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
    /// The context length that the agent was given, in tokens.
    pub context_tokens: Option<u64>,
    /// The last lines of its standard error.
    pub stderr_tail: &'a str,
}

/// How a session ended, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionEnd {
    /// The status.
    pub status: Status,
    /// What is known of the cause.
    pub detail: SessionDetail,
}

/// Judges one session.
pub fn judge(evidence: &Evidence<'_>) -> SessionEnd {
    let (status, detail) = match &evidence.ending {
        Ending::RigFailed(detail) => (Status::RigError, detail.clone()),
        Ending::Interrupted => (Status::Interrupted, SessionDetail::Interrupted),
        Ending::ServerLost(trouble) => (Status::ServerError, trouble.clone().into()),
        Ending::TimeLimit(limit) => {
            let attempts = evidence.attempts;
            let detail = SessionDetail::TimeLimit {
                limit_s: (*limit).into(),
                cause: cut_off_request(attempts).or_else(|| last_failure(attempts)),
            };
            (Status::Timeout, detail)
        }
        Ending::NoRequestInTime(limit) => {
            let detail = SessionDetail::NoRequestInTime {
                limit_s: (*limit).into(),
                stderr: evidence.stderr(),
            };
            (Status::NoRequest, detail)
        }
        Ending::Idle { limit, requests } => {
            let detail = SessionDetail::Idle {
                limit_s: (*limit).into(),
                requests: *requests,
                cause: last_failure(evidence.attempts),
                stderr: evidence.stderr(),
            };
            (Status::Idle, detail)
        }
        Ending::Exited | Ending::DidNotExit => by_itself(evidence),
    };
    SessionEnd { status, detail }
}

/// Judges a session whose agent came to an end of its own.
fn by_itself(evidence: &Evidence<'_>) -> (Status, SessionDetail) {
    let Evidence {
        ending,
        exit,
        transcript,
        attempts,
        ..
    } = evidence;
    let (exit, stderr) = (*exit, evidence.stderr());
    let reached = |a: &&Attempt| a.role == Role::Main && a.outcome != Outcome::RejectedByGateway;
    if !attempts.iter().any(|a| reached(&a)) {
        let detail = SessionDetail::NoRequest {
            exit,
            cause: last_failure(attempts),
            agent_error: transcript.error.clone(),
            context_tokens: evidence.context_tokens,
            stderr,
        };
        return (Status::NoRequest, detail);
    }
    if transcript.turn_limit {
        return (Status::TurnLimit, SessionDetail::TurnLimit);
    }
    if let Some((status, cause)) = lost_last_request(attempts) {
        return (status, SessionDetail::RequestLost { cause });
    }
    if let Some(error) = &transcript.error {
        let error = error.clone();
        return (Status::AgentError, SessionDetail::AgentError { error });
    }
    if let Exit::Signal(signal) = exit {
        let detail = SessionDetail::AgentSignalled { signal, stderr };
        return (Status::AgentError, detail);
    }
    if evidence.end_required && !transcript.ended {
        return (Status::AgentError, SessionDetail::NoResult { exit, stderr });
    }
    match (ending, exit) {
        (_, Exit::Code(exit_code)) if exit_code != 0 && !transcript.ended => {
            let detail = SessionDetail::AgentExited { exit_code, stderr };
            (Status::AgentError, detail)
        }
        (Ending::DidNotExit, _) => (Status::CompletedNoExit, SessionDetail::CompletedNoExit),
        (_, Exit::Code(exit_code)) if exit_code != 0 => {
            let detail = SessionDetail::CompletedWithCode { exit_code };
            (Status::Completed, detail)
        }
        _ => (Status::Completed, SessionDetail::Completed),
    }
}

impl Evidence<'_> {
    /// The end of standard error, when there is one.
    fn stderr(&self) -> Option<String> {
        let tail = self.stderr_tail.trim();
        (!tail.is_empty()).then(|| tail.to_owned())
    }
}

/// The last main request, when the server refused it, failed it or broke it off, and the agent
/// made no further one.
fn lost_last_request(attempts: &[Attempt]) -> Option<(Status, RequestTrouble)> {
    let last = last_main(attempts)?;
    let cause = failure(last)?;
    let status = match last.outcome {
        Outcome::Refused => Status::ServerRefused,
        Outcome::RejectedByGateway => Status::AgentError,
        _ => Status::ServerError,
    };
    Some((status, cause))
}

fn last_failure(attempts: &[Attempt]) -> Option<RequestTrouble> {
    failure(last_main(attempts)?)
}

/// The last main request, when its client was gone before its answer was whole, as it is when the
/// session is ended: a server that fell silent is another cause than an agent that took its time.
fn cut_off_request(attempts: &[Attempt]) -> Option<RequestTrouble> {
    let last = last_main(attempts).filter(|a| a.outcome == Outcome::ClientAborted)?;
    let (request, clocks) = (last.number, &last.clocks);
    if last.gate.is_some() && clocks.permit_s.is_none() {
        let held = clocks.end_s.0 - clocks.body_s.unwrap_or(clocks.head_s).0;
        let held_s = Seconds(held);
        return Some(RequestTrouble::HeldByGate { request, held_s });
    }
    let since = clocks.last_token_s.unwrap_or(clocks.head_s);
    let silence = clocks.end_s.0 - since.0;
    if silence < FLOWING_S {
        return Some(RequestTrouble::StillAnswered { request });
    }
    Some(RequestTrouble::CutOff {
        request,
        had_token: clocks.last_token_s.is_some(),
        silent_s: Seconds(silence),
    })
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
fn failure(attempt: &Attempt) -> Option<RequestTrouble> {
    if matches!(attempt.outcome, Outcome::Complete | Outcome::ClientAborted) {
        return None;
    }
    let error = attempt.error.as_ref();
    Some(RequestTrouble::RequestFailed {
        request: attempt.number,
        outcome: attempt.outcome,
        status: attempt.status,
        refusal: attempt.refusal,
        message: error.map(|e| e.message.clone()),
        field: error.and_then(|e| e.field.clone()),
        long_prompt: attempt.is_long_prompt(),
    })
}

#[cfg(test)]
mod tests;
