//! What is typed for `flashrig pair`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::cli::args::{GateOrderArg, SandboxArg, ServerArgs};
use flashrig_config::{parse_count, parse_duration};
use flashrig_gateway::egress::Pattern;

/// `flashrig pair`.
#[derive(Clone, Debug, Args)]
pub struct PairArgs {
    /// A task, as NAME or NAME@AGENT; give it once per session (the same task may come again)
    #[arg(long = "task", value_name = "NAME[@AGENT]", required = true)]
    pub tasks: Vec<String>,
    /// The agent for tasks that name none
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
    /// Rounds, each with both arms [default: 1 on a simulated server, 3 otherwise]
    #[arg(long, value_name = "N", value_parser = flashrig_config::whole_number(1, 1000))]
    pub rounds: Option<u32>,
    /// What is done about the server's prompt cache
    #[arg(long, value_enum, default_value_t = Cache::Cold)]
    pub cache: Cache,
    /// Add a third arm: together, with at most one request in the server at a time
    #[arg(long, help_heading = "Gate")]
    pub gated: bool,
    /// Add a third arm: together, with at most N requests of all sessions in the server at a time
    #[arg(long, value_name = "N", value_parser = flashrig_config::whole_number(1, 100_000), help_heading = "Gate")]
    pub gate: Option<u32>,
    /// Which waiting request the gate lets in next [default: fifo]
    #[arg(long, value_enum, value_name = "ORDER", help_heading = "Gate")]
    pub gate_order: Option<GateOrderArg>,
    /// Refuse longer prompts, in every arm, in the agent's own dialect, e.g. 32k; tokens are
    /// estimated from the request's bytes
    #[arg(long, value_name = "TOKENS", value_parser = parse_count, help_heading = "Gate")]
    pub max_prompt: Option<u64>,
    /// Answer probes (is somebody there, the model list, token counts) in the server's place, in
    /// every arm, for servers that do not know them; token counts are estimated
    #[arg(long)]
    pub answer_probes: bool,
    /// Let agents leave out what changes at the start of their prompts, by a setting of their own
    /// that their profile names (stable_prefix); without it agents run as they come
    #[arg(long)]
    pub stable_prefix: bool,
    /// Limit for each session, e.g. 20m [default: the task's own]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub time_limit: Option<Duration>,
    /// Longest wait of a request for its first token; beyond it the server accepts requests and
    /// does not generate, and the request's session is ended
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    pub first_token_limit: Duration,
    /// Slowdown up to which the time verdict is a pass
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "X",
        default_value_t = 1.5
    )]
    pub pass_below: f64,
    /// Slowdown above which the time verdict is a fail
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "X",
        default_value_t = 2.0
    )]
    pub fail_above: f64,
    /// Exit with 1 when the time verdict is inconclusive
    #[arg(long)]
    pub strict: bool,
    /// How sessions are contained
    #[arg(long, value_enum, default_value_t = SandboxArg::Auto)]
    pub sandbox: SandboxArg,
    /// Let agents reach a destination beyond this machine through their proxy, which otherwise
    /// refuses all; *.example.com is every name below (may be given more than once)
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

/// What is done about the server's prompt cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Cache {
    /// A nonce at the start of every prompt, one per session and arm
    Cold,
    /// Every session once, unscored, before the first round
    Warm,
    /// Nothing
    Keep,
}
