//! Whether the model that answered is the one that was asked for.

use flashrig_record::{
    Attempt, LoadRun, LoadWarning, OtherModel, Place, Placed, Run, Warning, group,
};

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
fn counted<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<OtherModel> {
    let mut found: Vec<OtherModel> = Vec::new();
    for (asked, answered) in pairs.filter(|(asked, answered)| !is_same(asked, answered)) {
        let is_full = found.len() >= LISTED;
        let is_it = |f: &&mut OtherModel| f.asked == asked && f.answered == answered;
        match found.iter_mut().find(is_it) {
            Some(known) => known.answers += 1,
            None if !is_full => found.push(OtherModel {
                asked: asked.to_owned(),
                answered: answered.to_owned(),
                answers: 1,
            }),
            None => {}
        }
    }
    found
}

/// Answers to a session that named another model than the one asked for.
pub fn other_models(attempts: &[Attempt]) -> Vec<OtherModel> {
    let pairs = attempts
        .iter()
        .filter_map(|a| Some((a.model.as_deref()?, a.answered_model.as_deref()?)));
    counted(pairs)
}

/// The same of all sessions of a run of agents.
pub fn of_agents(run: &Run) -> Vec<Placed<Warning>> {
    let arms = run.rounds.iter().flat_map(|r| &r.arms);
    let mut found: Vec<(Place, Warning)> = Vec::new();
    for session in arms.flat_map(|a| &a.sessions) {
        for other in &session.other_models {
            let place = Place::session(&session.id);
            let warning = Warning::OtherModel {
                asked: other.asked.clone(),
                answered: other.answered.clone(),
            };
            if !found.contains(&(place.clone(), warning.clone())) {
                found.push((place, warning));
            }
        }
    }
    group(found)
}

/// The same of a run of synthetic sessions.
pub fn of_load(run: &LoadRun) -> Vec<LoadWarning> {
    let lanes = run.measured.iter().flat_map(|m| &m.lanes);
    let answered = lanes
        .flat_map(|lane| &lane.turns)
        .filter_map(|turn| turn.answered_model.as_deref());
    let pairs = answered.map(|answered| (&*run.server.model, answered));
    let others = counted(pairs).into_iter();
    let warning = |other: OtherModel| LoadWarning::OtherModel {
        asked: other.asked,
        answered: other.answered,
        answers: other.answers,
    };
    others.map(warning).collect()
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
        let want = OtherModel {
            asked: "big".to_owned(),
            answered: "small".to_owned(),
            answers: 2,
        };
        assert_eq!(reported, [want]);
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
