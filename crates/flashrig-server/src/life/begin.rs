//! A server's process from nothing to ready.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::error::StartError;
use super::state::{Log, Plan, Shared, State};
use super::{ended, port};
use crate::log::LogIndex;
use flashrig_http::{Redactor, Secret, ask};
use flashrig_process::{
    LeaderExit, OomKills, Output, OutputLimits, Prepared, Running, Sandbox, Spec, StopReason,
};

/// Between two questions whether it is ready.
const ASK_EVERY: Duration = Duration::from_millis(25);
const ASK_LIMIT: Duration = Duration::from_secs(2);
/// Lines of the log that stand in errors.
const SHOWN_LINES: usize = 12;
/// For output that is still held when everything has ended.
pub(super) const DRAIN: Duration = Duration::from_millis(500);
/// Lines of the log between two looks at how many are lost.
const COUNT_EVERY: u32 = 256;
/// Bytes kept of a line of the log.
const LINE_BYTES: usize = 8 * 1024;

/// A server that is ready.
pub(super) struct Begun {
    pub(super) running: Running,
    /// Reads its log to the end.
    pub(super) pump: JoinHandle<()>,
    /// From exec to the answer that it is ready.
    pub(super) ready_after: Duration,
    /// Kills for lack of memory before its start.
    pub(super) oom: OomKills,
}

/// Starts the process and waits until it is ready, or until `cancel`. Dropping this ends it.
pub(super) async fn begin(
    shared: &Shared,
    cancel: impl Future<Output = ()>,
) -> Result<Begun, StartError> {
    let plan = &shared.plan;
    let profile = &plan.launch.recipe.profile;
    if !port::is_free(plan.port) {
        return Err(StartError::PortTaken {
            profile: profile.clone(),
            port: plan.port,
        });
    }
    shared.state.send_replace(State::Starting);
    let oom = OomKills::now();
    let running = Prepared::new(spec(plan)).await?.go().await?;
    let log = Log {
        lines: running.stdout.clone(),
        handed_on: Arc::default(),
    };
    shared.follow(log.clone());
    plan.log_index.begin();
    let log_index = plan.log_index.clone();
    let secrets = Redactor::new(plan.launch.secrets.iter().map(Secret::expose));
    let pump = tokio::spawn(pump(log, log_index, secrets));
    let mut begun = Begun {
        running,
        pump,
        ready_after: Duration::ZERO,
        oom,
    };
    let url = plan.server.url_of(&plan.launch.recipe.ready.path);
    let limit = plan.launch.recipe.ready.limit;
    let waited = tokio::select! {
        biased;
        waited = wait_ready(shared, &begun.running) => waited,
        () = cancel => Waited::Cancelled,
    };
    let last_lines = async |begun: Begun| {
        let ended = begun.running.finish(DRAIN).await;
        let _ = begun.pump.await;
        (ended, plan.log_index.last_lines(SHOWN_LINES))
    };
    match waited {
        Waited::Ready => {
            begun.ready_after = flashrig_clock::Stamp::now().since(begun.running.started);
            let pid = begun.running.pid;
            shared.state.send_replace(State::Alive { pid });
            Ok(begun)
        }
        Waited::Ended(exit) => {
            let (ended, last_lines) = last_lines(begun).await;
            let oom = OomKills::now().since(oom);
            let end = exit.map(|exit| exit.stamp);
            Err(StartError::Died {
                profile: profile.clone(),
                message: ended::exit(exit.map(|exit| exit.status), oom, &last_lines).to_string(),
                after: end.map_or(Duration::ZERO, |end| end.since(ended.started)),
                last_lines,
            })
        }
        Waited::Cancelled => {
            begun.running.stop(StopReason::Interrupted);
            last_lines(begun).await;
            Err(StartError::Cancelled {
                profile: profile.clone(),
            })
        }
        Waited::TooLong(last) => {
            begun.running.stop(StopReason::FirstDeadline);
            let (_, last_lines) = last_lines(begun).await;
            Err(StartError::NotReady {
                profile: profile.clone(),
                url,
                limit,
                last,
                last_lines,
            })
        }
    }
}

enum Waited {
    Ready,
    Ended(Option<LeaderExit>),
    Cancelled,
    TooLong(String),
}

async fn wait_ready(shared: &Shared, running: &Running) -> Waited {
    let ready = &shared.plan.launch.recipe.ready;
    let deadline = Instant::now() + ready.limit;
    let mut last = "gave no answer".to_owned();
    let asking = async {
        loop {
            match ask(&shared.plan.server, &ready.path, None, ASK_LIMIT).await {
                Ok(answer) => {
                    let wanted = match ready.status {
                        Some(status) => answer.status == status,
                        None => (200..300).contains(&answer.status),
                    };
                    if wanted {
                        return;
                    }
                    last = format!("answered {}: {}", answer.status, answer.label());
                }
                Err(error) => last = format!("had no answer ({error})"),
            }
            shared.note(running.usage_now());
            sleep(ASK_EVERY).await;
        }
    };
    tokio::select! {
        biased;
        exit = running.wait_leader() => return Waited::Ended(exit.ok()),
        () = asking => {}
        () = tokio::time::sleep_until(deadline) => return Waited::TooLong(last),
    }
    // Somebody else may have answered at its port while it was ending.
    match running.leader_exit() {
        Some(exit) => Waited::Ended(Some(exit)),
        None => Waited::Ready,
    }
}

fn spec(plan: &Plan) -> Spec {
    let launch = &plan.launch;
    let mut spec = Spec::new(
        format!("server {}", launch.recipe.profile),
        launch.program.clone(),
        launch.dir.clone(),
        Sandbox::ProcessGroup,
        launch.places.shim.clone(),
    );
    spec.args = launch
        .args(plan.port)
        .into_iter()
        .map(OsString::from)
        .collect();
    spec.env = launch.env(plan.port);
    spec.grace = launch.recipe.grace;
    spec.output = Output::Merged { file: None };
    spec.limits = OutputLimits {
        line_bytes: LINE_BYTES,
        ..OutputLimits::default()
    };
    spec
}

/// Hands the lines of the log on as they come, each with the time at which it was read.
async fn pump(log: Log, log_index: LogIndex, secrets: Redactor) {
    let Log { lines, handed_on } = log;
    let mut lost = 0;
    let mut count_lost = || {
        let all = lines.report().lost_lines;
        log_index.lose(all - lost);
        lost = all;
    };
    let mut since = 0_u32;
    while let Some(line) = lines.next().await {
        log_index.line(line.stamp, &secrets.text(line.text()));
        handed_on.fetch_add(1, Ordering::Relaxed);
        since += 1;
        if since == COUNT_EVERY {
            since = 0;
            count_lost();
            // A log that never pauses must not keep others from their turn.
            tokio::task::yield_now().await;
        }
    }
    count_lost();
}
