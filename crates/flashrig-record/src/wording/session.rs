//! Sentences about one session and its checks.

use std::fmt::{Display, Formatter, Result};

use super::server::limit;
use crate::{
    CheckDetail, Exit, OddAnswers, Outcome, RefusalKind, RequestTrouble, SessionDetail,
    SessionFailure,
};
use flashrig_units::plural;

impl Display for SessionDetail {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Completed => f.write_str("completed"),
            Self::CompletedWithCode { exit_code } => write!(
                f,
                "completed; it exited with code {exit_code} although its last request succeeded"
            ),
            Self::CompletedNoExit => f.write_str(
                "the agent reported its result and did not exit; flashrig ended it after the grace",
            ),
            Self::TurnLimit => f.write_str("the agent reached its own limit of turns"),
            Self::Interrupted => f.write_str("the run was stopped"),
            Self::ProcessesLeft { commands } => write!(
                f,
                "{} of its processes could not be ended: {}",
                commands.len(),
                commands.join(", ")
            ),
            Self::NotStarted { error } => write!(f, "the agent did not start: {error}"),
            Self::RigFailed { error } => f.write_str(error),
            Self::VerificationFailed { error } => {
                write!(f, "flashrig could not verify it: {error}")
            }
            Self::ServerLost { loss } => loss.fmt(f),
            Self::ServerStalled { stall } => stall.fmt(f),
            Self::TimeLimit { limit_s, cause } => write!(
                f,
                "not done within {}; raise it with --time-limit, if the server is just slow{}",
                limit(*limit_s),
                then(cause.as_ref())
            ),
            Self::NoRequestInTime { limit_s, stderr } => write!(
                f,
                "hung before its first request for {}{}",
                limit(*limit_s),
                last_words(stderr.as_ref())
            ),
            Self::Idle {
                limit_s,
                requests,
                cause,
                stderr,
            } => write!(
                f,
                "idle for {} after {}, with none open{}{}",
                limit(*limit_s),
                plural(*requests, "request"),
                then(cause.as_ref()),
                last_words(stderr.as_ref())
            ),
            Self::NoRequest {
                exit,
                cause,
                agent_error,
                context_tokens,
                stderr,
            } => {
                write!(f, "the agent {exit} without any request to the server")?;
                match (cause, agent_error) {
                    (Some(cause), _) => {
                        let advice = match cause.is_long_prompt() {
                            true => "; give --max-prompt a larger figure",
                            false => "; does it send the token that it is given?",
                        };
                        write!(f, "; {cause}{advice}")?;
                    }
                    (None, Some(error)) => {
                        write!(f, "; its last error: {error}")?;
                        if let Some(tokens) = context_tokens {
                            write!(f, " (it was told a context of {tokens} tokens)")?;
                        }
                    }
                    (None, None) => f.write_str(
                        "; it did not reach the model: check its settings and its standard error",
                    )?,
                }
                f.write_str(&last_words(stderr.as_ref()))
            }
            Self::RequestLost { cause } => cause.fmt(f),
            Self::AgentError { error } => write!(f, "the agent reported an error: {error}"),
            Self::AgentSignalled { signal, stderr } => write!(
                f,
                "the agent was ended by signal {signal}, which flashrig did not send{}",
                last_words(stderr.as_ref())
            ),
            Self::NoResult { exit, stderr } => write!(
                f,
                "the agent {exit} without reporting its result{}",
                last_words(stderr.as_ref())
            ),
            Self::AgentExited { exit_code, stderr } => write!(
                f,
                "the agent exited with code {exit_code}{}",
                last_words(stderr.as_ref())
            ),
            Self::Escaped {
                repository,
                changes,
            } => write!(
                f,
                "the repository {repository} changed while sessions ran: {}",
                shortened(changes)
            ),
            Self::Other { text } => f.write_str(text),
        }
    }
}

/// The first few, and how many more there are: `a, b, c and 7 more`.
fn shortened(changes: &[String]) -> String {
    const NAMED: usize = 3;
    let named = changes[..changes.len().min(NAMED)].join(", ");
    match changes.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn then(cause: Option<&RequestTrouble>) -> String {
    cause.map_or_else(String::new, |cause| format!("; {cause}"))
}

fn last_words(stderr: Option<&String>) -> String {
    stderr.map_or_else(String::new, |text| {
        format!("; its standard error ends with: {text}")
    })
}

impl Display for Exit {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
            Self::Stopped => f.write_str("was ended by flashrig"),
            Self::NotStarted => f.write_str("did not start"),
        }
    }
}

impl RequestTrouble {
    /// Whether flashrig's gateway refused the prompt as too long.
    fn is_long_prompt(&self) -> bool {
        matches!(
            self,
            Self::RequestFailed {
                long_prompt: true,
                ..
            }
        )
    }
}

impl Display for RequestTrouble {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::RequestFailed {
                request,
                outcome,
                status,
                refusal,
                message,
                field,
                ..
            } => {
                let field = field.as_ref();
                let field = field.map_or_else(String::new, |f| format!(" (field {f})"));
                let said = message.as_ref();
                let said = said.map_or_else(String::new, |text| format!(": {text}{field}"));
                f.write_str(&failed(*request, *outcome, *status, *refusal, &said))
            }
            Self::HeldByGate { request, held_s } => write!(
                f,
                "request {request} had been held by flashrig's gate for {:.1} s",
                held_s.0
            ),
            Self::StillAnswered { request } => {
                write!(f, "request {request} was still being answered")
            }
            Self::CutOff {
                request,
                had_token,
                silent_s,
            } => write!(
                f,
                "request {request} was cut off after {:.1} s without {} token",
                silent_s.0,
                if *had_token { "a further" } else { "a" }
            ),
            Self::Other { text } => f.write_str(text),
        }
    }
}

fn failed(
    number: u32,
    outcome: Outcome,
    status: Option<u16>,
    refusal: Option<RefusalKind>,
    said: &str,
) -> String {
    let status = status.map_or_else(|| "no status".to_owned(), |s| s.to_string());
    let advice = advice(refusal);
    match outcome {
        Outcome::Complete | Outcome::ClientAborted => format!("request {number} was not answered"),
        Outcome::Refused => match refusal {
            Some(RefusalKind::RequestShape) => format!(
                "the server rejects the shape of the agent's requests: request {number} \
                 ({status}){said}"
            ),
            kind => format!(
                "{}the server refused request {number} ({status}){said}{advice}",
                class(kind)
            ),
        },
        Outcome::RejectedByGateway => {
            format!("flashrig's gateway rejected request {number} ({status}){said}")
        }
        Outcome::Overloaded => {
            format!("the server was too busy for request {number} ({status}){said}")
        }
        Outcome::UpstreamError => {
            format!("the server failed request {number} ({status}){said}{advice}")
        }
        Outcome::Unreachable => {
            format!("the server could not be reached for request {number}{said}")
        }
        Outcome::Truncated => format!("the server broke off its answer to request {number}{said}"),
        Outcome::Stalled => {
            format!("the server fell silent in its answer to request {number}{said}")
        }
        Outcome::ErrorInStream => format!(
            "the server reported an error within its answer to request {number}{said}{advice}"
        ),
    }
}

fn class(kind: Option<RefusalKind>) -> &'static str {
    match kind {
        Some(RefusalKind::ContextTooSmall) => "context too small: ",
        Some(RefusalKind::OutOfMemory) => "prompt too large for the server's memory: ",
        Some(RefusalKind::Auth) => "key missing or wrong: ",
        Some(RefusalKind::UnknownModel) => "unknown model: ",
        Some(RefusalKind::UnknownRoute) => "unknown route: ",
        Some(RefusalKind::RequestShape | RefusalKind::TooMany | RefusalKind::Other) | None => "",
    }
}

/// What to do about a refusal of this kind.
fn advice(kind: Option<RefusalKind>) -> &'static str {
    match kind {
        Some(RefusalKind::ContextTooSmall) => {
            "; start the server with a longer context, or give --context the length that it has"
        }
        Some(RefusalKind::OutOfMemory) => {
            "; give the server more memory or a smaller cache, or run fewer sessions at once"
        }
        Some(RefusalKind::Auth) => {
            "; give the right key with --key-env, or what else the server asks for with --basic-env or \
             --header-env"
        }
        Some(RefusalKind::UnknownModel) => "; name one that the server serves with --model",
        Some(RefusalKind::UnknownRoute) => {
            "; at this address the server does not speak the agent's protocol"
        }
        Some(RefusalKind::RequestShape | RefusalKind::TooMany | RefusalKind::Other) | None => "",
    }
}

/// `the server sent a tool call as plain text (3 answers)`.
pub(super) fn odd_answers(odd: &[OddAnswers]) -> String {
    let one = |odd: &OddAnswers| {
        let what = odd.oddity.meaning().unwrap_or_else(|| odd.oddity.code());
        format!("{what} ({})", plural(odd.answers, "answer"))
    };
    odd.iter().map(one).collect::<Vec<_>>().join("; ")
}

impl Display for SessionFailure {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::NotCompleted { detail, .. } => detail.fmt(f),
            Self::AnswersContradict { odd } => f.write_str(&odd_answers(odd)),
            Self::NothingChanged => f.write_str("the agent changed nothing"),
            Self::ProtectedTouched { paths } => {
                write!(f, "protected files touched: {}", paths.join(", "))
            }
            Self::CheckFailed { check, detail } => write!(f, "check {check:?} {detail}"),
            Self::NotVerified => f.write_str("not verified"),
            Self::TooManyFiles { files, limit } => write!(
                f,
                "the patch changes {}, more than the {limit} allowed",
                plural(*files, "file")
            ),
            Self::TooManyLines { lines, limit } => write!(
                f,
                "the patch changes {}, more than the {limit} allowed",
                plural(*lines, "line")
            ),
            Self::RequestsRefused { requests } => write!(
                f,
                "{} of its requests refused or answered with an error",
                requests
            ),
            Self::PromptsTooLong { prompts } => write!(
                f,
                "{prompts} of its prompts refused by flashrig's gateway as longer than --max-prompt"
            ),
            Self::AnswersBrokeOff { answers } => write!(f, "{answers} of its answers broke off"),
            Self::Other { text } => f.write_str(text),
        }
    }
}

impl Display for CheckDetail {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Exited { exit_code } => write!(f, "exited with {exit_code}"),
            Self::LacksOutput {
                pattern,
                kept_bytes,
                dropped_bytes,
            } => {
                write!(
                    f,
                    "exited with 0 but printed nothing that matches {pattern}"
                )?;
                match dropped_bytes {
                    0 => Ok(()),
                    dropped => write!(
                        f,
                        " in its last {kept_bytes} bytes ({dropped} earlier ones were not kept)"
                    ),
                }
            }
            Self::Killed { signal } => write!(f, "was ended by signal {signal}"),
            Self::TimedOut { limit_s } => write!(f, "did not end within {}", limit(*limit_s)),
            Self::NotStarted { error } => write!(f, "could not be started: {error}"),
            Self::Other { text } => f.write_str(text),
        }
    }
}
