//! Which sessions tried to leave the machine.

use std::collections::BTreeMap;

use flashrig_record::{Destination, EgressFact, EgressOutcome, Place, Placed, Run, Warning, group};

/// Destinations that are named; more are counted.
const NAMED: usize = 6;

/// Who asked for anything beyond the machine, over all rounds and arms, and for whom.
pub fn egress(run: &Run) -> Vec<Placed<Warning>> {
    let mut found = Vec::new();
    for spec in &run.spec.sessions {
        let of = |outcome| {
            let facts = run
                .rounds
                .iter()
                .flat_map(|r| &r.arms)
                .flat_map(|a| &a.sessions)
                .filter(|s| s.id == spec.id)
                .flat_map(|s| &s.egress)
                .filter(move |f| f.outcome == outcome);
            destinations(facts)
        };
        if let Some((destinations, more)) = of(EgressOutcome::Refused) {
            let warning = Warning::TriedToLeave { destinations, more };
            found.push((Place::session(&spec.id), warning));
        }
        if let Some((destinations, more)) = of(EgressOutcome::Allowed) {
            let warning = Warning::LeftMachine { destinations, more };
            found.push((Place::session(&spec.id), warning));
        }
    }
    group(found)
}

/// Most often asked for first, and how many are not named; `None` without any.
fn destinations<'f>(
    facts: impl Iterator<Item = &'f EgressFact>,
) -> Option<(Vec<Destination>, u64)> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for fact in facts {
        let name = match (&fact.host, fact.port) {
            (Some(host), Some(port)) if host.contains(':') => format!("[{host}]:{port}"),
            (Some(host), Some(port)) => format!("{host}:{port}"),
            _ => "others".to_owned(),
        };
        *counts.entry(name).or_default() += fact.count;
    }
    let counts = counts.into_iter();
    let mut named: Vec<Destination> = counts
        .map(|(address, requests)| Destination { address, requests })
        .collect();
    named.sort_by(|a, b| {
        let most = b.requests.cmp(&a.requests);
        most.then_with(|| a.address.cmp(&b.address))
    });
    let more = named.len().saturating_sub(NAMED) as u64;
    named.truncate(NAMED);
    (!named.is_empty()).then_some((named, more))
}
