//! What is typed for `flashrig sweep`. Options that a sweep is told by are optional here, so that
//! `--resume` can tell what was typed from what was left out.

use std::path::PathBuf;

use clap::Args;

/// `flashrig sweep`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Example:  flashrig sweep --server sim --set max_concurrent=1,4 -- ttft --agents 4\n\n\
    The server is started anew for every measurement, so it must be a profile that flashrig can \
    start. The first value of each setting makes the combination that all others are compared with."
)]
pub struct SweepArgs {
    /// The name of a server's profile that flashrig starts [default: the embedded simulated server]
    #[arg(long, value_name = "NAME")]
    pub server: Option<String>,
    /// A setting of the server and the values that are tried, e.g. max_concurrent=1,2,4. Commas
    /// within brackets or quotes do not separate values (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE,…")]
    pub sets: Vec<String>,
    /// Change one setting at a time, with the others at their first values, instead of the full grid
    #[arg(long)]
    pub one_at_a_time: bool,
    /// How often each combination is measured: all of them once, then all again [default: 3]
    #[arg(long, value_name = "N", value_parser = flashrig_config::whole_number(1, 1000))]
    pub rounds: Option<u32>,
    /// Seed of the order of the combinations; the order changes in each round [default: a new
    /// seed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Continue a sweep that was stopped or killed; finished measurements are not repeated
    #[arg(long, value_name = "SWEEP", conflicts_with = "results")]
    pub resume: Option<PathBuf>,
    /// Folder for results
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub results: PathBuf,
    /// The command that is measured, with its options: pair, fit or ttft. Each measurement is one
    /// run of it, with --rounds 1 unless it says otherwise
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
