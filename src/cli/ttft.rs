//! `flashrig ttft`: from what was typed to a prepared run, its execution and its report.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use tokio::sync::mpsc;

use super::args::ServerArgs;
use super::console::Console;
use super::exit::{Exit, Failure, OrFail, usage};
use super::loading;
use super::progress::Progress;
use super::terminal::spinner;
use super::{progress, signals};
use flashrig_clock::{Seconds, Stamp};
use flashrig_config::{
    Numbers, format_seconds, format_tokens, parse_count, parse_duration, parse_numbers,
};
use flashrig_record::{LoadSpec, LoadWhat, Measured, RecallRule, RunState, Thresholds};
use flashrig_report::judge::ttft::{Answer, answer};

use crate::run::Stop;
use crate::run::load::ttft::{Request, execute, prepare};

/// `flashrig ttft`.
#[derive(Clone, Debug, Args)]
pub struct TtftArgs {
    /// The server
    #[command(flatten)]
    pub server: ServerArgs,
    /// Numbers of concurrent requests to measure, e.g. 1,2,4,8 or 1..4
    #[arg(long, value_name = "NUMBERS", default_value = "1,2,4,8", value_parser = parse_numbers, allow_hyphen_values = true)]
    pub agents: Numbers,
    /// Tokens of each prompt
    #[arg(long, value_name = "TOKENS", default_value = "2k", value_parser = parse_count, allow_hyphen_values = true)]
    pub prompt: u64,
    /// Give one of the concurrent requests a longer prompt of this many tokens. A single request is
    /// never the long one
    #[arg(long, value_name = "TOKENS", value_parser = parse_count, allow_hyphen_values = true)]
    pub long: Option<u64>,
    /// Let concurrent prompts share everything but their last line. Otherwise no two prompts share
    /// even their first line
    #[arg(long)]
    pub shared_prefix: bool,
    /// Tokens of each answer
    #[arg(long, value_name = "TOKENS", default_value_t = 64, value_parser = flashrig_config::whole_number(1, 100_000))]
    pub answer_tokens: u32,
    /// How often each number is measured
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = flashrig_config::whole_number(1, 1000))]
    pub rounds: u32,
    /// Longest wait for a token; after that the server counts as stalled, and the run ends
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    pub first_token_limit: Duration,
    /// Seed of the prompts [default: a new one for each run, so that no prompt is in the server's
    /// cache from an earlier run]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Folder for results
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub results: PathBuf,
}

/// Runs the command.
pub async fn ttft(args: TtftArgs, console: Console) -> Result<Exit, Failure> {
    let request = Request {
        spec: spec(&args)?,
        server: args.server.request(),
        results: args.results,
    };
    let (stopper, stop) = Stop::new();
    let (live, reported) = mpsc::unbounded_channel();
    let message = "stopping: keeping what was measured (again to stop at once)";
    let watching = tokio::spawn(signals::watch(console, message, stopper));
    let showing = tokio::spawn(progress::show(console, reported, Course::default()));
    let prepared = match stop.unless(prepare(request, live, stop.clone())).await {
        Some(prepared) => prepared,
        None => Err(Failure {
            exit: Exit::Interrupted,
            error: anyhow!("stopped before anything was measured"),
        }),
    };
    let result = match prepared {
        Ok((context, record, folder)) => {
            let done = execute(&context, record).await.or_rig();
            context.server.life.stop().await;
            // Here the context goes, and with it what is told.
            done.map(|run| (run, folder))
        }
        Err(failure) => Err(failure),
    };
    let _ = showing.await;
    watching.abort();
    let (run, folder) = result?;
    console
        .run_result(&run, |view| flashrig_report::load_text(&run, view), &folder)
        .or_rig()?;
    Ok(match (run.state, answer(&run)) {
        (RunState::Interrupted, _) => Exit::Interrupted,
        (RunState::Failed | RunState::Unfinished, _) | (_, Answer::None) => Exit::Rig,
        (_, Answer::Some) => Exit::No,
        (_, Answer::All) => Exit::Yes,
    })
}

/// Whether what was typed makes sense, before anything is started.
///
/// # Errors
/// The first option that makes none.
pub fn check(args: &TtftArgs) -> Result<(), Failure> {
    spec(args).map(drop)
}

/// What is measured now.
#[derive(Debug, Default)]
struct Course(Option<(u32, Stamp)>);

impl Progress<LoadWhat> for Course {
    /// A line for each number of requests that was measured.
    fn fact(&mut self, what: &LoadWhat, now: Stamp) -> Option<String> {
        match what {
            LoadWhat::CellStarted { sessions, .. } => {
                self.0 = Some((*sessions, now));
                None
            }
            LoadWhat::CellMeasured { measured } => {
                self.0 = None;
                Some(line(measured))
            }
            LoadWhat::ServerLife { life } => Some(life.fact.to_string()),
            _ => None,
        }
    }

    fn live(&self, now: Stamp) -> Vec<String> {
        let lines = self.0.iter();
        lines
            .map(|(sessions, since)| {
                let seconds = now.since(*since).as_secs();
                format!("  {} {sessions} at once, {seconds} s", spinner(now))
            })
            .collect()
    }
}

fn line(measured: &Measured) -> String {
    let tokens = measured.lanes.iter().flat_map(|lane| &lane.turns);
    let worst = tokens
        .filter_map(|turn| turn.ttft_s)
        .map(|s| s.0)
        .reduce(f64::max);
    let reported = worst.map_or_else(
        || "no first token".to_owned(),
        |worst| format!("first tokens within {}", format_seconds(worst)),
    );
    let stopped = measured
        .stopped
        .as_ref()
        .map_or_else(String::new, |stop| format!("; {}", stop.reason));
    format!("{} at once: {reported}{stopped}", measured.sessions)
}

/// The experiment that was asked for.
fn spec(args: &TtftArgs) -> Result<LoadSpec, Failure> {
    if args.first_token_limit.is_zero() {
        return Err(usage(
            "--first-token-limit 0s leaves no time for a first token; give a longer one, e.g. 10m",
        ));
    }
    if args.long.is_some_and(|long| long <= args.prompt) {
        return Err(usage(format!(
            "--long {} is not longer than the other prompts ({}); give more, or leave it out",
            format_tokens(args.long.unwrap_or(0)),
            format_tokens(args.prompt),
        )));
    }
    if args.long.is_some() && args.agents.0.last() == Some(&1) {
        return Err(usage(
            "--long puts a long prompt among short ones, and with --agents 1 there is only one; \
             give more, e.g. --agents 1,2,4",
        ));
    }
    Ok(LoadSpec {
        contexts: vec![args.prompt],
        sessions: args.agents.0.clone(),
        rounds: args.rounds,
        auto_rounds: None,
        checks: 0,
        answer_tokens: args.answer_tokens,
        seed: args.seed.unwrap_or_else(loading::new_seed),
        think_s: Seconds(0.0),
        stagger_s: Seconds(0.0),
        side: None,
        thresholds: Thresholds {
            pass: 1.5,
            fail: 2.0,
        },
        recall: RecallRule::Off,
        search: false,
        expect: None,
        first_token_limit_s: args.first_token_limit.into(),
        long_tokens: args.long,
        reset: args.server.reset,
        shared_prefix: args.shared_prefix,
    })
}
