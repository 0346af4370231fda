//! Commands that only print: schemas, completions, the manual page, stored reports.

use clap::CommandFactory as _;
use schemars::schema_for;

use super::args::{Cli, ReportArgs, ReportFormat, SchemaOf};
use super::console::Console;
use super::exit::{Exit, Failure, OrFail, usage};
use crate::agent::raw::RawProfile as AgentProfile;
use flashrig_record::{Probe, RequestLine, ServerLine, Sweep};
use flashrig_report::View;

use crate::store::{Stored, StoredEvent, read_run, results_folder};
use crate::task::{FixtureToml, TaskToml, Walkthrough};
use flashrig_gateway::standing::LogLine;
use flashrig_server::RawProfile as ServerProfile;

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
pub fn completions(shell: clap_complete::Shell, console: Console) -> Exit {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "flashrig", &mut out);
    console.result(&String::from_utf8_lossy(&out));
    Exit::Yes
}

/// `flashrig man`.
pub fn man(console: Console) -> Result<Exit, Failure> {
    let mut out = Vec::new();
    clap_mangen::Man::new(Cli::command())
        .render(&mut out)
        .or_rig()?;
    console.result(&String::from_utf8_lossy(&out));
    Ok(Exit::Yes)
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
        (ReportFormat::Text, true) => console.json_result(&run).or_rig()?,
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
