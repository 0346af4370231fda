//! Options that several commands have in common. Raw: the commands validate them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::plan::server::ServerRequest;
use flashrig_process::SandboxChoice;
use flashrig_record::GateOrder;
use flashrig_server::DoorSpec;

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
    /// Show more detail (twice for debug messages)
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

/// Which server.
#[derive(Clone, Debug, Args)]
pub struct ServerArgs {
    /// A server's address or the name of a profile [default: the embedded simulated server]
    #[arg(long, value_name = "URL|NAME")]
    pub server: Option<String>,
    /// The model to ask for [default: the only one the server lists]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Context length of the server in tokens, e.g. 128k [default: what the server reports]
    #[arg(long, value_name = "TOKENS", value_parser = flashrig_config::parse_count)]
    pub context: Option<u64>,
    #[command(flatten)]
    pub door: DoorArgs,
    /// Time factor of a simulated server: 10 makes it ten times as fast
    #[arg(long, allow_negative_numbers = true, value_name = "X")]
    pub speed: Option<f64>,
    /// Change a value of the server's profile, such as parallel=4 (repeatable). A simulated server
    /// also takes values such as cache_ram=4GB
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Reset the server before each arm or combination, as its profile says under [reset]. An
    /// unscored warm-up follows
    #[arg(long)]
    pub reset: bool,
    /// Log file of a server that is already running; flashrig reads what is appended to it
    #[arg(long, value_name = "FILE")]
    pub server_log: Option<PathBuf>,
}

impl ServerArgs {
    /// As plain data.
    pub fn request(&self) -> ServerRequest {
        ServerRequest {
            server: self.server.clone(),
            model: self.model.clone(),
            context: self.context,
            door: self.door.spec(),
            speed: self.speed,
            sets: self.sets.clone(),
            reset: self.reset,
            server_log: self.server_log.clone(),
        }
    }
}

/// What opens the server's door.
#[derive(Clone, Debug, Args)]
pub struct DoorArgs {
    /// Environment variable that holds the server's key
    #[arg(long, value_name = "NAME")]
    pub key_env: Option<String>,
    /// Send a header with every request; VARIABLE is the environment variable that holds its value
    /// (repeatable)
    #[arg(long, value_name = "NAME=VARIABLE", value_parser = flashrig_server::parse_header_env)]
    pub header_env: Vec<(String, String)>,
    /// Environment variable that holds user:pass for HTTP Basic; http://user:pass@host works too
    #[arg(long, value_name = "NAME")]
    pub basic_env: Option<String>,
    /// Trust the certificates in this PEM file too, for an https server with a CA of its own
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
}

impl DoorArgs {
    /// As plain data.
    pub fn spec(&self) -> DoorSpec {
        DoorSpec {
            key_env: self.key_env.clone(),
            header_env: self.header_env.clone(),
            basic_env: self.basic_env.clone(),
            ca: self.ca.clone(),
        }
    }
}

/// Which waiting request the gate admits next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GateOrderArg {
    /// First come, first served
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

impl From<SandboxArg> for SandboxChoice {
    fn from(typed: SandboxArg) -> Self {
        match typed {
            SandboxArg::Auto => Self::Auto,
            SandboxArg::Bubblewrap => Self::Bubblewrap,
            SandboxArg::None => Self::None,
        }
    }
}
