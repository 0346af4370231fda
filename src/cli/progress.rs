//! Progress while a run goes on: one live line per session on a terminal, plain lines elsewhere.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::sync::mpsc;
use tokio::time::interval;

use super::activity::Activity;
use super::console::Console;
use crate::run::{Live, Step};
use flashrig_clock::Stamp;
use flashrig_record::{Role, Status, What};

/// How often the live lines are brought up to date.
const REFRESH: Duration = Duration::from_millis(200);

/// Shows what is told until nobody tells any more.
pub async fn show(console: Console, mut reported: mpsc::UnboundedReceiver<Live>) {
    if !console.shows_progress() {
        while reported.recv().await.is_some() {}
        return;
    }
    if std::io::stderr().is_terminal() {
        live_lines(reported).await;
        return;
    }
    while let Some(live) = reported.recv().await {
        if let Some(line) = plain(&live) {
            console.note(&line);
        }
    }
}

/// The line for a log file; not everything that moves is worth one.
fn plain(live: &Live) -> Option<String> {
    match live {
        Live::Note(text) => Some(text.clone()),
        Live::Fact(what) => fact(what),
        Live::Session { .. } => None,
    }
}

fn fact(what: &What) -> Option<String> {
    match what {
        What::ArmStarted { round: 0, .. } => Some("warm-up".to_owned()),
        What::ArmStarted { round, arm } => Some(format!("round {round}, {}", arm.label())),
        What::SessionStarted { session, .. } => Some(format!("  {session}: started")),
        What::SessionEnded { session, .. } => {
            let wall = session
                .wall_s
                .map_or_else(String::new, |w| format!(" after {:.1} s", w.0));
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
            format!(
                "  {}: not done: {}",
                session.id,
                session.failures.join("; ")
            )
        }),
        What::ServerLife { life } => Some(life.message.clone()),
        What::RoundFinished {
            round,
            valid: false,
            invalid_reasons,
        } => Some(format!(
            "round {round} is not compared: {}",
            invalid_reasons.join("; ")
        )),
        What::RunStarted { .. }
        | What::ArmFinished { .. }
        | What::RoundFinished { .. }
        | What::RunFinished { .. } => None,
    }
}

async fn live_lines(mut reported: mpsc::UnboundedReceiver<Live>) {
    let lines = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
    let mut sessions: BTreeMap<String, (ProgressBar, Activity)> = BTreeMap::new();
    let mut refresh = interval(REFRESH);
    loop {
        tokio::select! {
            live = reported.recv() => match live {
                None => break,
                Some(Live::Session { id, step }) => {
                    if let Some((_, activity)) = sessions.get_mut(&id) {
                        take(activity, step);
                    }
                }
                Some(other) => {
                    if let Some(line) = plain(&other) {
                        let _ = lines.println(line);
                    }
                    if let Live::Fact(what) = &other {
                        follow(what, &lines, &mut sessions);
                    }
                }
            },
            _ = refresh.tick() => {
                let now = Stamp::now();
                // Room for the terminal's own `^C`, which would otherwise wrap and shift the lines.
                let width = usize::from(console::Term::stderr().size().1).saturating_sub(8);
                for (id, (bar, activity)) in &sessions {
                    let line = format!("{id}  {}", activity.label(now));
                    bar.set_message(console::truncate_str(&line, width, "…").into_owned());
                }
            }
        }
    }
    let _ = lines.clear();
}

fn follow(
    what: &What,
    lines: &MultiProgress,
    sessions: &mut BTreeMap<String, (ProgressBar, Activity)>,
) {
    match what {
        What::SessionStarted { session, .. } => {
            let style = ProgressStyle::with_template("  {spinner} {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner());
            let bar = lines.add(ProgressBar::new_spinner().with_style(style));
            sessions.insert(session.clone(), (bar, Activity::new(Stamp::now())));
        }
        What::SessionEnded { session, .. } => {
            if let Some((bar, _)) = sessions.remove(&session.id) {
                bar.finish_and_clear();
                lines.remove(&bar);
            }
        }
        _ => {}
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
