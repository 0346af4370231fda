//! Sentences about combinations of `fit` and steps of `ttft`.

use std::fmt::{Display, Formatter, Result};

use super::placed::in_rounds;
use super::verdict::{fail_not_excluded, inconclusive, more, pass_not_proven, too_slow};
use crate::{CellReason, CellStopReason, LeftOutReason, Outcome, RecallWanted, TtftReason};
use flashrig_units::plural;

impl Display for CellStopReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::ByUser => f.write_str("stopped by the user"),
            Self::ServerLost { loss } => loss.fmt(f),
            Self::NotBroughtBack { error } => f.write_str(error),
            Self::ServerStalled { stall } => stall.fmt(f),
            Self::TurnFailed {
                session,
                turn,
                outcome,
                message,
                life,
            } => {
                match turn {
                    0 => write!(f, "{session}'s first turn {}", ended(*outcome))?,
                    turn => write!(f, "{session}'s turn {turn} {}", ended(*outcome))?,
                }
                if let Some(message) = message {
                    write!(f, ": {message}")?;
                }
                match life {
                    Some(life) => write!(f, "; {life}"),
                    None => Ok(()),
                }
            }
            Self::Unreachable { error } => write!(
                f,
                "the server is gone: {}",
                error.as_deref().unwrap_or("nobody answers there")
            ),
            Self::RigFailed { error } => write!(f, "flashrig itself failed: {error}"),
            Self::Other { text } => f.write_str(text),
        }
    }
}

fn ended(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Refused => "was refused",
        Outcome::Overloaded => "was turned away because of load",
        Outcome::Stalled => "got no token within the limit",
        Outcome::Truncated => "broke off before its end",
        Outcome::ErrorInStream => "ended with an error in its stream",
        Outcome::Unreachable => "found no server",
        Outcome::ClientAborted => "was broken off",
        Outcome::UpstreamError | Outcome::RejectedByGateway | Outcome::Complete => "failed",
    }
}

impl Display for LeftOutReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (did, sessions) = match self {
            Self::ServerRefused { at_sessions } => ("refused", at_sessions),
            Self::ServerStalled { at_sessions } => ("stalled at", at_sessions),
            Self::ServerFailed { at_sessions } => ("could not serve", at_sessions),
            Self::ServerSilent => {
                return f.write_str("not tried: the server had stopped answering");
            }
            Self::ServerGone => return f.write_str("not tried: the server was gone"),
            Self::Other { text } => return f.write_str(text),
        };
        let sessions = plural(*sessions, "session");
        write!(f, "the server {did} {sessions} at this context length")
    }
}

const NOT_ITS_OWN: &str = "flashrig's own client was the bottleneck";

impl Display for CellReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::LeftOut { rounds, reason } if rounds.is_empty() => {
                write!(f, "not measured: {reason}")
            }
            Self::LeftOut { rounds, reason } => {
                write!(f, "not measured in {}: {reason}", in_rounds(rounds))
            }
            Self::NotMeasured => f.write_str("not measured: the run ended before"),
            Self::EndedEarly { round, reason } => write!(f, "round {round}: {reason}"),
            Self::ClientBottleneck { rounds } => {
                let rounds = in_rounds(rounds);
                write!(
                    f,
                    "{NOT_ITS_OWN} in {rounds}: the figures are not the server's"
                )
            }
            Self::BaselineBottleneck { rounds } => write!(
                f,
                "{NOT_ITS_OWN} while the lone session was measured in {}: the slowdown is not the \
                 server's",
                in_rounds(rounds)
            ),
            Self::ServerCountsRefused { server, client } => write!(
                f,
                "the server itself counts {}, the client saw {client}",
                plural(*server, "refused request")
            ),
            Self::RecallShort {
                session,
                round,
                right,
                asked,
                wanted,
            } => write!(
                f,
                "{session} answered {right} of {asked} questions right in round {round}; {wanted}"
            ),
            Self::NoSlowdown => f.write_str(
                "no slowdown: no round has all warm turns both of this and of the lone session",
            ),
            Self::UnequalAnswers { per_token } => {
                f.write_str(
                    "answers were not equally long alone and together, so the slowdown is not of \
                     equal work",
                )?;
                match per_token {
                    Some(s) => write!(f, "; by time per output token it is {s:.2}×"),
                    None => Ok(()),
                }
            }
            Self::TooSlow {
                slowdown,
                limit,
                at_least,
            } => f.write_str(&too_slow(
                "the slowest session's turns took",
                *slowdown,
                *limit,
                *at_least,
            )),
            Self::PassNotProven {
                at_most,
                limit,
                more_rounds,
                rounds_in_all,
            } => f.write_str(&pass_not_proven(
                *at_most,
                *limit,
                more(*more_rounds, *rounds_in_all),
            )),
            Self::FailNotExcluded {
                at_least,
                limit,
                more_rounds,
                rounds_in_all,
            } => f.write_str(&fail_not_excluded(
                *at_least,
                *limit,
                more(*more_rounds, *rounds_in_all),
            )),
            Self::Inconclusive {
                low,
                high,
                more_rounds,
                rounds_in_all,
            } => f.write_str(&inconclusive(
                *low,
                *high,
                more(*more_rounds, *rounds_in_all),
            )),
            Self::Other { text } => f.write_str(text),
        }
    }
}

impl Display for RecallWanted {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::All => f.write_str("all are wanted"),
            Self::Share { percent } => write!(f, "{percent:.0}% are wanted"),
            Self::AsAlone {
                alone_right,
                alone_asked,
            } => write!(f, "one session alone gets {alone_right} of {alone_asked}"),
        }
    }
}

impl Display for TtftReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::AnswerInOnePiece => {
                f.write_str("an answer came in one piece, so its first token is unknown")
            }
            Self::RequestFailed { outcome, message } => {
                f.write_str(match outcome {
                    Outcome::Refused => "a request was refused",
                    Outcome::Overloaded => "a request was turned away because of load",
                    Outcome::Stalled => "a request got nothing more",
                    Outcome::Truncated => return f.write_str("an answer broke off before its end"),
                    _ => "a request failed",
                })?;
                match message {
                    Some(message) => write!(f, ": {message}"),
                    None => Ok(()),
                }
            }
            Self::FewerOpen { most } => {
                write!(f, "only {most} of them were really open at one time")
            }
            Self::ClientBottleneck => f.write_str(
                "flashrig's own client was late or had no processor left: the figures are not the \
                 server's alone",
            ),
            Self::RoundsMissing { measured, planned } => {
                write!(f, "measured in {measured} of {planned} rounds")
            }
            Self::Other { text } => f.write_str(text),
        }
    }
}
