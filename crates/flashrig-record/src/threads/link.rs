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
fn parent(prompts: &[&Prompt], index: usize) -> Option<usize> {
    (0..index)
        .filter_map(|earlier| Some((goes_on(prompts[earlier], prompts[index])?, earlier)))
        .max()
        .map(|(_, earlier)| earlier)
}

/// How well `next` goes on from `before`; `None` when it does not.
fn goes_on(before: &Prompt, next: &Prompt) -> Option<(Kinship, usize)> {
    let (old, new) = (&before.messages, &next.messages);
    if old.is_empty() || new.is_empty() {
        return None;
    }
    let same = |i: usize| Arc::ptr_eq(&old[i].1, &new[i].1);
    let both = old.len().min(new.len());
    let leading = (0..both).take_while(|i| same(*i)).count();
    let kinship = if leading == old.len() {
        (Kinship::Extends, leading)
    } else {
        let equal = leading + (leading..both).filter(|i| same(*i)).count();
        let grows = new.len() > old.len();
        if equal * 2 >= old.len() && (grows || leading > 0) {
            (Kinship::Edits, equal)
        } else if grows && is_similar(&old[0].1.bytes, &new[0].1.bytes, SAME_MESSAGE_PERCENT) {
            (Kinship::Resembles, 0)
        } else {
            return None;
        }
    };
    same_frame(before, next).then_some(kinship)
}

/// From the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kinship {
    /// More messages, and the first is much like the other's.
    Resembles,
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
