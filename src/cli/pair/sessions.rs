//! Progress of `pair`: a live line for each session.

use flashrig_config::format_seconds;
use std::collections::BTreeMap;

use super::activity::Activity;
use crate::cli::progress::Progress;
use crate::cli::terminal::spinner;
use crate::run::Step;
use flashrig_clock::Stamp;
use flashrig_record::{Role, Status, What};

/// The sessions that run.
#[derive(Debug, Default)]
pub struct Sessions(BTreeMap<String, Activity>);

impl Progress<What> for Sessions {
    fn fact(&mut self, what: &What, now: Stamp) -> Option<String> {
        match what {
            What::SessionStarted { session, .. } => {
                self.0.insert(session.clone(), Activity::new(now));
            }
            What::SessionEnded { session, .. } => {
                self.0.remove(&session.id);
            }
            _ => {}
        }
        line(what)
    }

    fn step(&mut self, id: &str, step: Step) {
        if let Some(activity) = self.0.get_mut(id) {
            take(activity, step);
        }
    }

    fn live(&self, now: Stamp) -> Vec<String> {
        let sessions = self.0.iter();
        sessions
            .map(|(id, activity)| format!("  {} {id}  {}", spinner(now), activity.label(now)))
            .collect()
    }
}

fn line(what: &What) -> Option<String> {
    match what {
        What::ArmStarted { round: 0, .. } => Some("warm-up".to_owned()),
        What::ArmStarted { round, arm } => Some(format!("round {round}, {}", arm.label())),
        What::SessionStarted { session, .. } => Some(format!("  {session}: started")),
        What::SessionEnded { session, .. } => {
            let wall = session
                .wall_s
                .map_or_else(String::new, |w| format!(" after {}", format_seconds(w.0)));
            Some(format!(
                "  {}: {}{wall}",
                session.id,
                session.status.label()
            ))
        }
        // Cut off by the loss of the server, which is told by itself.
        What::SessionVerified { session, .. }
            if session.status == Status::ServerError && !session.verified =>
        {
            None
        }
        What::SessionVerified { session, .. } => Some(if session.failures.is_empty() {
            format!("  {}: verified, done", session.id)
        } else {
            // The report says why, once.
            format!("  {}: not done ({})", session.id, session.status.label())
        }),
        What::ServerLife { life } => Some(life.fact.to_string()),
        What::RoundFinished {
            round,
            valid: false,
            ..
        } => Some(format!("round {round} is not compared")),
        What::RunStarted { .. }
        | What::ArmFinished { .. }
        | What::RoundFinished { .. }
        | What::RunFinished { .. } => None,
    }
}

fn take(activity: &mut Activity, step: Step) {
    match step {
        Step::Asked {
            role: Role::Probe, ..
        } => {}
        Step::Held {
            number,
            role,
            progress,
            at,
        } => activity.held(number, role == Role::Side, progress, at),
        Step::Asked {
            number,
            role,
            progress,
            at,
        } => activity.asked(number, role == Role::Side, progress, at),
        Step::Answered { number, at, .. } => activity.answered(number, at),
        Step::Turn => activity.turn(),
        Step::Tool(detail) => activity.tool(detail),
    }
}
