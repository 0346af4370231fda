//! `flashrig sim`: the simulated server alone, with the walkthroughs of all known tasks.

use std::path::PathBuf;

use clap::Args;

use super::console::Console;
use super::exit::{Exit, Failure, OrFail, usage};
use super::setting::Setting;
use super::signals;
use crate::run::Stop;
use crate::task;
use flashrig_server::{Change, Target, TargetError};
use flashrig_sim::{Faults, Script, Sim, SimConfig};

/// `flashrig sim`.
#[derive(Clone, Debug, Args)]
pub struct SimArgs {
    /// Profile of a simulated server
    #[arg(long, value_name = "NAME", default_value = "sim")]
    pub profile: String,
    /// Address to listen on; only loopback makes sense for a server without keys
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: std::net::SocketAddr,
    /// Time factor: 10 makes the server ten times as fast
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "X",
        default_value_t = 1.0
    )]
    pub speed: f64,
    /// Log what the simulated engine did and when, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Write the text log that a real server would write
    #[arg(long, value_name = "FILE")]
    pub server_log: Option<PathBuf>,
    /// Change a value of the profile, such as cache_ram=4GB or faults.stall_after_requests=6
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
}

/// Runs the command.
pub async fn sim(args: SimArgs, console: Console) -> Result<Exit, Failure> {
    let project = Setting::new()?.places.project;
    let changes = args.sets.iter().map(|text| text.parse());
    let changes: Vec<Change> = changes.collect::<Result<_, _>>().or_usage()?;
    let target =
        Target::parse_with(Some(&args.profile), None, &changes, Some(&project)).or_usage()?;
    let Target::Simulated { profile, .. } = target else {
        return Err(usage(format!("{} is not a simulated server", args.profile)));
    };
    if !(args.speed.is_finite() && args.speed > 0.0) {
        return Err(TargetError::Speed(args.speed)).or_usage();
    }
    let library = task::Library::new(Some(&project));
    let mut scripts = Vec::new();
    for name in library.names().or_usage()? {
        let task = library.load(&name).or_usage()?;
        if let Some(walkthrough) = task.walkthrough {
            scripts.push(Script {
                name,
                prompt: task.prompt,
                walkthrough,
            });
        }
    }
    let (stopper, mut stop) = Stop::new();
    let watching = tokio::spawn(signals::watch(console, "stopping", stopper));
    let model = profile.model.clone();
    let handle = Sim::start(SimConfig {
        listen: args.listen,
        profile,
        speed: args.speed,
        scripts,
        seed: 1,
        log: args.log,
        server_log: args.server_log,
        faults: Faults::default(),
    })
    .or_rig()?;
    let url = handle.base_url();
    if console.json() {
        let reported = serde_json::json!({"sim": url, "model": model, "speed": args.speed});
        console.json_line(&reported).or_rig()?;
    } else {
        console.result(&format!(
            "simulated server on {url} (model {model}, speed {}); Ctrl-C ends it",
            args.speed
        ));
    }
    stop.wait().await;
    watching.abort();
    handle.stop();
    Ok(Exit::Yes)
}
