//! Sentences about rounds and the verdict of a run of agents.

use std::fmt::{Display, Formatter, Result};

use super::placed::in_rounds;
use super::server::restarted;
use super::session::odd_answers;
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
            Self::ForeignLoad { cpu_share } => write!(
                f,
                "other programs used {:.0}% of the machine's processors; run this again when the \
                 machine is idle",
                cpu_share * 100.0
            ),
            Self::StolenTime { cpu_share } => write!(
                f,
                "the hypervisor gave {:.0}% of the machine's processors to others",
                cpu_share * 100.0
            ),
            Self::MemoryPressure { share } => write!(
                f,
                "the machine was short of memory: programs waited for it in {:.0}% of the time",
                share * 100.0
            ),
            Self::ProgramChanged { agent } => write!(
                f,
                "the program of the agent {agent} was replaced during the run, so the arms may be of \
                 two versions"
            ),
            Self::PromptsCut { requests, tokens } => write!(
                f,
                "the server cut the prompt: it counts {tokens} tokens in {} that grew; its context is \
                 too small, or its limit is silent",
                plural(*requests, "request")
            ),
            Self::Redirected { requests, message } => {
                write!(f, "{} redirected: {message}", plural(*requests, "request"))
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
            Self::TooSlow {
                slowdown,
                limit,
                at_least,
            } => f.write_str(&too_slow(
                "the slowest session took",
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
            Self::UpperBoundWithheld { rounds } => write!(
                f,
                "a pass is not claimed: in {} a session failed together and not back to back, and \
                 how long it would have taken is unknown",
                in_rounds(rounds)
            ),
            Self::Other { text } => f.write_str(text),
        }
    }
}

pub(super) fn too_slow(what: &str, slowdown: f64, limit: f64, at_least: Option<f64>) -> String {
    let proof = at_least.map_or_else(String::new, |low| {
        format!("; with 95% confidence a session is slowed down at least {low:.2} times")
    });
    format!("{what} {slowdown:.2} times its time alone, above {limit:.2}{proof}")
}

pub(super) fn pass_not_proven(at_most: f64, limit: f64, more: String) -> String {
    format!(
        "with 95% confidence no session is slowed down more than {at_most:.2} times; whether all are \
         at or below {limit:.2} is open; {more}"
    )
}

pub(super) fn fail_not_excluded(at_least: f64, limit: f64, more: String) -> String {
    format!(
        "with 95% confidence a session is slowed down at least {at_least:.2} times; whether one is \
         above {limit:.2} is open; {more}"
    )
}

pub(super) fn inconclusive(low: f64, high: Option<f64>, more: String) -> String {
    let high = high.map_or_else(|| "an unknown factor".to_owned(), |h| format!("{h:.2}"));
    format!(
        "with 95% confidence the largest slowdown is between {low:.2} and {high}, which proves \
         neither a pass nor a fail; {more}"
    )
}

/// What would settle a verdict.
pub(super) fn more(more_rounds: Option<u32>, rounds_in_all: Option<u32>) -> String {
    match (more_rounds, rounds_in_all) {
        (None, _) => "more rounds would hardly settle it at this scatter".to_owned(),
        (Some(n), None) => format!("about {} would settle it", plural(n, "more round")),
        (Some(n), Some(all)) => format!(
            "about {} ({all} in all) would settle it",
            plural(n, "more round")
        ),
    }
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
            Self::OddAnswers { odd } => f.write_str(&odd_answers(odd)),
            Self::OtherLoadUnknown => f.write_str(
                "it is not known what other programs used of the machine's processors: this system does \
                 not tell, or the server's process was not found",
            ),
            Self::OtherLoad { cpu_share } => write!(
                f,
                "other programs used {:.0}% of the machine's processors; part of the times is theirs",
                cpu_share * 100.0
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
            Self::BudgetUsed { rounds, by_time } => write!(
                f,
                "{} before the verdict was settled: {}",
                match by_time {
                    true => "the limit of time ended the rounds",
                    false => "the rounds came to their largest number",
                },
                plural(*rounds, "round")
            ),
            Self::EqualArmsDiffer { factor } => write!(
                f,
                "the two equal arms differ, by up to {factor:.2} times: something changes the times \
                 that has nothing to do with company, so slowdowns of this set-up are not to be \
                 trusted"
            ),
            Self::UnbalancedOrder { rounds } => write!(
                f,
                "{rounds} rounds are an odd number: one arm ran first once more often than the other, so \
                 what changes over time does not quite cancel out"
            ),
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
