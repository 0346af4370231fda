//! What each request is to its session, decided by structure: which tools it offers, which request
//! it continues, and when it began. No agent's or version's wording is looked at.
//!
//! A role is decided in two stages. [`provisional`] knows nothing but the request: the gate goes by
//! it. [`settled`] knows the requests of the session, all of them or those so far; where their
//! bodies are known too, [`explain`](super::explain) goes by the threads that they form.

use super::link::{Place, same_frame};
use super::prompt::Prompt;
use crate::{Attempt, Dialect, Role};

/// Stage one: the role of a request by itself. An agent's own thread offers tools, its helpers do
/// not. `tools` is how many are offered; `None` when that is unknown.
pub fn provisional(dialect: Dialect, tools: Option<u32>) -> Role {
    match (dialect.generates(), tools) {
        (false, _) => Role::Probe,
        (true, Some(1..)) => Role::Main,
        (true, _) => Role::Side,
    }
}

/// Stage two: the role of a request, given whether any request of its session is main. One that
/// never offers tools (a plain chat, say) has a thread all the same: its side requests are main.
pub fn settled(provisional: Role, has_main: bool) -> Role {
    match provisional {
        Role::Side if !has_main => Role::Main,
        role => role,
    }
}

/// Settles the roles of a whole session.
pub fn settle(attempts: &mut [Attempt]) {
    let has_main = attempts.iter().any(|attempt| attempt.role == Role::Main);
    for attempt in attempts {
        attempt.role = settled(attempt.role, has_main);
    }
}

/// A request among those of its session.
#[derive(Clone, Debug)]
pub(super) struct Node<'p> {
    pub(super) prompt: &'p Prompt,
    /// Its head was read, in seconds.
    pub(super) began: f64,
    /// Its first token, or its end.
    pub(super) first_token: f64,
    /// Whether an answer came.
    pub(super) answered: bool,
}

/// The requests of one thread.
struct Thread {
    nodes: Vec<usize>,
    /// The request in another thread that its first one goes on from.
    fork_of: Option<usize>,
}

/// Stage two where the bodies are known: the role of every request.
pub(super) fn settled_by_threads(nodes: &[Node<'_>], places: &[Place]) -> Vec<Role> {
    let threads = threads(places);
    let first = |t: &Thread| &nodes[t.nodes[0]];
    let Some(main) = main_thread(nodes, &threads) else {
        // An agent that never offers tools has a thread all the same.
        return vec![Role::Main; nodes.len()];
    };
    let main_frame = first(&threads[main]).prompt;
    let main_answer = first(&threads[main]).first_token;
    let mut roles = vec![Role::Main; nodes.len()];
    // Threads of the main agent: more than one when it begins its history anew.
    let mut mains = vec![main];
    for (index, thread) in threads.iter().enumerate() {
        let head = first(thread);
        let goes_on_beside = |mains: &[usize]| {
            mains.iter().any(|m| {
                threads[*m]
                    .nodes
                    .iter()
                    .any(|n| nodes[*n].began > head.began)
            })
        };
        let role = if index == main {
            Role::Main
        } else if !offers(head.prompt) {
            if thread.nodes.len() == 1 && head.prompt.max_tokens == Some(1) {
                Role::Probe
            } else {
                Role::Side
            }
        } else if let Some(fork) = thread.fork_of {
            fork_role(nodes, thread, roles[fork], goes_on_beside(&mains))
        } else if same_frame(main_frame, head.prompt) {
            if goes_on_beside(&mains) {
                Role::SubAgent
            } else {
                mains.push(index);
                Role::Main
            }
        } else if head.began < main_answer {
            // Nothing that the main thread's answers could have called for.
            Role::Side
        } else {
            Role::SubAgent
        };
        for node in &thread.nodes {
            roles[*node] = role;
        }
    }
    roles
}

/// A thread that goes on from a request that another thread goes on from too.
fn fork_role(nodes: &[Node<'_>], thread: &Thread, parent: Role, beside: bool) -> Role {
    let answered = thread.nodes.iter().any(|n| nodes[*n].answered);
    match thread.nodes.len() {
        // A failed request, sent again with another body.
        _ if !answered => parent,
        1 => Role::Side,
        // A way that was left before the other began, or one beside it.
        _ if beside || parent == Role::SubAgent => Role::SubAgent,
        _ => parent,
    }
}

fn offers(prompt: &Prompt) -> bool {
    !prompt.tools.is_empty() && !prompt.forced_tool
}

/// The agent's own thread: of those that began before any answer could have called for them, the
/// longest, then the largest. `None` when no request offers tools.
fn main_thread(nodes: &[Node<'_>], threads: &[Thread]) -> Option<usize> {
    let first = |t: usize| &nodes[threads[t].nodes[0]];
    let offering: Vec<usize> = (0..threads.len())
        .filter(|t| threads[*t].fork_of.is_none() && offers(first(*t).prompt))
        .collect();
    let first_answer = offering
        .iter()
        .map(|t| first(*t).first_token)
        .fold(f64::INFINITY, f64::min);
    offering
        .iter()
        .copied()
        .filter(|t| first(*t).began < first_answer || *t == offering[0])
        .max_by_key(|t| {
            let size = threads[*t].nodes.len();
            (size, first(*t).prompt.bytes(), std::cmp::Reverse(*t))
        })
}

fn threads(places: &[Place]) -> Vec<Thread> {
    let mut threads: Vec<Thread> = Vec::new();
    for (index, place) in places.iter().enumerate() {
        match threads.get_mut(place.thread as usize - 1) {
            Some(thread) => thread.nodes.push(index),
            // Threads are numbered in order of arrival.
            None => threads.push(Thread {
                nodes: vec![index],
                fork_of: place.parent,
            }),
        }
    }
    threads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_with_tools_are_main_without_are_side_and_the_rest_are_probes() {
        assert_eq!(provisional(Dialect::OpenaiChat, Some(10)), Role::Main);
        assert_eq!(provisional(Dialect::OpenaiChat, Some(0)), Role::Side);
        assert_eq!(provisional(Dialect::AnthropicMessages, None), Role::Side);
        assert_eq!(
            provisional(Dialect::AnthropicCountTokens, Some(10)),
            Role::Probe
        );
        assert_eq!(provisional(Dialect::Other, None), Role::Probe);
    }

    #[test]
    fn side_requests_are_settled_as_main_only_where_there_is_no_main_request() {
        let begun = |role| Attempt::begun(Dialect::OpenaiChat, role);
        let settled = |roles: &[Role]| -> Vec<Role> {
            let mut attempts: Vec<_> = roles.iter().map(|role| begun(*role)).collect();
            settle(&mut attempts);
            attempts.iter().map(|attempt| attempt.role).collect()
        };
        assert_eq!(
            settled(&[Role::Probe, Role::Side]),
            [Role::Probe, Role::Main]
        );
        assert_eq!(settled(&[Role::Side, Role::Main]), [Role::Side, Role::Main]);
    }
}
