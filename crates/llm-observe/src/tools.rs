//! Tool calls, put together from their fragments, and what is odd about how they came.
//!
//! Clients put the same fragments together, and not all of them alike: what one forgives makes
//! another call a tool twice or lose its arguments.

use crate::Oddity;
use serde::de::IgnoredAny;

use super::cut;
use crate::ToolCall;

/// Calls of one answer that are told apart.
const CALLS_KEPT: usize = 64;
/// Bytes of a name or an id that are kept.
const NAME_BYTES: usize = 128;
/// Bytes of arguments that are held, over all calls of an answer, to see whether they are JSON.
const ARGUMENT_BYTES: usize = 1024 * 1024;

/// A piece of a call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fragment<'a> {
    pub(crate) index: Option<u64>,
    /// `Some("")` is an id that is there and empty.
    pub(crate) id: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) arguments: Option<&'a str>,
}

/// The calls of one answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    calls: Vec<Call>,
    /// What is odd, each once, by their codes.
    pub(crate) oddities: Vec<Oddity>,
    held: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Call {
    index: Option<u64>,
    id: Option<String>,
    name: Option<String>,
    arguments: Vec<u8>,
    argument_bytes: u64,
    /// The arguments are no JSON by design, or not all of them were held.
    unchecked: bool,
}

impl Calls {
    /// Notes something odd, once.
    pub(crate) fn odd(&mut self, what: Oddity) {
        if !self.oddities.contains(&what) {
            self.oddities.push(what);
        }
    }

    /// Takes a fragment of a chat completion, where the first names the call and the later ones
    /// belong to it by their index.
    pub(crate) fn fragment(&mut self, fragment: Fragment<'_>) {
        let known_id = fragment.id.filter(|id| !id.is_empty());
        let of_id = known_id.and_then(|id| self.position(|call| call.id.as_deref() == Some(id)));
        let place = match fragment.index {
            Some(index) => {
                let of_index = self.position(|call| call.index == Some(index));
                match (of_index, of_id) {
                    (Some(at), Some(of_id)) if at == of_id => {
                        self.odd(Oddity::IdRepeated);
                        Some(at)
                    }
                    // One call's id under another index.
                    (_, Some(of_id)) if fragment.name.is_none() => {
                        self.odd(Oddity::IndexChanged);
                        Some(of_id)
                    }
                    (Some(at), _) if known_id.is_some() && self.calls[at].id.is_some() => {
                        if fragment.name.is_some() {
                            self.odd(Oddity::IndexReused);
                            None
                        } else {
                            self.odd(Oddity::IdChanged);
                            Some(at)
                        }
                    }
                    (of_index, _) => of_index,
                }
            }
            None => {
                self.odd(Oddity::WithoutIndex);
                let begins = known_id.is_some() || fragment.name.is_some_and(|n| !n.is_empty());
                match of_id {
                    Some(at) => Some(at),
                    None if begins => None,
                    None => {
                        // Neither index nor id: it can only be told by order.
                        self.odd(Oddity::IdOnlyOnce);
                        self.calls.len().checked_sub(1)
                    }
                }
            }
        };
        match place {
            Some(at) => self.add(at, fragment),
            None => {
                let expected = self.calls.len() as u64;
                if fragment.index.is_some_and(|index| index > expected) {
                    self.odd(Oddity::IndexGap);
                }
                self.begin(fragment);
            }
        }
    }

    /// Begins a call.
    pub(crate) fn begin(&mut self, fragment: Fragment<'_>) {
        if self.calls.len() == CALLS_KEPT {
            self.odd(Oddity::ToolCallsCut);
            return;
        }
        match fragment.id {
            None => self.odd(Oddity::WithoutId),
            Some("") => self.odd(Oddity::EmptyId),
            Some(id)
                if self
                    .position(|call| call.id.as_deref() == Some(id))
                    .is_some() =>
            {
                self.odd(Oddity::DuplicateId);
            }
            Some(_) => {}
        }
        self.calls.push(Call {
            index: fragment.index,
            ..Call::default()
        });
        self.add(self.calls.len() - 1, fragment);
    }

    /// Takes a fragment of the one call that the oldest form of the dialect can make.
    pub(crate) fn legacy(&mut self, fragment: Fragment<'_>) {
        if self.calls.is_empty() {
            self.calls.push(Call::default());
        }
        self.add(0, fragment);
    }

    /// Adds arguments to the call of this index, in the dialects that announce every call.
    pub(crate) fn arguments(&mut self, index: Option<u64>, arguments: &str) {
        let at = match index {
            Some(_) => {
                let at = self.position(|call| call.index == index);
                if at.is_none() {
                    self.odd(Oddity::UnknownIndex);
                }
                at
            }
            None => {
                self.odd(Oddity::WithoutIndex);
                None
            }
        };
        if let Some(at) = at.or(self.calls.len().checked_sub(1)) {
            self.add(
                at,
                Fragment {
                    arguments: Some(arguments),
                    ..Fragment::default()
                },
            );
        }
    }

    /// The call of this index is over, and these are all of its arguments.
    pub(crate) fn done(&mut self, index: Option<u64>, arguments: &str) {
        let at = self.position(|call| call.index == index);
        if let Some(at) = at
            && self.calls[at].argument_bytes == 0
        {
            self.arguments(index, arguments);
        }
    }

    /// The arguments of the latest call need not be JSON.
    pub(crate) fn free_form(&mut self) {
        if let Some(call) = self.calls.last_mut() {
            call.unchecked = true;
        }
    }

    fn position(&self, is: impl Fn(&Call) -> bool) -> Option<usize> {
        self.calls.iter().rposition(is)
    }

    fn add(&mut self, at: usize, fragment: Fragment<'_>) {
        let Some(call) = self.calls.get_mut(at) else {
            return;
        };
        if let Some(id) = fragment.id.filter(|id| !id.is_empty()) {
            call.id
                .get_or_insert_with(|| cut(id, NAME_BYTES).to_owned());
        }
        if let Some(name) = fragment.name.filter(|name| !name.is_empty()) {
            call.name
                .get_or_insert_with(|| cut(name, NAME_BYTES).to_owned());
        }
        if let Some(arguments) = fragment.arguments {
            call.argument_bytes += arguments.len() as u64;
            if self.held + arguments.len() > ARGUMENT_BYTES {
                call.unchecked = true;
            }
            if !call.unchecked {
                self.held += arguments.len();
                call.arguments.extend_from_slice(arguments.as_bytes());
            }
        }
    }

    /// The calls, once the answer is over. `ended` tells whether it came to its own end: arguments
    /// that were cut off say nothing about the server's JSON.
    pub(crate) fn settle(&mut self, ended: bool) -> Vec<ToolCall> {
        let calls = std::mem::take(&mut self.calls);
        self.held = 0;
        let mut facts = Vec::with_capacity(calls.len());
        for call in calls {
            let is_json = || serde_json::from_slice::<IgnoredAny>(&call.arguments).is_ok();
            if ended && !call.unchecked && !call.arguments.is_empty() && !is_json() {
                self.odd(Oddity::ArgumentsNotJson);
            }
            if call.name.is_none() {
                self.odd(Oddity::WithoutName);
            }
            facts.push(ToolCall {
                name: call.name,
                id: call.id,
                argument_bytes: call.argument_bytes,
            });
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part<'a>(
        index: Option<u64>,
        id: Option<&'a str>,
        name: Option<&'a str>,
        arguments: &'a str,
    ) -> Fragment<'a> {
        Fragment {
            index,
            id,
            name,
            arguments: Some(arguments),
        }
    }

    /// Name, id and argument bytes of each call, and the oddities.
    fn assembled(fragments: &[Fragment<'_>]) -> (Vec<(String, String, u64)>, Vec<String>) {
        let mut calls = Calls::default();
        for fragment in fragments {
            calls.fragment(*fragment);
        }
        let facts = calls.settle(true).into_iter().map(|call| {
            let text = |text: Option<String>| text.unwrap_or_default();
            (text(call.name), text(call.id), call.argument_bytes)
        });
        let codes = calls.oddities.iter().map(Oddity::to_string).collect();
        (facts.collect(), codes)
    }

    fn call(name: &str, id: &str, bytes: u64) -> (String, String, u64) {
        (name.to_owned(), id.to_owned(), bytes)
    }

    #[test]
    fn two_calls_whose_fragments_alternate_are_two_calls_and_nothing_odd() {
        let (calls, odd) = assembled(&[
            part(Some(0), Some("a"), Some("ls"), ""),
            part(Some(1), Some("b"), Some("cat"), "{\"x\""),
            part(Some(0), None, None, "{}"),
            part(Some(1), None, None, ":1}"),
        ]);
        assert_eq!(calls, [call("ls", "a", 2), call("cat", "b", 7)]);
        assert_eq!(odd, [""; 0]);
    }

    #[test]
    fn without_an_index_an_id_that_comes_once_leaves_only_the_order() {
        let (calls, odd) = assembled(&[
            part(None, Some("a"), Some("ls"), "{"),
            part(None, None, None, "}"),
            part(None, Some("b"), Some("ls"), "{}"),
        ]);
        assert_eq!(calls, [call("ls", "a", 2), call("ls", "b", 2)]);
        assert_eq!(odd, ["tool_call_without_index", "tool_call_id_only_once"]);
    }

    #[test]
    fn empty_missing_repeated_and_equal_ids_are_told_apart() {
        let odd = |fragments: &[Fragment<'_>]| assembled(fragments).1;
        assert_eq!(
            odd(&[part(Some(0), Some(""), Some("ls"), "{}")]),
            ["tool_call_empty_id"]
        );
        assert_eq!(
            odd(&[part(Some(0), None, Some("ls"), "{}")]),
            ["tool_call_without_id"]
        );
        let again = part(Some(0), Some("a"), None, "{}");
        assert_eq!(
            odd(&[part(Some(0), Some("a"), Some("ls"), ""), again]),
            ["tool_call_id_repeated"]
        );
        let (calls, odd) = assembled(&[
            part(Some(0), Some("a"), Some("ls"), "{}"),
            part(Some(1), Some("a"), Some("ls"), "{}"),
        ]);
        assert_eq!(
            (calls.len(), odd),
            (2, vec!["tool_call_duplicate_id".to_owned()])
        );
    }

    #[test]
    fn an_index_that_changes_skips_or_is_used_twice_is_flagged() {
        let (calls, odd) = assembled(&[
            part(Some(0), Some("a"), Some("ls"), "{"),
            part(Some(1), Some("a"), None, "}"),
        ]);
        assert_eq!(
            (calls, odd),
            (
                vec![call("ls", "a", 2)],
                vec!["tool_call_index_changed".to_owned()]
            )
        );
        let (calls, odd) = assembled(&[
            part(Some(0), Some("a"), Some("ls"), "{}"),
            part(Some(0), Some("b"), Some("ls"), "{}"),
            part(Some(7), Some("c"), Some("ls"), "{}"),
        ]);
        assert_eq!(
            (calls.len(), odd),
            (
                3,
                vec![
                    "tool_call_index_reused".to_owned(),
                    "tool_call_index_gap".to_owned()
                ]
            )
        );
    }

    #[test]
    fn arguments_that_are_no_json_are_flagged_unless_the_answer_was_cut_off() {
        let fragment = part(Some(0), Some("a"), Some("ls"), "{\"x\":");
        for (ended, want) in [
            (true, vec!["tool_call_arguments_not_json"]),
            (false, vec![]),
        ] {
            let mut calls = Calls::default();
            calls.fragment(fragment);
            calls.settle(ended);
            assert_eq!(calls.oddities, want);
        }
    }

    #[test]
    fn endless_calls_and_endless_arguments_take_bounded_memory() {
        let mut calls = Calls::default();
        let long = "x".repeat(100_000);
        for index in 0..500 {
            calls.fragment(part(Some(index), Some(&long), Some(&long), &long));
        }
        assert!(calls.held <= ARGUMENT_BYTES && calls.calls.len() == CALLS_KEPT);
        let facts = calls.settle(true);
        assert_eq!(facts[63].argument_bytes, 100_000);
        assert_eq!(facts[0].id.as_ref().map(String::len), Some(NAME_BYTES));
        assert!(calls.oddities.contains(&Oddity::ToolCallsCut));
    }
}
