//! Whether each setting of a sweep took effect: value by value, and who says so.

use console::measure_text_width;

use crate::page::Page;
use flashrig_record::{ProofSource, Proven, RowProof, Sweep, SweepRow};

/// What is known of a value.
#[derive(Clone, Debug, PartialEq)]
enum Known {
    DidNothing(String),
    Proven(String),
    ProvenInSome(usize, usize, String),
    NotProven,
    NotMeasured,
}

/// A line for each setting.
pub fn proofs(sweep: &Sweep, page: &mut Page) {
    let settings = &sweep.spec.settings;
    let widest = settings.iter().map(|s| measure_text_width(&s.name)).max();
    page.title("Settings");
    for (index, setting) in settings.iter().enumerate() {
        let message = message(sweep, index);
        let width = widest.unwrap_or(0);
        page.line(&format!("  {:<width$}  {message}", setting.name));
    }
}

/// What is known of the values of a setting; those of which the same is known stand together.
fn message(sweep: &Sweep, index: usize) -> String {
    let values = sweep.spec.settings.get(index).map(|s| s.values.as_slice());
    let values = values.unwrap_or_default();
    let mut groups: Vec<(Known, Vec<&str>)> = Vec::new();
    for value in values {
        let known = known(sweep, index, value, values.len() > 1);
        match groups.iter_mut().find(|(of, _)| *of == known) {
            Some((_, values)) => values.push(value),
            None => groups.push((known, vec![value])),
        }
    }
    // What did nothing goes first, what was not measured last.
    groups.sort_by_key(|(known, _)| known.rank());
    match groups.as_slice() {
        [(Known::NotMeasured, _)] => "nothing was measured".to_owned(),
        [(known, _)] => known.label(),
        groups => groups
            .iter()
            .map(|(known, values)| format!("{} {}", values.join(", "), known.label()))
            .collect::<Vec<_>>()
            .join("; "),
    }
}

fn known(sweep: &Sweep, index: usize, value: &str, one_of_many: bool) -> Known {
    let proofs: Vec<&RowProof> = sweep
        .rows
        .iter()
        .filter(|row| row.measured > 0 && has(sweep, row, index, value))
        .filter_map(|row| row.proofs.get(index))
        .collect();
    let of = |state: Proven| proofs.iter().filter(move |proof| proof.proven == state);
    let proven = of(Proven::Proven).count();
    if proofs.is_empty() {
        return Known::NotMeasured;
    }
    if let Some(proof) = of(Proven::DidNothing).next() {
        return Known::DidNothing(proof.contradiction());
    }
    let Some(proof) = of(Proven::Proven).next() else {
        return Known::NotProven;
    };
    let by = match &proof.by {
        // A line of the log tells one value, and must not stand for others.
        Some(ProofSource::Log { .. }) if one_of_many => "the log".to_owned(),
        Some(by) => by.to_string(),
        None => "itself".to_owned(),
    };
    if proven == proofs.len() {
        Known::Proven(by)
    } else {
        Known::ProvenInSome(proven, proofs.len(), by)
    }
}

/// Whether a combination has this value of a setting.
fn has(sweep: &Sweep, row: &SweepRow, index: usize, value: &str) -> bool {
    let at = (row.combination as usize).checked_sub(1);
    let values = at.and_then(|at| sweep.spec.combinations.get(at));
    values
        .and_then(|values| values.get(index))
        .is_some_and(|v| v == value)
}

impl Known {
    fn rank(&self) -> u8 {
        match self {
            Self::DidNothing(_) => 0,
            Self::Proven(_) => 1,
            Self::ProvenInSome(..) => 2,
            Self::NotProven => 3,
            Self::NotMeasured => 4,
        }
    }

    fn label(&self) -> String {
        match self {
            Self::DidNothing(by) => format!("did nothing: {by}"),
            Self::Proven(by) => format!("proven by {by}"),
            Self::ProvenInSome(n, of, by) => format!("proven in {n} of {of} combinations by {by}"),
            Self::NotProven => "not proven: the server says nothing of it".to_owned(),
            Self::NotMeasured => "not measured".to_owned(),
        }
    }
}
