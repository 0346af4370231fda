//! What is typed. Raw: validated in the commands' own files.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use flashrig_record::GateOrder;

/// Measures what real coding agents cost each other on one LLM server.
#[derive(Debug, Parser)]
#[command(
    name = "flashrig",
    version,
    about = "Measures what real coding agents cost each other on one LLM server: together, then back to back, every task verified",
    after_help = "Exit codes: 0 pass or warning, 1 the answer is no, 2 usage or invalid file, 3 the rig or its \
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

/// What applies to every command.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// Print the record as JSON on standard output; progress goes to standard error
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,
    /// Show every row and column of a report and break no line; without it reports fit the terminal
    #[arg(long, global = true, help_heading = "Output")]
    pub wide: bool,
    /// Show nothing but results and errors
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "verbose",
        help_heading = "Output"
    )]
    pub quiet: bool,
    /// Show more of what is going on (twice for even more)
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Output")]
    pub verbose: u8,
    /// When to use colour; NO_COLOR is respected
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, help_heading = "Output")]
    pub color: Color,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run agents together and back to back on one server, verify their work, compare wall time
    Pair(Box<super::pair::PairArgs>),
    /// Find out how many agent sessions fit on a server, at which context length
    Fit(Box<super::fit::FitArgs>),
    /// Measure how long first tokens take with so many requests at once
    Ttft(Box<super::ttft::TtftArgs>),
    /// Measure pair, fit or ttft under several settings of a server, and compare them
    Sweep(Box<super::sweep::SweepArgs>),
    /// Serve the simulated LLM server alone
    Sim(SimArgs),
    /// Stand between everyday agents and a server: count, time and show every request
    Gateway(GatewayArgs),
    /// List tasks, or prove that their checks tell right from wrong
    Tasks {
        /// What to do
        #[command(subcommand)]
        command: TasksCommand,
    },
    /// List agents, or install pinned ones from their npm packages
    Agents {
        /// What to do
        #[command(subcommand)]
        command: AgentsCommand,
    },
    /// List server profiles, or find out what a server can do
    Servers {
        /// What to do
        #[command(subcommand)]
        command: super::servers::ServersCommand,
    },
    /// Show the report of a stored run, finished or not
    Report(ReportArgs),
    /// List the kept bodies of a run's requests and answers, or print one
    Bodies(BodiesArgs),
    /// Print the JSON Schema of a file that flashrig reads or writes
    Schema {
        /// Which file
        #[arg(value_enum, default_value_t = SchemaOf::Run)]
        of: SchemaOf,
    },
    /// Print shell completions
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

/// Which server.
#[derive(Clone, Debug, Args)]
pub struct ServerArgs {
    /// A server's address or the name of a profile [default: the embedded simulated server]
    #[arg(long, value_name = "URL|NAME")]
    pub server: Option<String>,
    /// The model to ask for [default: the only one the server lists]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Context length of the server in tokens, e.g. 128k [default: what the server tells]
    #[arg(long, value_name = "TOKENS", value_parser = flashrig_config::parse_count)]
    pub context: Option<u64>,
    /// Environment variable that holds the server's key
    #[arg(long, value_name = "NAME")]
    pub key_env: Option<String>,
    /// Time factor of a simulated server
    #[arg(long, allow_negative_numbers = true, value_name = "X")]
    pub speed: Option<f64>,
    /// Change a value of the server's profile, such as parallel=4, or cache_ram=4GB of a simulated
    /// one (may be given more than once)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Bring the server back to a known state before each arm or combination, as its profile says
    /// ([reset]); an unscored warm-up follows
    #[arg(long)]
    pub reset: bool,
    /// The file that a server which runs already writes its log to; it is followed from its end
    #[arg(long, value_name = "FILE")]
    pub server_log: Option<PathBuf>,
}

/// Which waiting request the gate lets in next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GateOrderArg {
    /// Who came first
    Fifo,
    /// Side requests (titles, summaries) before main ones
    SideFirst,
    /// The smallest request body
    ShortestFirst,
}

impl GateOrderArg {
    /// As the gate has it.
    pub fn order(self) -> GateOrder {
        match self {
            Self::Fifo => GateOrder::Fifo,
            Self::SideFirst => GateOrder::SideFirst,
            Self::ShortestFirst => GateOrder::ShortestFirst,
        }
    }
}

/// How sessions are contained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SandboxArg {
    /// Bubblewrap where it works, else process groups
    Auto,
    /// Bubblewrap, or an error
    Bubblewrap,
    /// Process groups only
    None,
}

/// `flashrig sim`.
#[derive(Clone, Debug, Args)]
pub struct SimArgs {
    /// Profile of a simulated server
    #[arg(long, value_name = "NAME", default_value = "sim")]
    pub profile: String,
    /// Address to listen on; only loopback makes sense for a server without keys
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: std::net::SocketAddr,
    /// Time factor
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "X",
        default_value_t = 1.0
    )]
    pub speed: f64,
    /// Log what was done when, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Log what a real server would log, as text
    #[arg(long, value_name = "FILE")]
    pub server_log: Option<PathBuf>,
    /// Change a value of the profile, such as cache_ram=4GB or faults.stall_after_requests=6
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
}

/// `flashrig gateway`.
#[derive(Clone, Debug, Args)]
pub struct GatewayArgs {
    /// The server's address
    #[arg(long, value_name = "URL")]
    pub upstream: String,
    /// Address to listen on; beyond loopback every client needs a token
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8081")]
    pub listen: std::net::SocketAddr,
    /// A client and its token, which it sends as its API key; give it once per client. With none,
    /// clients are named by their base address: http://ADDRESS:PORT/client/NAME
    #[arg(long = "client", value_name = "NAME=TOKEN")]
    pub clients: Vec<String>,
    /// Environment variable that holds the server's key
    #[arg(long, value_name = "NAME")]
    pub key_env: Option<String>,
    /// Append a JSON line for every request to this file
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Let at most N generation requests of all clients into the server at a time [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Gate")]
    pub max_in_flight: Option<u32>,
    /// Which waiting request the gate lets in next [default: fifo]
    #[arg(
        long,
        value_enum,
        value_name = "ORDER",
        requires = "max_in_flight",
        help_heading = "Gate"
    )]
    pub order: Option<GateOrderArg>,
    /// Refuse longer prompts in the client's own dialect, e.g. 32k; tokens are estimated from the
    /// request's bytes
    #[arg(long, value_name = "TOKENS", value_parser = flashrig_config::parse_count, help_heading = "Gate")]
    pub max_prompt: Option<u64>,
    /// Answer probes (is somebody there, the model list, token counts) in the server's place, for
    /// servers that do not know them; token counts are estimated
    #[arg(long, requires = "model", help_heading = "Probes")]
    pub answer_probes: bool,
    /// The served model, for the model list that is answered
    #[arg(
        long,
        value_name = "NAME",
        requires = "answer_probes",
        help_heading = "Probes"
    )]
    pub model: Option<String>,
    /// How long requests in flight have to end after the first Ctrl-C
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = flashrig_config::parse_duration)]
    pub drain: std::time::Duration,
}

/// `flashrig tasks`.
#[derive(Clone, Debug, Subcommand)]
pub enum TasksCommand {
    /// List the tasks
    List,
    /// Prove tasks: untouched must fail, the reference solution pass, every cheat fail
    Verify {
        /// Tasks [default: all]
        names: Vec<String>,
        /// How checks are contained
        #[arg(long, value_enum, default_value_t = SandboxArg::Auto)]
        sandbox: SandboxArg,
    },
}

/// `flashrig agents`.
#[derive(Clone, Debug, Subcommand)]
pub enum AgentsCommand {
    /// List the agents, where each is found, and its version
    List,
    /// Install pinned versions into flashrig's cache folder
    Install {
        /// Agents
        #[arg(required = true)]
        names: Vec<String>,
    },
}

/// `flashrig report`.
#[derive(Clone, Debug, Args)]
pub struct ReportArgs {
    /// The folder of the run
    pub run: PathBuf,
    /// As text, or as the picture of a run of fit
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub format: ReportFormat,
}

/// How a report is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For the terminal
    Text,
    /// A picture: more sessions, slower turns
    Svg,
}

/// `flashrig bodies`.
#[derive(Clone, Debug, Args)]
pub struct BodiesArgs {
    /// The folder of the run
    pub run: PathBuf,
    /// The session's folder below sessions/, e.g. r1-together-fix-bug [default: list all]
    pub session: Option<String>,
    /// The request's number, as in requests.jsonl; its body is printed as it was sent [default:
    /// list all]
    pub number: Option<u32>,
    /// Print the answer's body instead
    #[arg(long, requires = "number")]
    pub response: bool,
}

/// Files with a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaOf {
    /// run.json
    Run,
    /// A line of events.jsonl
    Event,
    /// run.json of a sweep
    Sweep,
    /// A line of requests.jsonl
    Request,
    /// A line of server.jsonl
    ServerLine,
    /// A line of the log of `flashrig gateway`
    GatewayLog,
    /// tasks/NAME/task.toml
    Task,
    /// tasks/NAME/walkthrough.toml
    Walkthrough,
    /// fixtures/NAME/fixture.toml
    Fixture,
    /// harness/agents/NAME.toml
    Agent,
    /// harness/servers/NAME.toml
    Server,
    /// What `flashrig servers probe --json` prints
    Probe,
}
