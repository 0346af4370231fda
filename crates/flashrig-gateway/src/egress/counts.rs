//! What the guard writes down: counts by destination, bounded whatever a client asks for.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;

use super::allow::Destination;
use flashrig_clock::{Origin, Seconds, Stamp};
use flashrig_record::{EgressFact, EgressOutcome};

/// Destinations that are kept apart; further ones are counted in one row for each outcome.
const ROWS: usize = 256;
/// Longer methods are cut; no real one is.
const METHOD_CHARS: usize = 32;

type Key = (Option<Destination>, String, EgressOutcome);

#[derive(Clone, Copy)]
struct Row {
    first: Stamp,
    count: u64,
    slowest: Seconds,
}

/// Counts of one guard.
pub(super) struct EgressCounts {
    origin: Origin,
    rows: Mutex<BTreeMap<Key, Row>>,
}

impl EgressCounts {
    pub(super) fn new(origin: Origin) -> Self {
        Self {
            origin,
            rows: Mutex::default(),
        }
    }

    /// Counts a request that came at `begun` and is answered now.
    pub(super) fn count(
        &self,
        to: Option<&Destination>,
        method: &str,
        outcome: EgressOutcome,
        begun: Stamp,
    ) {
        let took = Seconds::from(Stamp::now().since(begun));
        let mut rows = self.rows();
        let method: String = method.chars().take(METHOD_CHARS).collect();
        let mut key = (to.cloned(), method, outcome);
        if rows.len() >= ROWS && !rows.contains_key(&key) {
            key = (None, String::new(), outcome);
        }
        let row = rows.entry(key).or_insert(Row {
            first: begun,
            count: 0,
            slowest: took,
        });
        row.count += 1;
        row.first = row.first.min(begun);
        row.slowest = Seconds(row.slowest.0.max(took.0));
    }

    /// Everything so far, in the order of first requests.
    pub(super) fn facts(&self) -> Vec<EgressFact> {
        let mut facts: Vec<EgressFact> = self
            .rows()
            .iter()
            .map(|((to, method, outcome), row)| EgressFact {
                host: to.as_ref().map(|d| d.host().to_owned()),
                port: to.as_ref().map(Destination::port),
                method: method.clone(),
                count: row.count,
                outcome: *outcome,
                first_s: self.origin.at(row.first),
                slowest_answer_s: row.slowest,
            })
            .collect();
        facts.sort_by(|a, b| a.first_s.0.total_cmp(&b.first_s.0));
        facts
    }

    fn rows(&self) -> MutexGuard<'_, BTreeMap<Key, Row>> {
        // A panic elsewhere leaves counts that are still right.
        self.rows.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_destinations_are_tried_the_rows_are_bounded_and_no_request_is_lost() {
        let counts = EgressCounts::new(Origin::now());
        for n in 0..5000 {
            let to = Destination::new(&format!("h{n}.example"), 443).unwrap();
            counts.count(Some(&to), "CONNECT", EgressOutcome::Refused, Stamp::now());
        }
        let facts = counts.facts();
        assert_eq!(facts.len(), ROWS + 1);
        assert_eq!(facts.iter().map(|f| f.count).sum::<u64>(), 5000);
        assert_eq!(facts.iter().filter(|f| f.host.is_none()).count(), 1);
    }
}
