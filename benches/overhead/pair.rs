//! Real `pair` runs, read from their `events.jsonl`: from the moment when a session's turn has come
//! to its agent's exec, and from the agent's end to the verdict of its checks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use flashrig_record::{ArmKind, Event, Session, What};

use super::FLASHRIG;
use super::project::{Project, TASKS};
use super::table::Row;

const ROUNDS: &str = "10";

pub fn measure() -> Vec<Row> {
    let project = Project::make();
    ["none", "bubblewrap"]
        .into_iter()
        .flat_map(|sandbox| with(&project, sandbox))
        .collect()
}

fn with(project: &Project, sandbox: &str) -> Vec<Row> {
    let results = project.path().join(format!("results-{sandbox}"));
    let output = Command::new(FLASHRIG)
        .current_dir(project.path())
        .args(["pair", "--agent", "command", "--agent-command"])
        .arg(project.agent())
        .args(TASKS.iter().flat_map(|task| ["--task", task]))
        .args(["--rounds", ROUNDS, "--sandbox", sandbox, "--results"])
        .arg(&results)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let name = |what: &str| format!("{what}, sandbox {sandbox}");
    if output.status.code() == Some(3) && sandbox == "bubblewrap" {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return vec![Row::missing(name("start to exec"), why)];
    }
    let reported = Reported::read(&run_folder(&results));
    vec![
        Row::times(
            name("start to exec, back to back"),
            &reported.alone,
            Some(50.0),
        ),
        Row::times(
            name("start to exec, together, per session"),
            &reported.together,
            Some(50.0),
        ),
        Row::times(
            name("verification beyond its checks"),
            &reported.verifying,
            Some(100.0),
        )
        .with("3 checks that are over at once"),
    ]
}

/// The only run in a results folder.
pub fn run_folder(results: &Path) -> PathBuf {
    let mut runs: Vec<_> = fs::read_dir(results)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

/// What the events of a run tell.
#[derive(Default)]
pub struct Reported {
    /// From the start of the arm, or the end of the session before, to exec.
    pub alone: Vec<Duration>,
    /// From the start of the arm to the last exec, divided by the number of sessions.
    pub together: Vec<Duration>,
    /// For each session: from the end of the arm's last agent, or of the verification before, to the
    /// end of its own, less the time of its checks.
    pub verifying: Vec<Duration>,
}

impl Reported {
    pub fn read(run: &Path) -> Self {
        let mut reported = Self::default();
        // When the arm began, when the last thing that is waited for was over, and what was exec'd.
        let (mut began, mut turn) = (0.0, 0.0);
        let mut execs: Vec<f64> = Vec::new();
        let text = fs::read_to_string(run.join("events.jsonl")).unwrap();
        for line in text.lines() {
            let event: Event = serde_json::from_str(line).unwrap();
            let at = event.at_s.0;
            match event.what {
                What::ArmStarted { .. } => {
                    (began, turn) = (at, at);
                    execs.clear();
                }
                What::SessionEnded { arm, session, .. } => {
                    let exec = session.started_s.expect("an agent did not start").0;
                    match arm {
                        ArmKind::BackToBack | ArmKind::BackToBackAgain => {
                            reported.alone.push(seconds(exec - turn))
                        }
                        ArmKind::Together | ArmKind::Gated => execs.push(exec - began),
                    }
                    turn = at;
                }
                What::SessionVerified { session, .. } => {
                    let overhead = at - turn - checks(&session);
                    reported.verifying.push(seconds(overhead));
                    turn = at;
                }
                What::ArmFinished { .. } if !execs.is_empty() => {
                    let last = execs.iter().copied().fold(0.0, f64::max);
                    #[expect(clippy::cast_precision_loss, reason = "a handful of sessions")]
                    reported.together.push(seconds(last / execs.len() as f64));
                }
                _ => {}
            }
        }
        reported
    }
}

fn checks(session: &Session) -> f64 {
    assert!(
        !session.checks.is_empty(),
        "{} was not verified: {}",
        session.id,
        session.detail
    );
    session.checks.iter().map(|c| c.duration_s.0).sum()
}

fn seconds(value: f64) -> Duration {
    Duration::from_secs_f64(value.max(0.0))
}
