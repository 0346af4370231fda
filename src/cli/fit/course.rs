//! Progress of `fit`: a line for each combination, with its place among all and about how much time
//! is left.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cli::progress::Progress;
use crate::cli::terminal::spinner;
use crate::plan::grid::{Step, steps};
use flashrig_clock::Stamp;
use flashrig_config::{format_rough, format_tokens, plural};
use flashrig_record::{LoadRun, LoadSpec, LoadWhat, Measured, StopKind};

/// Less than this is over before it is read.
const WORTH_TELLING: Duration = Duration::from_secs(10);

/// How far a run got.
#[derive(Debug, Default)]
pub struct Course {
    all: Vec<Step>,
    done: Vec<Step>,
    /// How long combinations took, by context and sessions, on the wall clock.
    took: BTreeMap<(u64, u32), Vec<Duration>>,
    since: Option<Stamp>,
}

impl Progress<LoadWhat> for Course {
    fn fact(&mut self, what: &LoadWhat, now: Stamp) -> Option<String> {
        self.line(what, now)
    }

    fn live(&self, now: Stamp) -> Vec<String> {
        let lines = self.since.iter();
        lines
            .map(|&since| {
                let took = now.since(since);
                let measuring = format_rough(took);
                let left = self.remaining(took);
                format!("  {} measuring for {measuring}{left}", spinner(now))
            })
            .collect()
    }
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
                let left = self.remaining(Duration::ZERO);
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
            LoadWhat::ServerLife { life } => Some(format!("  {}", life.fact)),
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

    /// How much time is left, `took` into the current combination; nothing when it is not known or
    /// not worth telling.
    fn remaining(&self, took: Duration) -> String {
        self.left()
            .map(|left| left.saturating_sub(took))
            .filter(|left| *left >= WORTH_TELLING)
            .map_or_else(String::new, |left| {
                format!(", about {} left", format_rough(left))
            })
    }

    /// What the rest takes. A combination that was measured before takes as long again; another one
    /// is estimated by the tokens of all its sessions, at the pace of what was measured so far.
    /// `None` while nothing was measured.
    fn left(&self) -> Option<Duration> {
        let tokens = |context: u64, sessions: u32| context as f64 * f64::from(sessions);
        let (mut spent, mut done) = (0.0, 0.0);
        for (&(context, sessions), took) in &self.took {
            spent += took.iter().sum::<Duration>().as_secs_f64();
            done += tokens(context, sessions) * took.len() as f64;
        }
        if self.all.is_empty() || done <= 0.0 {
            return None;
        }
        let rest = self.all.iter().filter(|step| !self.done.contains(step));
        let seconds = rest.map(
            |step| match self.took.get(&(step.context_tokens, step.sessions)) {
                Some(took) => mean(took).as_secs_f64(),
                None => spent / done * tokens(step.context_tokens, step.sessions),
            },
        );
        Duration::try_from_secs_f64(seconds.sum()).ok()
    }
}

fn mean(took: &[Duration]) -> Duration {
    let count = u32::try_from(took.len()).unwrap_or(u32::MAX).max(1);
    took.iter().sum::<Duration>() / count
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
        "{} at {}",
        plural(sessions, "session"),
        format_tokens(context_tokens)
    )
}

fn outcome(measured: &Measured) -> Option<String> {
    let stop = measured.stopped.as_ref()?;
    (stop.kind != StopKind::Interrupted).then(|| format!("  ended early: {}", stop.reason))
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
    fn time_left_is_estimated_from_the_first_combination_on() {
        let mut course = Course::default();
        course.begin(&run(&[K32], &[1, 2], 2).spec);
        let at = |s: u64| Stamp(s * 1_000_000_000);
        let line = course.line(&started(1, 1), at(0)).unwrap();
        assert_eq!(line, "[1 of 4] round 1, 1 session at 32K");
        course.line(&ended(1, 1), at(10));
        // 10 s for one session: 20 s for two, and both once more.
        let line = course.line(&started(1, 2), at(10)).unwrap();
        assert_eq!(line, "[2 of 4] round 1, 2 sessions at 32K, about 50 s left");
        course.line(&ended(1, 2), at(40));
        // Two sessions took 30 s, so they do again.
        let line = course.line(&started(2, 1), at(40)).unwrap();
        assert_eq!(line, "[3 of 4] round 2, 1 session at 32K, about 40 s left");
        let live = course.live(at(45));
        assert!(
            live[0].ends_with("measuring for 5 s, about 35 s left"),
            "{live:?}"
        );
    }
}
