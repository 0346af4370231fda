//! Which earlier request a request goes on from, and the threads that come of it.
//!
//! Not by the rendered prefix alone: an agent that changes its first line on every request has no
//! common prefix at all and is one thread nevertheless. Not by words: by what is offered and by
//! the messages that are there again.

use std::sync::Arc;

use super::prefix::is_similar;
use super::prompt::{Piece, Prompt};

/// Two system prompts of one agent: a line, a date or a state in them may differ.
const SAME_SYSTEM_PERCENT: usize = 60;
/// Two states of the first message of one conversation.
const SAME_MESSAGE_PERCENT: usize = 50;

/// Where a request stands among those of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Index of the request that it goes on from.
    pub(super) parent: Option<usize>,
    /// Its thread, from 1 in order of arrival.
    pub(super) thread: u32,
}

/// Places all prompts of a session, given in order of arrival.
pub(super) fn places(prompts: &[&Prompt]) -> Vec<Place> {
    let parents: Vec<Option<usize>> = (0..prompts.len()).map(|i| parent(prompts, i)).collect();
    let mut below = vec![1_usize; prompts.len()];
    for (i, parent) in parents.iter().enumerate().rev() {
        if let Some(parent) = *parent {
            below[parent] += below[i];
        }
    }
    // Of several that go on from one request, the one that most follows stays in its thread; the
    // latest of equals, since what comes after it can only follow it.
    let mut heir: Vec<Option<usize>> = vec![None; prompts.len()];
    for (i, parent) in parents.iter().enumerate() {
        if let Some(parent) = *parent
            && heir[parent].is_none_or(|other| below[i] >= below[other])
        {
            heir[parent] = Some(i);
        }
    }
    let mut places: Vec<Place> = Vec::with_capacity(prompts.len());
    let mut threads = 0;
    for (i, parent) in parents.into_iter().enumerate() {
        let thread = match parent {
            Some(parent) if heir[parent] == Some(i) => places[parent].thread,
            _ => {
                threads += 1;
                threads
            }
        };
        places.push(Place { parent, thread });
    }
    places
}

/// The earlier request that this one most likely goes on from; the latest of equals.
///
/// Texts are compared last, from the best candidate on: a session of n requests costs n of these
/// comparisons or so, and not their square.
fn parent(prompts: &[&Prompt], index: usize) -> Option<usize> {
    let next = prompts[index];
    let mut candidates: Vec<(Kinship, usize, usize)> = (0..index)
        .filter_map(|earlier| {
            let (kinship, equal) = kinship(prompts[earlier], next)?;
            Some((kinship, equal, earlier))
        })
        .collect();
    candidates.sort_unstable_by(|a, b| b.cmp(a));
    let of_one_agent = |(kinship, _, earlier): &(Kinship, usize, usize)| {
        let before = prompts[*earlier];
        (*kinship > Kinship::MayResemble || first_resembles(before, next))
            && same_frame(before, next)
    };
    let found = candidates.into_iter().find(of_one_agent);
    found.map(|(_, _, earlier)| earlier)
}

/// How well `next` goes on from `before`, with the number of equal messages; `None` when it does not.
fn kinship(before: &Prompt, next: &Prompt) -> Option<(Kinship, usize)> {
    let (old, new) = (&before.messages, &next.messages);
    if old.is_empty() || new.is_empty() {
        return None;
    }
    let same = |i: usize| Arc::ptr_eq(&old[i].1, &new[i].1);
    let both = old.len().min(new.len());
    let leading = (0..both).take_while(|i| same(*i)).count();
    if leading == old.len() {
        return Some((Kinship::Extends, leading));
    }
    let equal = leading + (leading..both).filter(|i| same(*i)).count();
    let grows = new.len() > old.len();
    if equal * 2 >= old.len() && (grows || leading > 0) {
        return Some((Kinship::Edits, equal));
    }
    grows.then_some((Kinship::MayResemble, 0))
}

/// Whether the first messages are two states of one.
fn first_resembles(before: &Prompt, next: &Prompt) -> bool {
    match (before.messages.first(), next.messages.first()) {
        (Some((_, old)), Some((_, new))) => {
            is_similar(&old.bytes, &new.bytes, SAME_MESSAGE_PERCENT)
        }
        _ => false,
    }
}

/// From the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kinship {
    /// More messages; goes on when the first is much like the other's.
    MayResemble,
    /// Most messages are there again at their places.
    Edits,
    /// All messages are there again, from the first on.
    Extends,
}

/// Whether two prompts are of one agent: the same kind of offer, and much the same system prompt.
pub(super) fn same_frame(a: &Prompt, b: &Prompt) -> bool {
    a.dialect == b.dialect
        && a.forced_tool == b.forced_tool
        && same_tools(&a.tool_names, &b.tool_names)
        && same_system(a, b)
}

/// At least half of all the names are in both: agents load tools as they go.
fn same_tools(a: &[String], b: &[String]) -> bool {
    let both = a.iter().filter(|name| b.contains(name)).count();
    let all = a.len() + b.len() - both;
    a.is_empty() == b.is_empty() && both * 2 >= all
}

fn same_system(a: &Prompt, b: &Prompt) -> bool {
    let pieces = |p: &Prompt| -> Vec<Arc<Piece>> {
        p.system
            .iter()
            .map(|(_, piece)| Arc::clone(piece))
            .collect()
    };
    let (a, b) = (pieces(a), pieces(b));
    if a.len() == b.len() && a.iter().zip(&b).all(|(x, y)| Arc::ptr_eq(x, y)) {
        return true;
    }
    let whole = |pieces: &[Arc<Piece>]| -> Vec<u8> {
        pieces
            .iter()
            .flat_map(|p| p.bytes.iter().copied())
            .collect()
    };
    is_similar(&whole(&a), &whole(&b), SAME_SYSTEM_PERCENT)
}

#[cfg(test)]
mod tests {
    use super::super::Pieces;
    use super::super::prefix::COMPARED;
    use super::*;
    use crate::Dialect;
    use serde_json::json;

    /// A session of an agent that changes its system prompt and its first message each time.
    fn restless(requests: usize) -> Vec<Prompt> {
        let mut pieces = Pieces::default();
        let body = |n: usize| {
            let long = "the same for all of them ".repeat(20);
            let messages: Vec<_> = (0..=n)
                .map(|i| match i {
                    0 => json!({"role": "user", "content": format!("{long} state {n}")}),
                    i => json!({"role": "user", "content": format!("turn {i}")}),
                })
                .collect();
            json!({"system": format!("{long} at {n} o'clock"), "messages": messages}).to_string()
        };
        (0..requests)
            .map(|n| {
                let body = body(n);
                Prompt::read(Dialect::AnthropicMessages, body.as_bytes(), &mut pieces).unwrap()
            })
            .collect()
    }

    #[test]
    fn texts_are_compared_about_once_a_request_and_not_once_for_each_two() {
        let prompts = restless(100);
        let all: Vec<&Prompt> = prompts.iter().collect();
        COMPARED.set(0);
        let places = places(&all);
        assert!(places.iter().all(|place| place.thread == 1), "{places:?}");
        let compared = COMPARED.get();
        assert!(compared <= 300, "{compared} texts compared");
    }
}
