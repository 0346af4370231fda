//! One unit: the measured command as a process of its own, started, followed, ended, read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::SweepContext;
use super::proof::proofs_from_log;
use crate::exit::ERROR_FILE;
use crate::store::{Stored, read_run};
use flashrig_clock::{Seconds, Stamp};
use flashrig_config::error_chain;
use flashrig_process::{
    ExitStatus, Output, OutputLimits, Prepared, Running, Sandbox, Spec, StopReason, TreeEnd,
};
use flashrig_record::{
    SettingProof, SweepSpec, Unit, UnitBegun, UnitFailure, UnitFault, UnitOutcome,
};
use flashrig_report::judge::sweep::{Reading, of_load, of_pair};

/// For the measured command to bring its own sessions to an end after it was asked to.
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// From TERM to KILL for what is left of it after that.
const GRACE: Duration = Duration::from_secs(5);
/// For the last of its output.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);
/// The file in a unit's folder that its error is in.
const ERROR_TEXT: &str = "error.txt";
/// Its record is in its folder; of what it prints only lines for people are of use.
const LIMITS: OutputLimits = OutputLimits {
    line_bytes: 16 << 10,
    waiting_bytes: 1 << 20,
    file_bytes: 64 << 20,
};

/// How the process ended.
struct Ended {
    status: Option<ExitStatus>,
    error: Option<String>,
    leftovers: Option<UnitFault>,
}

/// Measures a unit; `None` when it was stopped before its end.
pub async fn measure(context: &SweepContext, spec: &SweepSpec, begun: &UnitBegun) -> Option<Unit> {
    let start = Stamp::now();
    let folder = context.folder.join(&begun.folder);
    let ended = run(context, spec, begun, &folder).await;
    let took_s = Seconds::from(Stamp::now().since(start));
    let run = run_folder(&folder);
    let reading = run.as_deref().map(|run| read(&folder.join(run)));
    let (reading, unreadable) = match reading {
        Some(Ok(reading)) => (Some(reading), None),
        Some(Err(message)) => (None, Some(message)),
        None => (None, None),
    };
    let failed = reading.as_ref().is_none_or(|r| r.failed.is_some());
    if failed && context.stop.is_set() {
        return None;
    }
    let mut faults = reading
        .as_ref()
        .map(|r| r.faults.clone())
        .unwrap_or_default();
    faults.extend(ended.leftovers);
    let failure = failed.then(|| {
        let of_run = reading.as_ref().and_then(|r| r.failed.clone());
        let of_command = || {
            let error = ended.error?;
            Some(UnitFailure::CommandFailed { error })
        };
        let of_record = || {
            let error = unreadable?;
            Some(UnitFailure::Unreadable { error })
        };
        of_run
            .or_else(of_command)
            .or_else(of_record)
            .unwrap_or(UnitFailure::NoRecord {
                exit: ended.status.map(|status| status.to_string()),
            })
    });
    let mut server = reading.as_ref().map(|r| r.server.clone());
    if let (Some(server), Some(run)) = (&mut server, &run) {
        let reported = |proof: &SettingProof| proof.engaged.is_some();
        server.proofs.retain(reported);
        let sets = spec.sets(begun.combination);
        for proof in proofs_from_log(&folder.join(run), &context.log, &sets) {
            if !server.proofs.iter().any(|known| known.name == proof.name) {
                server.proofs.push(proof);
            }
        }
    }
    Some(Unit {
        round: begun.round,
        combination: begun.combination,
        folder: begun.folder.clone(),
        run: run.map(|name| format!("{}/{name}", begun.folder)),
        took_s,
        exit_code: match ended.status {
            Some(ExitStatus::Exited(code)) => Some(code),
            _ => None,
        },
        outcome: if failed {
            UnitOutcome::Failed
        } else {
            UnitOutcome::Measured
        },
        failure,
        faults,
        client_bottleneck: reading.as_ref().and_then(|r| r.client_bottleneck),
        figures: reading
            .as_ref()
            .map(|r| r.figures.clone())
            .unwrap_or_default(),
        server,
    })
}

/// The words that the measured command is started with.
///
/// `command` is the measured command with the secrets that the record leaves out.
pub fn command_line(
    spec: &SweepSpec,
    command: &[String],
    combination: u32,
    results: &Path,
) -> Vec<String> {
    let mut message = vec![spec.measures.clone()];
    message.extend(["--server".to_owned(), spec.server.clone()]);
    for set in spec.sets(combination) {
        message.extend(["--set".to_owned(), set]);
    }
    let results = results.to_string_lossy().into_owned();
    message.extend(["--results".to_owned(), results, "--json".to_owned()]);
    message.extend(spec.added.iter().cloned());
    message.extend(command.iter().skip(1).cloned());
    message
}

/// Runs the command to its end, in order when it is asked to stop.
async fn run(context: &SweepContext, spec: &SweepSpec, begun: &UnitBegun, folder: &Path) -> Ended {
    let name = begun.folder.rsplit('/').next().unwrap_or_default();
    let mut process = Spec::new(
        name,
        &context.program,
        &context.dir,
        Sandbox::ProcessGroup,
        &context.program,
    );
    let args = command_line(spec, &context.command, begun.combination, folder);
    process.args = args.into_iter().map(Into::into).collect();
    process.env.clone_from(&context.env);
    let error_file = folder.join(ERROR_TEXT);
    process
        .env
        .push((ERROR_FILE.into(), error_file.clone().into()));
    process.output = Output::Separate {
        stdout: None,
        stderr: Some(folder.join("stderr.txt")),
    };
    process.limits = LIMITS;
    let not_started = |error: anyhow::Error| Ended {
        status: None,
        error: Some(error_chain(&error)),
        leftovers: None,
    };
    let running = match Prepared::new(process).await {
        Ok(prepared) => prepared.go().await,
        Err(error) => Err(error),
    };
    match running {
        Ok(running) => follow(context, running, &error_file).await,
        Err(error) => not_started(error.into()),
    }
}

async fn follow(context: &SweepContext, running: Running, error_file: &Path) -> Ended {
    let lines = running.stderr.clone();
    let mut last_line = None;
    let mut take = |line: &str| {
        if !line.trim().is_empty() {
            last_line = Some(line.trim().to_owned());
        }
        context.bus.note(format!("    {line}"));
    };
    let mut stop = context.stop.clone();
    let (mut open, mut asked) = (true, false);
    let mut deadline = Instant::now();
    loop {
        tokio::select! {
            line = lines.next(), if open => match line {
                Some(line) => take(&line.text()),
                None => open = false,
            },
            _ = running.wait_leader() => break,
            () = stop.wait(), if !asked => {
                asked = true;
                deadline = Instant::now() + STOP_LIMIT;
                running.ask_leader();
            }
            () = sleep_until(deadline), if asked => {
                running.stop_within(StopReason::Interrupted, GRACE);
                deadline = Instant::now() + STOP_LIMIT;
            }
        }
    }
    let ended = running.finish(DRAIN_LIMIT).await;
    while let Some(line) = lines.try_next() {
        take(&line.text());
    }
    let leftovers = match ended.tree {
        TreeEnd::Survivors(left) => {
            let commands = left.into_iter().map(|l| l.command).collect();
            Some(UnitFault::ProcessesLeft { commands })
        }
        TreeEnd::Gone | TreeEnd::GoneAsFarAsSeen => None,
    };
    Ended {
        status: ended.leader.map(|leader| leader.status),
        // A command that was killed left none; the last that it showed may tell.
        error: std::fs::read_to_string(error_file).ok().or(last_line),
        leftovers,
    }
}

/// The name of the results folder that the command made, which is the only folder there.
fn run_folder(folder: &Path) -> Option<String> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    let name = folders.first()?.file_name()?;
    Some(name.to_string_lossy().into_owned())
}

fn read(folder: &Path) -> Result<Reading, String> {
    match read_run(folder) {
        Ok(Stored::Pair(run)) => Ok(of_pair(&run)),
        Ok(Stored::Load(run)) => Ok(of_load(&run)),
        Ok(Stored::Sweep(_)) => Err("it left the record of a sweep".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
