//! Sentences about a sweep.

use std::fmt::{Display, Formatter, Result};

use super::placed::in_rounds;
use super::times_over;
use crate::{
    NamedUnit, ProofSource, RowFault, RowProof, RunState, SweepWarning, UnitFailure, UnitFault,
    joined,
};
use flashrig_units::{format_tokens, plural};

impl Display for UnitFailure {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::RunStopped { reason } => reason.fmt(f),
            Self::RunUnfinished { state } => f.write_str(match state {
                RunState::Unfinished | RunState::Finished => "it ended before its run was sealed",
                RunState::Interrupted => "it was interrupted",
                RunState::Failed => "its run failed",
            }),
            Self::NoRoundCompared { reasons } if reasons.is_empty() => {
                f.write_str("no round could be compared")
            }
            Self::NoRoundCompared { reasons } => f.write_str(&joined(reasons)),
            Self::NothingMeasured { answer, faults } => {
                let faults = (!faults.is_empty()).then(|| joined(faults));
                let parts: Vec<String> = answer.iter().cloned().chain(faults).collect();
                match parts.is_empty() {
                    true => f.write_str("nothing was measured"),
                    false => f.write_str(&parts.join("; ")),
                }
            }
            Self::CommandFailed { error } => f.write_str(error),
            Self::NoRecord { exit: Some(exit) } => {
                write!(f, "it ended with {exit} and left no record")
            }
            Self::NoRecord { exit: None } => {
                f.write_str("its end is unknown: the helper that watched it was lost")
            }
            Self::Unreadable { error } => f.write_str(error),
            Self::Other { text } => f.write_str(text),
        }
    }
}

impl Display for UnitFault {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::ServerLost { loss, restarted } => {
                let again = if *restarted {
                    ", and was started again"
                } else {
                    ""
                };
                write!(f, "{}{again}", loss.in_short())
            }
            Self::SessionsNotDone { done, of } => write!(f, "{done} of {of} sessions are done"),
            Self::Verdict { reason } => reason.fmt(f),
            Self::Cell {
                sessions,
                context_tokens,
                verdict,
                reason,
            } => {
                let (tokens, verdict) = (format_tokens(*context_tokens), verdict.label());
                write!(f, "{sessions} × {tokens}: {verdict}")?;
                match reason {
                    Some(reason) => write!(f, ": {reason}"),
                    None => Ok(()),
                }
            }
            Self::NotAnswered {
                requests,
                answered,
                asked,
                reason,
            } => {
                write!(f, "{requests} at once: {answered} of {asked} answered")?;
                match reason {
                    Some(reason) => write!(f, ": {reason}"),
                    None => Ok(()),
                }
            }
            Self::ProcessesLeft { commands } => {
                write!(f, "processes were left running: {}", commands.join("; "))
            }
            Self::Other { text } => f.write_str(text),
        }
    }
}

impl Display for RowFault {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::UnitFailed { rounds, failure } => {
                write!(f, "{}: {failure}", in_rounds(rounds))
            }
            Self::UnitFault { rounds, fault } => write!(f, "{}: {fault}", in_rounds(rounds)),
            Self::SettingDidNothing { name, told, by } => {
                write!(
                    f,
                    "{name} did nothing: {}",
                    contradiction(told.as_ref(), by.as_ref())
                )
            }
            Self::OtherServer { what, was, then } => {
                let known =
                    |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
                write!(
                    f,
                    "it was not the same server in every round: its {what} was {} and then {}",
                    known(was),
                    known(then)
                )
            }
            Self::Other { text } => f.write_str(text),
        }
    }
}

impl RowProof {
    /// What the server reports instead of the value that it was given.
    pub fn contradiction(&self) -> String {
        contradiction(self.reported.as_ref(), self.by.as_ref())
    }
}

fn contradiction(told: Option<&String>, by: Option<&ProofSource>) -> String {
    let told = told.map_or("another value", String::as_str);
    let by = by.map_or_else(|| "itself".to_owned(), ToString::to_string);
    format!("the server reports {told} ({by})")
}

impl Display for SweepWarning {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::OneRound => f.write_str("one round: no intervals, so chance is not excluded"),
            Self::ManyComparisons {
                comparisons,
                by_chance,
            } => write!(
                f,
                "{comparisons} combinations are compared with the first, each at 95%: by chance \
                 alone about {by_chance:.1} of them would seem to differ in a figure, and the best \
                 of many looks better than it is; measure the best beside the first once more \
                 before relying on it"
            ),
            Self::ClientBottleneck { units, more, of } => {
                let named: Vec<String> = units.iter().map(NamedUnit::to_string).collect();
                let further = match more {
                    0 => String::new(),
                    n => format!(" and {n} more"),
                };
                write!(
                    f,
                    "flashrig's own client was the bottleneck in {} of {of} units ({}{further}): \
                     those figures are not the server's",
                    units.len() as u64 + more,
                    named.join(", ")
                )
            }
            Self::CutShort { units } => write!(
                f,
                "{} cut short and measured anew; what {} left is kept",
                match units {
                    1 => "1 unit was".to_owned(),
                    n => format!("{} were", plural(*n, "unit")),
                },
                if *units == 1 { "it" } else { "they" },
            ),
            Self::Resumed { times } => {
                write!(
                    f,
                    "the sweep was taken up again {}",
                    times_over((*times).into())
                )
            }
            Self::Other { text } => f.write_str(text),
        }
    }
}

impl Display for NamedUnit {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "[{}] in round {}", self.settings, self.round)
    }
}
