//! Progress of `fit`: a line for each combination, with its place among all, and how much time is
//! left once a whole round tells.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::cli::console::Console;
use crate::plan::grid::{Step, steps};
use crate::run::Live;
use flashrig_clock::Stamp;
use flashrig_config::format_tokens;
use flashrig_record::{LoadRun, LoadSpec, LoadWhat, Measured, StopKind};

/// Less than this is over before it is read.
const WORTH_TELLING: Duration = Duration::from_secs(10);

/// Shows what is told until nobody tells any more.
pub async fn show(console: Console, mut reported: mpsc::UnboundedReceiver<Live<LoadWhat>>) {
    let mut course = Course::default();
    while let Some(live) = reported.recv().await {
        match live {
            Live::Note(text) => console.note(&text),
            Live::Fact(what) => {
                if let Some(line) = course.line(&what, Stamp::now()) {
                    console.note(&line);
                }
            }
            Live::Session { .. } => {}
        }
    }
}

/// How far a run got.
#[derive(Debug, Default)]
pub struct Course {
    all: Vec<Step>,
    done: Vec<Step>,
    /// How long combinations took, by context and sessions, on the wall clock.
    took: BTreeMap<(u64, u32), Vec<Duration>>,
    since: Option<Stamp>,
}

impl Course {
    /// Before anything of `spec` was measured.
    pub fn begin(&mut self, spec: &LoadSpec) {
        if !spec.search {
            self.all = steps(&spec.contexts, &spec.sessions, spec.rounds, spec.seed);
        }
    }

    /// The line for what happened, when it is worth one.
    fn line(&mut self, what: &LoadWhat, now: Stamp) -> Option<String> {
        match what {
            LoadWhat::RunStarted { run } => {
                self.take_up(run);
                None
            }
            LoadWhat::CellStarted {
                round,
                context_tokens,
                sessions,
            } => {
                self.since = Some(now);
                let place = if self.all.is_empty() {
                    format!("[{}]", self.done.len() + 1)
                } else {
                    format!("[{} of {}]", self.done.len() + 1, self.all.len())
                };
                let left = self
                    .left()
                    .filter(|left| *left >= WORTH_TELLING)
                    .map_or_else(String::new, |left| {
                        format!(", about {} left", message(left))
                    });
                Some(format!(
                    "{place} round {round}, {}{left}",
                    combination(*sessions, *context_tokens)
                ))
            }
            LoadWhat::CellMeasured { measured } => {
                if let Some(since) = self.since.take() {
                    self.took
                        .entry((measured.context_tokens, measured.sessions))
                        .or_default()
                        .push(now.since(since));
                }
                self.done.push(step(measured));
                outcome(measured)
            }
            LoadWhat::CellLeftOut { left_out } => {
                self.done.push(Step {
                    round: left_out.round.unwrap_or_default(),
                    context_tokens: left_out.context_tokens,
                    sessions: left_out.sessions,
                });
                Some(format!(
                    "  {} left out: {}",
                    combination(left_out.sessions, left_out.context_tokens),
                    left_out.reason
                ))
            }
            LoadWhat::ServerLife { life } => Some(format!("  {}", life.message)),
            LoadWhat::RunResumed { .. }
            | LoadWhat::Calibrated { .. }
            | LoadWhat::RunFinished { .. } => None,
        }
    }

    /// With what was measured already.
    pub fn take_up(&mut self, run: &LoadRun) {
        self.begin(&run.spec);
        self.done = run
            .measured
            .iter()
            .filter(|m| flashrig_report::judge::fit::is_finished(m))
            .map(step)
            .collect();
    }

    /// What the rest takes, by how long the same combinations took in earlier rounds; `None` before
    /// all of them were measured once, since then it would be a guess.
    fn left(&self) -> Option<Duration> {
        let mut sum = Duration::ZERO;
        let rest = self.all.iter().filter(|s| !self.done.contains(s));
        for step in rest {
            let took = self.took.get(&(step.context_tokens, step.sessions))?;
            sum += took.iter().sum::<Duration>() / u32::try_from(took.len()).ok()?;
        }
        (!self.all.is_empty()).then_some(sum)
    }
}

fn step(measured: &Measured) -> Step {
    Step {
        round: measured.round,
        context_tokens: measured.context_tokens,
        sessions: measured.sessions,
    }
}

fn combination(sessions: u32, context_tokens: u64) -> String {
    format!(
        "{sessions} session{} at {}",
        if sessions == 1 { "" } else { "s" },
        format_tokens(context_tokens)
    )
}

fn outcome(measured: &Measured) -> Option<String> {
    let stop = measured.stopped.as_ref()?;
    (stop.kind != StopKind::Interrupted).then(|| format!("  ended early: {}", stop.message))
}

fn message(left: Duration) -> String {
    match left.as_secs() {
        s @ 0..90 => format!("{s} s"),
        s @ 90..5400 => format!("{} min", s.div_ceil(60)),
        s => format!("{:.1} h", s as f64 / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_record::testing::{K32, fit_run as run, measured};

    fn started(round: u32, sessions: u32) -> LoadWhat {
        LoadWhat::CellStarted {
            round,
            context_tokens: K32,
            sessions,
        }
    }

    fn ended(round: u32, sessions: u32) -> LoadWhat {
        let walls = vec![1.0; sessions as usize];
        LoadWhat::CellMeasured {
            measured: Box::new(measured(round, K32, &walls)),
        }
    }

    #[test]
    fn time_left_is_told_once_every_combination_was_measured_and_not_before() {
        let mut course = Course::default();
        course.begin(&run(&[K32], &[1, 2], 2).spec);
        let at = |s: u64| Stamp(s * 1_000_000_000);
        let line = course.line(&started(1, 1), at(0)).unwrap();
        assert_eq!(line, "[1 of 4] round 1, 1 session at 32K");
        course.line(&ended(1, 1), at(10));
        let line = course.line(&started(1, 2), at(10)).unwrap();
        assert_eq!(line, "[2 of 4] round 1, 2 sessions at 32K");
        course.line(&ended(1, 2), at(30));
        let line = course.line(&started(2, 1), at(30)).unwrap();
        assert_eq!(line, "[3 of 4] round 2, 1 session at 32K, about 30 s left");
    }
}
