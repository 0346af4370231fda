//! Attempts of a session to reach something beyond loopback.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use flashrig_clock::Seconds;

/// One destination that a session asked the egress guard for, in one way, with one outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EgressFact {
    /// Host name or address, lower case; `null` when the request named none that could be read,
    /// or when there were too many to keep apart.
    pub host: Option<String>,
    /// Port.
    pub port: Option<u16>,
    /// `CONNECT`, the method of a plain request, or `SOCKS4`, `SOCKS5`; empty when it could not be
    /// read.
    pub method: String,
    /// Requests.
    pub count: u64,
    /// What became of them.
    pub outcome: EgressOutcome,
    /// The first of them, in seconds since the start of the run.
    pub first_s: Seconds,
    /// The longest time from a request's head to the guard's decision; for those that passed,
    /// to the connection.
    pub slowest_answer_s: Seconds,
}

/// What became of a request to the egress guard.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum EgressOutcome {
    /// Not on this machine and not allowed: refused, and nothing was connected to.
    Refused,
    /// Allowed by profile or command line, and passed on.
    Allowed,
    /// On this machine, by a program that asks the proxy for loopback too; passed on.
    Local,
    /// Nothing that the guard serves, though it did not ask to leave: garbage, say, or SOCKS to
    /// loopback; turned away.
    Unserved,
}
