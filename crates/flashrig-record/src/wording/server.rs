//! Sentences about the server.

use std::fmt::{Display, Formatter, Result};
use std::time::Duration;

use crate::{
    Disagreement, Life, LifeFact, LogTail, NotRestarted, ProofSource, Pulse, ServerEvent,
    ServerExit, ServerLoss, Stall, StoppedBecause, ThreeWays,
};
use flashrig_clock::Seconds;
use flashrig_units::{format_count, format_duration, format_seconds, plural};

impl ServerLoss {
    /// The sentence without the end of the log.
    pub fn in_short(&self) -> String {
        match self {
            Self::Died { server, exit, .. } => format!("the server {server} died: it {exit}"),
            Self::Gone {
                error,
                started_by_flashrig: true,
                ..
            } => format!("{error}, though its process lives"),
            Self::Gone { error, .. } => {
                format!("{error}; flashrig did not start the server, so how it ended is not known")
            }
            Self::Other { text } => text.clone(),
        }
    }
}

impl Display for ServerLoss {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let log = match self {
            Self::Died { log, .. } | Self::Gone { log, .. } => log.to_string(),
            Self::Other { .. } => String::new(),
        };
        write!(f, "{}{log}", self.in_short())
    }
}

impl Display for ServerExit {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(error) = &self.restart_error {
            return write!(f, "did not come back: {error}");
        }
        match (self.exit_code, self.signal) {
            (None, None) => f.write_str("was lost: its supervising helper was killed")?,
            (Some(0), _) => f.write_str("ended by itself, with exit code 0")?,
            (Some(code), None) => write!(f, "ended with exit code {code}")?,
            (Some(code), Some(_)) => write!(f, "ended with exit code {code}: {}", self.killed())?,
            (None, Some(_)) => write!(f, "was {}", self.killed())?,
        }
        match &self.memory_line {
            Some(line) => write!(f, ", and its log speaks of a lack of memory ({line})"),
            None => Ok(()),
        }
    }
}

impl ServerExit {
    fn killed(&self) -> String {
        let Some(name) = &self.signal_name else {
            return format!("killed by signal {}", self.signal.unwrap_or_default());
        };
        let means = match (name.as_str(), self.out_of_memory_kills) {
            ("SIGKILL", Some(true)) => {
                " for lack of memory (out of memory: the system's killer struck meanwhile); give \
                 it a smaller model, context or cache"
            }
            ("SIGKILL", Some(false)) => {
                ", which was not flashrig's, and not for lack of memory (the system counts no \
                 such kill)"
            }
            ("SIGKILL", None) => {
                ", which was not flashrig's; this system does not tell whether for lack of memory \
                 (out of memory)"
            }
            ("SIGSEGV" | "SIGBUS", _) => ", a crash",
            ("SIGABRT", _) => ", with which a program ends itself when it finds a fault",
            ("SIGILL", _) => {
                ", an instruction that this processor does not have (a build for another one?)"
            }
            ("SIGTERM" | "SIGINT" | "SIGHUP", _) => ", which was not flashrig's",
            _ => "",
        };
        format!("killed by {name}{means}")
    }
}

/// The end of a sentence; empty when the log says nothing.
impl Display for LogTail {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(fault) = &self.fault {
            write!(f, "; its log says \"{fault}\"")?;
        }
        if self.last.is_empty() {
            return Ok(());
        }
        let last: Vec<String> = self.last.iter().map(|line| format!("\"{line}\"")).collect();
        write!(f, "; its log ends with {}", last.join(", "))
    }
}

impl Stall {
    /// The sentence about `who`, e.g. `the server`.
    pub fn of(&self, who: &str) -> String {
        let Self {
            sent,
            generated,
            waited,
            ..
        } = self;
        let requests = plural(*sent, "request");
        let first = match generated {
            0 => format!("{who} accepted {requests} and generated for none"),
            k if sent.saturating_sub(*k) < *waited => format!(
                "{who} accepted {requests} and began to answer {k}, but fell silent in {waited} of \
                 its answers"
            ),
            k => format!("{who} accepted {requests}, generated for {k}, then for none"),
        };
        format!(
            "{first}: {waited} waited {} in vain; {}{}",
            limit(self.limit_s),
            self.pulse,
            self.log
        )
    }
}

impl Display for Stall {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(&self.of("the server"))
    }
}

impl Display for Life {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}{}", self.pulse, self.log)
    }
}

/// Signs of life, and what to do.
impl Display for Pulse {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if !self.is_there {
            return f.write_str("it is gone now; look into its log and start it again");
        }
        match (self.health, self.models) {
            (Some(status @ 200..=299), _) => write!(f, "its health check says {status}")?,
            (_, Some(status @ 200..=299)) => write!(f, "its model list still answers {status}")?,
            (Some(status), _) => write!(f, "its health check says {status}")?,
            (None, _) => f.write_str("its health check gives no answer")?,
        }
        match self.requests {
            Some(n) if n > 0.0 => write!(
                f,
                ", and its metrics report {n} running requests; if it is only slow, give a longer \
                 --first-token-limit, else start it again"
            ),
            Some(_) => f.write_str(
                ", and its metrics report no running request: it lost the requests; start it again",
            ),
            None => f.write_str("; look into its log and start it again"),
        }
    }
}

impl Display for LifeFact {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Lost { loss } => f.write_str(&loss.in_short()),
            Self::Restarted {
                server,
                ready_after_s,
            } => f.write_str(&restarted(server, *ready_after_s)),
            Self::Reset { server, took_s } => {
                let took = format_seconds(took_s.0);
                write!(f, "the server {server} was reset, in {took}")
            }
            Self::Other { text } => f.write_str(text),
        }
    }
}

pub(super) fn restarted(server: &str, ready_after: Seconds) -> String {
    let ready = format_seconds(ready_after.0);
    format!("the server {server} was started again, and was ready after {ready}")
}

/// A limit as people read it.
pub(super) fn limit(limit: Seconds) -> String {
    format_duration(Duration::try_from_secs_f64(limit.0).unwrap_or_default())
}

impl Display for StoppedBecause {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::ByUser => f.write_str("stopped by the user"),
            Self::ServerLost {
                loss,
                not_restarted,
            } => write!(f, "{loss}{not_restarted}"),
            Self::ServerStalled { stall } => stall.fmt(f),
            Self::Failed { error } => f.write_str(error),
            Self::Other { text } => f.write_str(text),
        }
    }
}

/// What to do next, as the end of a sentence.
impl Display for NotRestarted {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::NotNeeded => Ok(()),
            Self::NotManaged => f.write_str(
                "; start it again and run this again (flashrig itself restarts a server whose \
                 profile has [start])",
            ),
            Self::Forbidden => f.write_str(
                "; its profile does not let flashrig start it again (restart = false): find the \
                 cause in its log, and run this again",
            ),
            Self::Failed { error } => write!(f, "; it could not be started again: {error}"),
        }
    }
}

impl Display for ServerEvent {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let status = match self.status {
            Some(status) if status < 300 => "broken off".to_owned(),
            Some(status) => status.to_string(),
            None => "no status".to_owned(),
        };
        let said = self.message.as_ref();
        let said = said.map_or_else(String::new, |message| format!(": {message}"));
        write!(
            f,
            "the server failed as a whole: all {} requests in flight failed at once \
             ({status}{said}), of {}",
            self.requests,
            super::in_a_row(&self.sessions)
        )
    }
}

impl Display for Disagreement {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::CachedTokens {
                by,
                sources,
                answers,
                log_finished,
            } => {
                let by = format_count(*by);
                write!(f, "cached prompt tokens differ by {by}: {sources}")?;
                match log_finished {
                    Some(n) => write!(
                        f,
                        "; its log tells of {n} finished requests, and clients had {answers} answers"
                    ),
                    None => Ok(()),
                }
            }
            Self::Refused { by, sources } => {
                let by = format_count(*by);
                write!(f, "refused requests differ by {by}: {sources}")
            }
            Self::LogNotUnderstood => f.write_str(
                "flashrig understood nothing of the log that it follows: is it this server's?",
            ),
            Self::Other { text } => f.write_str(text),
        }
    }
}

impl Display for ThreeWays {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let sources = [
            ("clients' answers", self.answers),
            ("the server's metrics", self.metrics),
            ("its log", self.log),
        ];
        let known = sources.into_iter().filter_map(|(who, value)| {
            let value = format_count(value?);
            Some(format!("{who} {value}"))
        });
        f.write_str(&known.collect::<Vec<_>>().join(", "))
    }
}

impl Display for ProofSource {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Log { line } => write!(f, "the log: {line}"),
            Self::Metric { name } => write!(f, "the metric {name}"),
            Self::Field { path, field } => write!(f, "{field} of {path}"),
            Self::Other { text } => f.write_str(text),
        }
    }
}
