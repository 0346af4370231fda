//! What is typed for `flashrig pair`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::cli::args::{GateOrderArg, SandboxArg, ServerArgs};
use crate::plan::rounds::{RoundsAsked, parse_rounds};
use flashrig_config::{parse_count, parse_duration};
use flashrig_gateway::egress::Pattern;

/// `flashrig pair`.
#[derive(Clone, Debug, Args)]
pub struct PairArgs {
    /// A task, as NAME or NAME@AGENT. Give the option once per session; a task may be repeated
    #[arg(long = "task", value_name = "NAME[@AGENT]", required = true)]
    pub tasks: Vec<String>,
    /// The agent for tasks that do not name one
    #[arg(long, value_name = "NAME", default_value = "claude")]
    pub agent: String,
    /// The command line of the agent `command`; {prompt}, {base_url}, {token}, {model} and
    /// {workspace} are filled in, and are there as FLASHRIG_* in its environment. It starts in the
    /// workspace, so name files of yours by absolute paths
    #[arg(long, value_name = "'PROGRAM ARGS'")]
    pub agent_command: Option<String>,
    /// Fail when an agent is missing instead of installing it
    #[arg(long)]
    pub no_install: bool,
    /// The server
    #[command(flatten)]
    pub server: ServerArgs,
    /// Rounds, each with both arms. `auto` runs 4 to 12, and ends when the time verdict is settled
    /// [default: 1 on a simulated server, auto otherwise]
    #[arg(long, allow_negative_numbers = true, value_name = "N|auto", value_parser = parse_rounds)]
    pub rounds: Option<RoundsAsked>,
    /// Begin no round after this time, e.g. 2h; implies --rounds auto
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub max_time: Option<Duration>,
    /// Run the sessions back to back twice and never together: shows by how much times differ on
    /// your set-up when nothing does. 4 rounds unless you give another number
    #[arg(long, conflicts_with_all = ["gated", "gate", "max_time"])]
    pub against_itself: bool,
    /// What becomes of a round while other programs use more than 25% of the machine's processors, a
    /// hypervisor takes more than 10%, or programs wait for memory in more than 20% of the time
    #[arg(long, value_enum, env = "FLASHRIG_FOREIGN_LOAD", default_value_t = ForeignLoad::Reject)]
    pub foreign_load: ForeignLoad,
    /// How the runs use the server's prompt cache
    #[arg(long, value_enum, default_value_t = Cache::Cold)]
    pub cache: Cache,
    /// Add a third arm: together, with at most one concurrent request
    #[arg(long, help_heading = "Gate")]
    pub gated: bool,
    /// Add a third arm: together, with at most N concurrent requests over all sessions
    #[arg(long, value_name = "N", value_parser = flashrig_config::whole_number(1, 100_000), help_heading = "Gate")]
    pub gate: Option<u32>,
    /// Which waiting request the gate admits next [default: fifo]
    #[arg(long, value_enum, value_name = "ORDER", help_heading = "Gate")]
    pub gate_order: Option<GateOrderArg>,
    /// Refuse longer prompts, in every arm, in the agent's own dialect, e.g. 32k; tokens are
    /// estimated from the request's bytes
    #[arg(long, value_name = "TOKENS", value_parser = parse_count, help_heading = "Gate")]
    pub max_prompt: Option<u64>,
    /// Answer health checks, model lists and token counts in the server's place, in every arm. For
    /// servers without these routes; token counts are estimates
    #[arg(long)]
    pub answer_probes: bool,
    /// Turn on the agent's own setting for a stable prompt prefix, which its profile names
    /// (stable_prefix). Without this option agents run with their defaults
    #[arg(long)]
    pub stable_prefix: bool,
    /// Limit for each session, e.g. 20m [default: the task's own]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub time_limit: Option<Duration>,
    /// Longest wait of a request for its first token; after that the server counts as not
    /// generating, and flashrig ends the request's session
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    pub first_token_limit: Duration,
    /// The time verdict is a pass up to this slowdown
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "X",
        default_value_t = 1.5
    )]
    pub pass_below: f64,
    /// The time verdict is a fail above this slowdown
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "X",
        default_value_t = 2.0
    )]
    pub fail_above: f64,
    /// Exit with 1 when the time verdict is inconclusive: the rounds prove neither a pass nor a fail
    #[arg(long)]
    pub strict: bool,
    /// How sessions are contained
    #[arg(long, value_enum, default_value_t = SandboxArg::Auto)]
    pub sandbox: SandboxArg,
    /// Let agents reach this destination beyond the machine; all others are refused.
    /// *.example.com covers every name below example.com (repeatable)
    #[arg(long, value_name = "HOST[:PORT]")]
    pub allow_egress: Vec<Pattern>,
    /// Keep every session's workspace in the results folder
    #[arg(long)]
    pub keep: bool,
    /// Keep only hashes and lengths of the bodies of requests and answers
    #[arg(long)]
    pub no_bodies: bool,
    /// Folder for results
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub results: PathBuf,
}

/// How the runs use the server's prompt cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Cache {
    /// A nonce at the start of every prompt, one per session and arm
    Cold,
    /// Run every session once, unscored, before the first round
    Warm,
    /// Leave the cache as it is
    Keep,
}

/// What becomes of a round with foreign load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ForeignLoad {
    /// It is not compared
    Reject,
    /// It is compared, and the load is shown
    Accept,
}
