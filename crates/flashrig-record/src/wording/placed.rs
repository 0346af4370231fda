//! A fact with its places: `a and b (together): 2 requests refused`.

use std::fmt::{Display, Formatter, Result};

use super::in_a_row;
use crate::{ArmKind, Place, Placed};

/// An arm and a round.
type Spot = (Option<ArmKind>, Option<u32>);

impl<F: Display> Display for Placed<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.places.is_empty() {
            return self.fact.fmt(f);
        }
        write!(f, "{}: {}", places(&self.places), self.fact)
    }
}

/// `a and b (together, rounds 1 and 2); c (back to back)`.
fn places(places: &[Place]) -> String {
    let mut sessions: Vec<(Option<&str>, Vec<Spot>)> = Vec::new();
    for place in places {
        let session = place.session.as_deref();
        let spot = (place.arm, place.round);
        match sessions.iter_mut().find(|(known, _)| *known == session) {
            Some((_, spots)) => spots.push(spot),
            None => sessions.push((session, vec![spot])),
        }
    }
    // Sessions with the same arms and rounds are named together.
    let mut groups: Vec<(Vec<&str>, Vec<Spot>)> = Vec::new();
    for (session, spots) in sessions {
        match groups.iter_mut().find(|(_, known)| *known == spots) {
            Some((names, _)) => names.extend(session),
            None => groups.push((session.into_iter().collect(), spots)),
        }
    }
    let group = |(names, spots): &(Vec<&str>, Vec<Spot>)| {
        let (names, spots) = (in_a_row(names), in_spots(spots));
        match (names.is_empty(), spots.is_empty()) {
            (true, _) => spots,
            (false, true) => names,
            (false, false) => format!("{names} ({spots})"),
        }
    };
    groups.iter().map(group).collect::<Vec<_>>().join("; ")
}

/// `together and back to back, round 1`.
fn in_spots(spots: &[Spot]) -> String {
    let mut rounds: Vec<(Option<u32>, Vec<ArmKind>)> = Vec::new();
    for (arm, round) in spots {
        match rounds.iter_mut().find(|(known, _)| known == round) {
            Some((_, arms)) => arms.extend(*arm),
            None => rounds.push((*round, arm.iter().copied().collect())),
        }
    }
    let mut merged: Vec<(Vec<u32>, Vec<ArmKind>)> = Vec::new();
    for (round, arms) in rounds {
        match merged.iter_mut().find(|(_, known)| *known == arms) {
            Some((known, _)) => known.extend(round),
            None => merged.push((round.into_iter().collect(), arms)),
        }
    }
    let spot = |(rounds, arms): &(Vec<u32>, Vec<ArmKind>)| {
        let arms: Vec<&str> = arms.iter().map(|arm| arm.label()).collect();
        let arms = (!arms.is_empty()).then(|| in_a_row(&arms));
        let rounds = (!rounds.is_empty()).then(|| in_rounds(rounds));
        arms.into_iter()
            .chain(rounds)
            .collect::<Vec<_>>()
            .join(", ")
    };
    merged.iter().map(spot).collect::<Vec<_>>().join("; ")
}

/// `round 1`, `rounds 1, 2 and 3`.
pub(super) fn in_rounds(rounds: &[u32]) -> String {
    let numbers: Vec<String> = rounds.iter().map(u32::to_string).collect();
    let s = if rounds.len() == 1 { "" } else { "s" };
    format!("round{s} {}", in_a_row(&numbers))
}
