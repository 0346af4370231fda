//! Sentences about rounds and the verdict of a run of agents.

use std::fmt::{Display, Formatter, Result};

use super::server::restarted;
use super::times_over;
use crate::{
    Destination, InvalidReason, MissingField, OtherModel, UnknownRoute, VerdictReason, Warning,
    joined,
};
use flashrig_units::plural;

impl Display for InvalidReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::RoundUnfinished => f.write_str("the round did not finish"),
            Self::ArmMissing => f.write_str("the arm did not run"),
            Self::ServerLost { loss } => loss.fmt(f),
            Self::SessionsMissing { ran, planned } => {
                write!(f, "{ran} of {planned} sessions ran")
            }
            Self::ServerFailed { event } => event.fmt(f),
            Self::SessionNotCompleted { status } => f.write_str(status.label()),
            Self::RequestsLost {
                refused,
                broken_off,
            } => write!(
                f,
                "{} refused, {} broken off",
                plural(*refused, "request"),
                plural(*broken_off, "answer")
            ),
            Self::LongPrompts { prompts } => {
                write!(
                    f,
                    "{} above --max-prompt turned away",
                    plural(*prompts, "prompt")
                )
            }
            Self::Overlapped => f.write_str("sessions overlapped"),
            Self::DoneInOneArm { done, not_done } => {
                write!(f, "done {} and not {}", done.label(), not_done.label())
            }
            Self::ExitedInOneArm => f.write_str("exited by itself in one arm only"),
            Self::Other { text } => f.write_str(text),
        }
    }
}

impl Display for VerdictReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::ServerFailed { event } => event.fmt(f),
            Self::ServerLost { loss } => loss.fmt(f),
            Self::SessionFailed { failures } => f.write_str(&joined(failures)),
            Self::RoundNotCompared { index, reasons } => {
                write!(f, "round {index} is not compared: {}", joined(reasons))
            }
            Self::TooSlow { slowdown, limit } => write!(
                f,
                "the slowest session took {slowdown:.2} times its time alone, above {limit:.2}"
            ),
            Self::Inconclusive {
                low,
                high,
                more_rounds,
            } => f.write_str(&inconclusive(*low, *high, *more_rounds)),
            Self::Other { text } => f.write_str(text),
        }
    }
}

pub(super) fn inconclusive(low: f64, high: f64, more_rounds: Option<u32>) -> String {
    let more = more_rounds.map_or_else(
        || "more rounds would not settle it at this spread".to_owned(),
        |n| format!("about {} would settle it", plural(n, "more round")),
    );
    format!(
        "the 95% interval of the worst slowdown, {low:.2} to {high:.2}, straddles a threshold; {more}"
    )
}

impl Display for Warning {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::ServerRestarted {
                server,
                ready_after_s,
            } => f.write_str(&restarted(server, *ready_after_s)),
            Self::TriedToLeave { destinations, more } => {
                let whom = whom(destinations, *more);
                write!(f, "tried to leave the machine: {whom}, refused")
            }
            Self::LeftMachine { destinations, more } => {
                let whom = whom(destinations, *more);
                write!(
                    f,
                    "left the machine, as allowed: {whom}; its time depends on others"
                )
            }
            Self::OtherModel { asked, answered } => {
                write!(
                    f,
                    "another model than the one asked for answered: {asked} -> {answered}"
                )
            }
            Self::CacheNotCold { sessions, of } => write!(
                f,
                "the cache was to be cold, but {sessions} of {of} sessions had cached tokens in \
                 their first request"
            ),
            Self::RequestsUnmarked { requests } => write!(
                f,
                "{} could not be marked for a cold cache and may have met another session's prompts",
                plural(*requests, "request")
            ),
            Self::SentAgain {
                requests,
                amplification,
            } => {
                let requests = plural(*requests, "request");
                write!(f, "sent {requests} again while the first still ran")?;
                if let Some(amplification) = amplification {
                    write!(
                        f,
                        " (up to {amplification:.1} requests for each that was meant)"
                    )?;
                }
                f.write_str(
                    ": its own time limit is shorter than the server's prefill, and the server did \
                     the work again",
                )
            }
            Self::StreamsLackFields { fields, sent_again } => {
                let named: Vec<String> = fields.iter().map(MissingField::to_string).collect();
                let named = named.join(", ");
                write!(
                    f,
                    "its streams lack required fields, by the number of streams: {named}; "
                )?;
                match sent_again {
                    0 => f.write_str("clients may refuse such answers, and ask again"),
                    n => write!(
                        f,
                        "its client may refuse such answers: {} sent again",
                        match n {
                            1 => "1 request was".to_owned(),
                            n => format!("{n} requests were"),
                        }
                    ),
                }
            }
            Self::WorkNotDone => f.write_str("the times are of sessions whose work was not done"),
            Self::ProcessesNotProven => f.write_str(
                "this system cannot prove that a session's processes are all gone; those that were \
                 seen are",
            ),
            Self::CacheDiffers {
                beside,
                cached_share,
                alone_cached_share,
            } => write!(
                f,
                "the arms differ in cached prompt tokens: {:.0}% {}, {:.0}% back to back; part of \
                 the ratio is the cache, not the company",
                cached_share * 100.0,
                beside.label(),
                alone_cached_share * 100.0
            ),
            Self::AgentsBusy { cpu_share, cores } => write!(
                f,
                "together the agents themselves used {:.0}% of {} cores: the processor, not the \
                 server, may have made them slow",
                cpu_share * 100.0,
                cores.map_or_else(|| "the".to_owned(), |c| c.to_string())
            ),
            Self::RigLate { p99_ms, max_ms } => write!(
                f,
                "disturbed: the machine was too busy for flashrig itself, which was {p99_ms:.0} ms \
                 late or more in 1% of the time and {max_ms:.0} ms at worst; instants may be off \
                 by as much"
            ),
            Self::OtherWork { same_work } => {
                f.write_str("did other work together than alone (turns or tokens differ)")?;
                match same_work {
                    Some(v) => write!(f, "; for the same work its slowdown is {v:.2}"),
                    None => Ok(()),
                }
            }
            Self::OneRound => {
                f.write_str("one valid round: no interval, so chance is not excluded")
            }
            Self::StartsApart { skew_s } => {
                write!(f, "the sessions started {:.2} s apart", skew_s.0)
            }
            Self::GateIdle { limit } => write!(
                f,
                "the gate held no session back for 5 ms or more: with {limit} at once the gated arm \
                 hardly differs from together"
            ),
            Self::Other { text } => f.write_str(text),
        }
    }
}

fn whom(destinations: &[Destination], more: u64) -> String {
    let mut named: Vec<String> = destinations.iter().map(Destination::to_string).collect();
    if more > 0 {
        named.push(plural(more, "more destination"));
    }
    named.join(", ")
}

impl Display for Destination {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} ({})", self.address, times_over(self.requests))
    }
}

impl Display for MissingField {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} ({})", self.field, self.streams)
    }
}

impl Display for OtherModel {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} -> {} ({})", self.asked, self.answered, self.answers)
    }
}

impl Display for UnknownRoute {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} {} -> ", self.method, self.path)?;
        match self.status {
            Some(status) => write!(f, "{status}")?,
            None => f.write_str("no answer")?,
        }
        write!(f, " ({})", self.requests)
    }
}
