//! The requests of one session, explained: threads, roles and prefixes written into its attempts.

use std::collections::BTreeMap;

use super::link::places;
use super::prefix::common_prefix;
use super::prompt::Prompt;
use super::role::{Node, settled_by_threads};
use crate::{Attempt, Outcome, PrefixChange, PrefixFact, PrefixSummary};

/// Explains a session's attempts, given in order of arrival with the prompts of those whose body
/// could be read. The others keep the role that they have.
///
/// `None` when no thread has two requests.
pub fn explain(attempts: &mut [Attempt], prompts: &BTreeMap<u32, Prompt>) -> Option<PrefixSummary> {
    let known: Vec<(usize, &Prompt)> = attempts
        .iter()
        .enumerate()
        .filter(|(_, a)| a.outcome != Outcome::RejectedByGateway)
        .filter_map(|(i, a)| Some((i, prompts.get(&a.number)?)))
        .collect();
    let only: Vec<&Prompt> = known.iter().map(|(_, prompt)| *prompt).collect();
    let places = places(&only);
    let nodes: Vec<Node<'_>> = known
        .iter()
        .map(|(i, prompt)| {
            let clocks = &attempts[*i].clocks;
            Node {
                prompt,
                began: clocks.head_s.0,
                first_token: clocks.first_token_s.unwrap_or(clocks.end_s).0,
                answered: is_answered(&attempts[*i]),
            }
        })
        .collect();
    let roles = settled_by_threads(&nodes, &places);

    let mut summary = PrefixSummary::default();
    let mut changes = Changes::default();
    let mut last: BTreeMap<u32, (usize, &Prompt)> = BTreeMap::new();
    for (((index, prompt), place), role) in known.iter().zip(&places).zip(roles) {
        attempts[*index].role = role;
        attempts[*index].thread = Some(place.thread);
        let Some((before, its_prompt)) = last.insert(place.thread, (*index, prompt)) else {
            continue;
        };
        let fact = fact(&attempts[before], its_prompt, &attempts[*index], prompt);
        let again = fact.breaks_at.is_none() && fact.common_bytes == fact.total_bytes;
        if !again {
            let ready = is_answered(&attempts[before])
                && attempts[before].clocks.end_s.0 <= attempts[*index].clocks.head_s.0;
            summary.add(&fact, ready);
            changes.add(&fact);
        }
        attempts[*index].prefix = Some(fact);
    }
    summary.changes = changes.list();
    (summary.turns > 0).then_some(summary)
}

/// Whether the server has gone through the whole prompt.
fn is_answered(attempt: &Attempt) -> bool {
    attempt.clocks.first_token_s.is_some() || attempt.outcome == Outcome::Complete
}

fn fact(before: &Attempt, its_prompt: &Prompt, attempt: &Attempt, prompt: &Prompt) -> PrefixFact {
    let common = common_prefix(its_prompt, prompt);
    let total_bytes = prompt.bytes();
    PrefixFact {
        previous: before.number,
        common_bytes: common.bytes,
        total_bytes,
        breaks_at: common.breaks_at,
        reusable_tokens: attempt
            .input_tokens
            .map(|n| share(n, common.bytes, total_bytes)),
        reused_tokens: attempt.cached_tokens,
    }
}

fn share(tokens: u64, part: u64, whole: u64) -> u64 {
    let product = u128::from(tokens) * u128::from(part);
    u64::try_from(product / u128::from(whole.max(1))).unwrap_or(u64::MAX)
}

impl PrefixSummary {
    /// `ready`: the request before was answered by the time of this one.
    fn add(&mut self, fact: &PrefixFact, ready: bool) {
        self.turns += 1;
        self.changed += u64::from(fact.breaks_at.is_some());
        let (Some(reusable), Some(reused)) = (fact.reusable_tokens, fact.reused_tokens) else {
            return;
        };
        *self.reusable_tokens.get_or_insert(0) += reusable;
        *self.reused_tokens.get_or_insert(0) += reused;
        if fact.breaks_at.is_none() && ready {
            self.judged += 1;
            self.lost += u64::from(reused.saturating_mul(2) < reusable);
        }
    }
}

/// Places of changes, counted.
#[derive(Default)]
struct Changes(BTreeMap<String, (PrefixChange, bool)>);

impl Changes {
    fn add(&mut self, fact: &PrefixFact) {
        let Some(at) = &fact.breaks_at else { return };
        let (change, moves) = self.0.entry(anywhere(&at.field)).or_insert_with(|| {
            let change = PrefixChange {
                field: at.field.clone(),
                byte: at.byte,
                turns: 0,
            };
            (change, false)
        });
        *moves |= change.field != at.field;
        change.byte = change.byte.min(at.byte);
        change.turns += 1;
    }

    fn list(self) -> Vec<PrefixChange> {
        let mut list: Vec<PrefixChange> = self
            .0
            .into_iter()
            .map(|(pattern, (change, moves))| {
                let field = if moves { pattern } else { change.field };
                PrefixChange { field, ..change }
            })
            .collect();
        list.sort_by_key(|change| std::cmp::Reverse(change.turns));
        list
    }
}

/// The field, wherever in the messages: `messages[*].content[*].text`.
fn anywhere(field: &str) -> String {
    if !(field.starts_with("messages[") || field.starts_with("input[")) {
        return field.to_owned();
    }
    let mut out = String::with_capacity(field.len());
    let mut digits = false;
    for c in field.chars() {
        if digits && c.is_ascii_digit() {
            continue;
        }
        digits = c == '[';
        out.push(c);
        if digits {
            out.push('*');
        }
    }
    out
}
