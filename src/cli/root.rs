//! The command line as a whole: which commands there are, and which code runs each.

use clap::{CommandFactory as _, Parser, Subcommand};

use super::args::Common;
use super::console::Console;
use super::exit::{Exit, Failure, OrFail};
use super::{agents, bodies, fit, gateway, pair, printing, servers, sim, sweep, tasks, ttft};

/// Measures what real coding agents cost each other on one LLM server.
#[derive(Debug, Parser)]
#[command(
    name = "flashrig",
    version,
    about = "Measures what real coding agents cost each other on one LLM server: together, then back to back, every task verified",
    after_help = "Exit codes: 0 pass, warning, or inconclusive without --strict, 1 the answer is no, 2 usage or invalid file, 3 flashrig or its \
                  surroundings failed, 130 interrupted.\n\nFirst try:  flashrig pair --task fix-bug --task add-flag"
)]
pub struct Cli {
    /// What applies to every command.
    #[command(flatten)]
    pub common: Common,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run agents together and back to back on one server, verify their work, compare wall time
    Pair(Box<pair::PairArgs>),
    /// Find out how many agent sessions fit on a server, at which context length
    Fit(Box<fit::FitArgs>),
    /// Measure the time to first token with N concurrent requests
    Ttft(Box<ttft::TtftArgs>),
    /// Measure pair, fit or ttft under several settings of a server, and compare them
    Sweep(Box<sweep::SweepArgs>),
    /// Serve the simulated LLM server alone
    Sim(sim::SimArgs),
    /// Run a gateway between everyday agents and a server; it counts, times and shows each request
    Gateway(gateway::GatewayArgs),
    /// List tasks, or verify that their checks tell right from wrong
    Tasks {
        /// What to do
        #[command(subcommand)]
        command: tasks::TasksCommand,
    },
    /// List agents, or install pinned ones from their npm packages
    Agents {
        /// What to do
        #[command(subcommand)]
        command: agents::AgentsCommand,
    },
    /// List or install servers, or find out what a server supports
    Servers {
        /// What to do
        #[command(subcommand)]
        command: servers::ServersCommand,
    },
    /// Show the report of a stored run, finished or not
    Report(printing::ReportArgs),
    /// List the kept bodies of a run's requests and answers, or print one
    Bodies(bodies::BodiesArgs),
    /// Print the JSON Schema of a file that flashrig reads or writes
    Schema {
        /// Which file
        #[arg(value_enum, default_value_t = printing::SchemaOf::Run)]
        of: printing::SchemaOf,
    },
    /// Print shell completions
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual pages of all commands; to read them: flashrig man | man -l -
    Man(printing::ManArgs),
}

/// Runs the command that was typed.
pub fn dispatch(command: Command, console: Console) -> Result<Exit, Failure> {
    match command {
        Command::Schema { of } => printing::schema(of, console),
        Command::Completions { shell } => {
            Ok(printing::completions(shell, &mut Cli::command(), console))
        }
        Command::Man(args) => printing::man(&args, Cli::command(), console),
        Command::Report(args) => printing::report(&args, console),
        Command::Bodies(args) => bodies::bodies(&args, console),
        Command::Pair(args) => within_runtime(pair::pair(*args, console)),
        Command::Fit(args) => within_runtime(fit::fit(*args, console)),
        Command::Ttft(args) => within_runtime(ttft::ttft(*args, console)),
        Command::Sweep(args) => within_runtime(sweep::sweep(*args, console)),
        Command::Gateway(args) => within_runtime(gateway::gateway(args, console)),
        Command::Sim(args) => within_runtime(sim::sim(args, console)),
        Command::Tasks { command } => within_runtime(tasks::tasks(command, console)),
        Command::Agents { command } => within_runtime(agents::agents(command, console)),
        Command::Servers { command } => within_runtime(servers::servers(command, console)),
    }
}

fn within_runtime(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .or_rig()?;
    let exit = runtime.block_on(work);
    // A blocking call that hangs must not keep the program.
    runtime.shutdown_background();
    exit
}
