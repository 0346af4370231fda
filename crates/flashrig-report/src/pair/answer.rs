//! The answer of `pair`, for the first line: what was done, how together compares with one after
//! the other, and the slowest session.

use super::makespans::soonest;
use super::sessions::is_done;
use crate::figures::times;
use crate::head::{claim, rounds, unfinished};
use flashrig_record::{AgainstItself, Run, TimeVerdict, Verdict};

/// The parts of the answer.
pub fn answer(run: &Run, verdict: &Verdict) -> Vec<String> {
    let mut parts: Vec<String> = unfinished(run.state).into_iter().collect();
    if run.rounds.is_empty() {
        parts.push("nothing was measured".to_owned());
        return parts;
    }
    parts.push(done(run));
    if let Some(judged) = &verdict.against_itself {
        parts.extend(against_itself(judged));
        parts.extend(rounds(judged.overall.n, run.spec.rounds, None));
        return parts;
    }
    let compared = verdict.worst_slowdown.n;
    if verdict.time == TimeVerdict::NotCompared {
        parts.push("nothing is compared: there is one session".to_owned());
        return parts;
    }
    if compared == 0 {
        parts.push("nothing is compared: no round is valid".to_owned());
        return parts;
    }
    parts.extend(soonest(verdict));
    let slowest = times(verdict.worst_slowdown.value);
    let claim = claim(verdict.time, verdict.evidence.as_ref());
    parts.push(format!("slowest session {slowest} ({claim})"));
    parts.extend(rounds(compared, run.spec.rounds, run.spec.auto_rounds));
    parts
}

/// What two equal arms differ by.
fn against_itself(judged: &AgainstItself) -> Vec<String> {
    let Some(factor) = judged.largest_factor else {
        return vec!["nothing is compared: no round is valid".to_owned()];
    };
    let differs = match judged.differs {
        Some(true) => "equal arms differ",
        Some(false) => "no difference between equal arms is shown",
        None => "two equal arms",
    };
    vec![format!(
        "{differs}: walls of one session differ by up to {}",
        times(Some(factor))
    )]
}

/// How many sessions of all arms and rounds are done.
fn done(run: &Run) -> String {
    let arms = run.rounds.iter().flat_map(|r| &r.arms);
    let sessions: Vec<_> = arms.flat_map(|a| &a.sessions).collect();
    let done = sessions.iter().filter(|s| is_done(s)).count();
    format!("{done} of {} done", sessions.len())
}
