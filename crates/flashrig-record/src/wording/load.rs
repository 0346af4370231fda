//! Warnings about a synthetic run.

use std::fmt::{Display, Formatter, Result};

use super::server::restarted;
use super::{in_a_row, times_over};
use crate::{CellPlace, FailedSize, LoadWarning};
use flashrig_units::format_tokens;

impl Display for LoadWarning {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::ServerRestarted {
                server,
                ready_after_s,
            } => f.write_str(&restarted(server, *ready_after_s)),
            Self::OtherModel {
                asked,
                answered,
                answers,
            } => write!(
                f,
                "{asked:?} was asked for, and {answered:?} gave {answers} of the answers"
            ),
            Self::OneRound => f.write_str("one round: no interval, so chance is not excluded"),
            Self::MeasuredOnce { rounds, cells } => write!(
                f,
                "measured in 1 of {rounds} rounds: {}; no interval, so chance is not excluded there",
                places(cells)
            ),
            Self::AnswerLengthNotFixed => f.write_str(
                "the server does not keep to a fixed length of answers (ignore_eos, min_tokens): \
                 answers are as long as the model made them",
            ),
            Self::ClientBottleneck { cells } => write!(
                f,
                "flashrig's own client was the bottleneck at {}: those figures are not the server's",
                places(cells)
            ),
            Self::BaselineBottleneck {
                context_tokens,
                simulated,
            } => write!(
                f,
                "every slowdown at {} is compared with a lone session that was measured while \
                 flashrig's own client was the bottleneck, and so is what the answer says of it; \
                 repeat it on a quieter machine{}",
                format_tokens(*context_tokens),
                if *simulated {
                    ", or at a lower --speed"
                } else {
                    ""
                },
            ),
            Self::CacheLost { cells } => write!(
                f,
                "at {} the server took less than half of the warm prompts from its cache: their \
                 turns read them again",
                places(cells)
            ),
            Self::CacheNotCold => f.write_str(
                "some first turns found more than a twentieth of their prompts in the server's \
                 cache: cold first-token times are flattered (was the same --seed used before?)",
            ),
            Self::NonMonotonic {
                context_tokens,
                failed,
                passed,
            } => {
                let failed: Vec<String> = failed.iter().map(FailedSize::to_string).collect();
                write!(
                    f,
                    "at {} {} did not pass though {passed} did: look at both before relying on \
                     either",
                    format_tokens(*context_tokens),
                    failed.join(", "),
                )
            }
            Self::RecallAlone {
                context_tokens,
                right,
                asked,
            } => write!(
                f,
                "one session alone at {} answers {right} of {asked} questions right",
                format_tokens(*context_tokens)
            ),
            Self::Resumed { times } => write!(
                f,
                "the run was taken up again {}: its rounds may lie far apart",
                times_over((*times).into())
            ),
            Self::StepEndedEarly { requests, reason } => {
                write!(f, "{requests} at once: {reason}")
            }
            Self::Row { requests, reason } => write!(f, "{requests} at once: {reason}"),
            Self::StepsLeftOut { requests, reason } => {
                let requests: Vec<String> = requests.iter().map(u32::to_string).collect();
                write!(f, "{} at once: {reason}", in_a_row(&requests))
            }
            Self::Other { text } => f.write_str(text),
        }
    }
}

fn places(cells: &[CellPlace]) -> String {
    let cells: Vec<String> = cells.iter().map(CellPlace::to_string).collect();
    cells.join(", ")
}

impl Display for CellPlace {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(
            f,
            "{} × {}",
            self.sessions,
            format_tokens(self.context_tokens)
        )
    }
}

impl Display for FailedSize {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} ({})", self.sessions, self.verdict.label())
    }
}
