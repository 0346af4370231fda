//! Commands that only print: schemas, completions, manual pages, stored reports.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use schemars::schema_for;

use super::console::Console;
use super::exit::{Exit, Failure, OrFail, usage};
use crate::agent::raw::RawProfile as AgentProfile;
use flashrig_record::{Probe, RequestLine, ServerLine, Sweep};
use flashrig_report::View;

use crate::store::{Stored, StoredEvent, read_run, results_folder};
use crate::task::{FixtureToml, TaskToml, Walkthrough};
use flashrig_gateway::standing::LogLine;
use flashrig_server::RawProfile as ServerProfile;

/// `flashrig report`.
#[derive(Clone, Debug, Args)]
pub struct ReportArgs {
    /// The folder of the run
    pub run: PathBuf,
    /// Text, or a picture (runs of fit only)
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub format: ReportFormat,
}

/// How a report is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For the terminal
    Text,
    /// A chart of slowdown by sessions
    Svg,
}

/// `flashrig man`.
#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    /// Write one file for each command into this folder instead of printing
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
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

/// `flashrig schema`.
pub fn schema(of: SchemaOf, console: Console) -> Result<Exit, Failure> {
    let schema = match of {
        SchemaOf::Run => schema_for!(Stored),
        SchemaOf::Sweep => schema_for!(Sweep),
        SchemaOf::Event => schema_for!(StoredEvent),
        SchemaOf::Request => schema_for!(RequestLine),
        SchemaOf::ServerLine => schema_for!(ServerLine),
        SchemaOf::GatewayLog => schema_for!(LogLine),
        SchemaOf::Task => schema_for!(TaskToml),
        SchemaOf::Walkthrough => schema_for!(Walkthrough),
        SchemaOf::Fixture => schema_for!(FixtureToml),
        SchemaOf::Agent => schema_for!(AgentProfile),
        SchemaOf::Server => schema_for!(ServerProfile),
        SchemaOf::Probe => schema_for!(Probe),
    };
    console.json_result(&schema).or_rig()?;
    Ok(Exit::Yes)
}

/// `flashrig completions`.
pub fn completions(
    shell: clap_complete::Shell,
    root: &mut clap::Command,
    console: Console,
) -> Exit {
    let mut out = Vec::new();
    clap_complete::generate(shell, root, "flashrig", &mut out);
    console.result(&String::from_utf8_lossy(&out));
    Exit::Yes
}

/// `flashrig man`: the pages of `root` and all commands below it.
pub fn man(args: &ManArgs, root: clap::Command, console: Console) -> Result<Exit, Failure> {
    if let Some(dir) = &args.dir {
        std::fs::create_dir_all(dir)
            .and_then(|()| clap_mangen::generate_to(root, dir))
            .with_context(|| format!("cannot write the manual pages into {}", dir.display()))
            .or_rig()?;
        return Ok(Exit::Yes);
    }
    console.raw_result(&all_pages(root).or_rig()?);
    Ok(Exit::Yes)
}

fn all_pages(root: clap::Command) -> std::io::Result<Vec<u8>> {
    let mut root = root.disable_help_subcommand(true);
    // Names the pages of subcommands after the whole command.
    root.build();
    let mut out = Vec::new();
    pages(root, &mut out)?;
    Ok(out)
}

fn pages(command: clap::Command, out: &mut Vec<u8>) -> std::io::Result<()> {
    let below: Vec<_> = command.get_subcommands().cloned().collect();
    clap_mangen::Man::new(command).render(out)?;
    below
        .into_iter()
        .try_for_each(|command| pages(command, out))
}

/// `flashrig report`.
pub fn report(args: &ReportArgs, console: Console) -> Result<Exit, Failure> {
    let folder = results_folder(&args.run);
    let run = read_run(&folder).or_usage()?;
    match (args.format, console.json()) {
        (ReportFormat::Svg, true) => {
            return Err(usage("--format svg and --json are two things; give one"));
        }
        (ReportFormat::Svg, false) => console.result(&picture(&run)?),
        (ReportFormat::Text, true) => console.result(&run.to_json().or_rig()?),
        (ReportFormat::Text, false) => {
            let report = rendered(&run, console.view());
            console.result(&format!("{report}Results: {}", folder.display()));
        }
    }
    Ok(Exit::Yes)
}

fn picture(run: &Stored) -> Result<String, Failure> {
    let pictures = match run {
        Stored::Pair(_) | Stored::Sweep(_) => Vec::new(),
        Stored::Load(run) => flashrig_report::pictures(run),
    };
    let first = pictures.into_iter().next();
    first.map(|(_, picture)| picture).ok_or_else(|| {
        usage(
            "this run has no picture: only a run of fit has one, and only when at least two numbers \
             of sessions are compared",
        )
    })
}

fn rendered(run: &Stored, view: View) -> String {
    match run {
        Stored::Pair(run) => flashrig_report::pair_text(run, view),
        Stored::Load(run) => flashrig_report::load_text(run, view),
        Stored::Sweep(sweep) => flashrig_report::sweep_text(sweep, view),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::*;

    #[test]
    fn every_command_has_its_page_under_its_whole_name() {
        let root = Command::new("flashrig").subcommand(
            Command::new("servers").subcommand(Command::new("probe").arg(Arg::new("url"))),
        );
        let text = String::from_utf8(all_pages(root).unwrap()).unwrap();
        let titles: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with(".TH"))
            .collect();
        let wanted = [
            ".TH flashrig 1",
            ".TH flashrig-servers 1",
            ".TH flashrig-servers-probe 1",
        ];
        assert_eq!(titles.len(), wanted.len(), "{titles:?}");
        for (title, wanted) in titles.iter().zip(wanted) {
            assert!(title.starts_with(wanted), "{title}");
        }
    }
}
