//! Whether the model that answered is the one that was asked for.

use flashrig_record::{Attempt, LoadRun, Run};

/// Different pairs of models that are listed.
const LISTED: usize = 20;

/// Whether a name in an answer can mean the model asked for: servers answer with the path of its
/// file for the file's name, and with a dated name for one without a date.
fn is_same(asked: &str, answered: &str) -> bool {
    let file = |name: &str| name.rsplit('/').next().unwrap_or(name).to_lowercase();
    let (asked, answered) = (file(asked), file(answered));
    asked == answered || answered.starts_with(&format!("{asked}-"))
}

/// Pairs of names with how often each was seen, in order of the first.
fn counted<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(&'a str, &'a str, u32)> {
    let mut found: Vec<(&str, &str, u32)> = Vec::new();
    for (asked, answered) in pairs.filter(|(asked, answered)| !is_same(asked, answered)) {
        match found.iter().position(|f| (f.0, f.1) == (asked, answered)) {
            Some(known) => found[known].2 += 1,
            None if found.len() < LISTED => found.push((asked, answered, 1)),
            None => {}
        }
    }
    found
}

/// Answers to a session that named another model than the one asked for, as
/// `ASKED -> ANSWERED (COUNT)`.
pub fn other_models(attempts: &[Attempt]) -> Vec<String> {
    let pairs = attempts
        .iter()
        .filter_map(|a| Some((a.model.as_deref()?, a.answered_model.as_deref()?)));
    let message = |(asked, answered, count)| format!("{asked} -> {answered} ({count})");
    counted(pairs).into_iter().map(message).collect()
}

/// The same of all sessions of a run of agents, in words.
pub fn of_agents(run: &Run) -> Vec<String> {
    let arms = run.rounds.iter().flat_map(|r| &r.arms);
    let mut reported: Vec<String> = Vec::new();
    for session in arms.flat_map(|a| &a.sessions) {
        for pair in &session.other_models {
            let pair = pair.rsplit_once(" (").map_or(&**pair, |(names, _)| names);
            let message = format!(
                "another model than the one asked for answered {}: {pair}",
                session.id
            );
            if !reported.contains(&message) {
                reported.push(message);
            }
        }
    }
    reported
}

/// The same of a run of synthetic sessions.
pub fn of_load(run: &LoadRun) -> Vec<String> {
    let lanes = run.measured.iter().flat_map(|m| &m.lanes);
    let answered = lanes
        .flat_map(|lane| &lane.turns)
        .filter_map(|turn| turn.answered_model.as_deref());
    let pairs = answered.map(|answered| (&*run.server.model, answered));
    let message = |(asked, answered, count)| {
        format!("{asked:?} was asked for, and {answered:?} gave {count} of the answers")
    };
    counted(pairs).into_iter().map(message).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_record::{Attempt, Dialect, Role};

    fn answered(asked: &str, by: &str) -> Attempt {
        Attempt {
            model: Some(asked.to_owned()),
            answered_model: Some(by.to_owned()),
            ..Attempt::begun(Dialect::OpenaiChat, Role::Main)
        }
    }

    #[test]
    fn another_model_is_told_once_with_its_count() {
        let other = answered("big", "small");
        let none = Attempt {
            answered_model: None,
            ..other.clone()
        };
        let reported = other_models(&[answered("big", "big"), other.clone(), none, other]);
        assert_eq!(reported, ["big -> small (2)"]);
    }

    #[test]
    fn paths_and_dated_names_mean_the_same_model() {
        for by in ["m", "/models/m", "M", "m-2026-01-02"] {
            assert!(is_same("m", by), "{by}");
        }
        for by in ["m2", "n", "", "the-m"] {
            assert!(!is_same("m", by), "{by}");
        }
    }
}
