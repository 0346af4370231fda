//! Which sessions tried to leave the machine, in words.

use std::collections::BTreeMap;

use flashrig_record::{EgressFact, EgressOutcome, Run};

/// Destinations that are named; more are counted.
const NAMED: usize = 6;

/// A line for each session name and outcome, over all rounds and arms: who was asked for, and how
/// often. Empty when nobody asked for anything beyond the machine.
pub fn egress_lines(run: &Run) -> Vec<String> {
    let mut lines = Vec::new();
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
        if let Some(whom) = of(EgressOutcome::Refused) {
            lines.push(format!(
                "{} tried to leave the machine: {whom}, refused",
                spec.id
            ));
        }
        if let Some(whom) = of(EgressOutcome::Allowed) {
            lines.push(format!(
                "{} left the machine, as allowed: {whom}; its time depends on others",
                spec.id
            ));
        }
    }
    lines
}

/// `a.example:443 (3 times), b.example:80 (once)`, most often asked for first.
fn destinations<'f>(facts: impl Iterator<Item = &'f EgressFact>) -> Option<String> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for fact in facts {
        let name = match (&fact.host, fact.port) {
            (Some(host), Some(port)) if host.contains(':') => format!("[{host}]:{port}"),
            (Some(host), Some(port)) => format!("{host}:{port}"),
            _ => "others".to_owned(),
        };
        *counts.entry(name).or_default() += fact.count;
    }
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let mut message: Vec<String> = counts
        .iter()
        .take(NAMED)
        .map(|(name, count)| match count {
            1 => format!("{name} (once)"),
            2 => format!("{name} (twice)"),
            n => format!("{name} ({n} times)"),
        })
        .collect();
    if counts.len() > NAMED {
        message.push(format!("{} more destinations", counts.len() - NAMED));
    }
    (!message.is_empty()).then(|| message.join(", "))
}
