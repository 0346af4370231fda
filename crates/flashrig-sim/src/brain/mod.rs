//! The scripted brain: decides what to answer, from the request alone.
//!
//! It keeps no state between requests, except for what `recall` is set to get wrong. Where a session
//! stands is read from the conversation: the ids of its own tool calls name walkthrough, step and
//! attempt. What must not enter: time, HTTP, dialects.

mod outcome;
mod place;
mod recall;
mod schema;
mod script;
mod shell;
mod side;
mod toolbox;

use super::ask::{Ask, Part, Speaker, ToolCall, ToolResult};
use super::reply::Reply;
use crate::walkthrough::Script;
use outcome::Outcome;
use place::{Means, Place};
pub use recall::Recall;
use script::Plan;
use toolbox::Toolbox;

/// Most tries of one step.
const MAX_ATTEMPTS: u8 = 3;
/// Calls that one step can take at most (its tries and a second reading), for the bound on turns.
const CALLS_PER_STEP: usize = MAX_ATTEMPTS as usize + 1;

/// The walkthroughs, ready to be recognised and played.
pub struct Brain {
    plans: Vec<Plan>,
    recall: Recall,
}

/// What comes next in a session.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// Try this.
    Do(Place),
    /// Every step is done.
    Close,
    /// A step cannot be done; the reason.
    GiveUp { step: usize, reason: String },
}

/// Whether nothing of a prompt is left by which it could be recognised.
pub fn is_empty_prompt(prompt: &str) -> bool {
    script::normalise(prompt).is_empty()
}

impl Brain {
    /// A brain that knows these scripts.
    pub fn new(scripts: &[Script], recall: Recall) -> Self {
        Self {
            plans: scripts.iter().map(Plan::new).collect(),
            recall,
        }
    }

    /// The answer to a request; tool-call ids start with `call_prefix`.
    pub fn answer(&self, ask: &Ask, call_prefix: &str) -> Reply {
        if let Some(code) = self.recall.answer(ask) {
            return Reply::text(code);
        }
        let plan = script::recognise(&self.plans, ask);
        let toolbox = Toolbox::new(ask);
        if toolbox.is_empty() {
            return side::answer(ask, plan);
        }
        let Some(plan) = plan else {
            return Reply::text(self.unknown_prompt());
        };
        let calls = calls(ask).count();
        let next = next(ask, plan, &toolbox, calls);
        match next {
            Next::Do(place) => self.act(ask, plan, &toolbox, place, calls, call_prefix),
            Next::Close => Reply::text(plan.closing.clone()),
            Next::GiveUp { step, reason } => give_up(plan, step, &reason),
        }
    }

    fn act(
        &self,
        ask: &Ask,
        plan: &Plan,
        toolbox: &Toolbox<'_>,
        place: Place,
        turn: usize,
        prefix: &str,
    ) -> Reply {
        let Some(action) = plan.actions.get(place.step) else {
            return Reply::text(plan.closing.clone());
        };
        let root = toolbox::workspace_root(ask);
        let Some((name, arguments)) = toolbox.call(action, place.means, root.as_deref()) else {
            return give_up(
                plan,
                place.step,
                "none of the tools that this request offers can do it",
            );
        };
        let text = match (place.attempt, place.means) {
            (1, _) => action.say.clone(),
            (_, Means::Reread) => "That did not work; I read the file again.".to_owned(),
            (_, Means::Shell) => "I try it through the shell.".to_owned(),
            (_, Means::Tool) => "I try that again.".to_owned(),
        };
        let call = ToolCall {
            id: place.id(prefix, turn),
            name,
            arguments: arguments.to_string(),
        };
        Reply {
            text,
            call: Some(call),
        }
    }

    fn unknown_prompt(&self) -> String {
        let names: Vec<&str> = self.plans.iter().map(|plan| plan.name.as_str()).collect();
        let known = if names.is_empty() {
            "none at all".to_owned()
        } else {
            names.join(", ")
        };
        format!(
            "This is a simulated server, and it has no walkthrough for this prompt. It can play: {known}. \
             A real model is needed for anything else."
        )
    }
}

fn give_up(plan: &Plan, step: usize, reason: &str) -> Reply {
    let what = plan
        .actions
        .get(step)
        .map_or_else(|| "go on".to_owned(), script::Action::describe);
    Reply::text(format!(
        "I could not {what}: {reason}. I stop here; the task is not done."
    ))
}

/// The first try of a step, or the end.
fn step_or_close(plan: &Plan, toolbox: &Toolbox<'_>, step: usize) -> Next {
    let Some(action) = plan.actions.get(step) else {
        return Next::Close;
    };
    Next::Do(Place {
        script: plan.tag,
        step,
        attempt: 1,
        means: toolbox.means(action, 1),
    })
}

/// What comes after the call at `place`, given its result.
fn after(plan: &Plan, toolbox: &Toolbox<'_>, place: Place, result: Option<&ToolResult>) -> Next {
    let Some(action) = plan.actions.get(place.step) else {
        return Next::Close;
    };
    let Some(result) = result else {
        // Interrupted before the tool ran, or the result was dropped from the conversation.
        return retry(toolbox, action, place, "its tool call got no result");
    };
    match outcome::judge(action, place.means, result) {
        Outcome::Done => step_or_close(plan, toolbox, place.step + 1),
        Outcome::Reread => Next::Do(Place {
            means: toolbox.means(action, place.attempt),
            ..place
        }),
        Outcome::Failed(_) if place.attempt == 1 && action.rereads() && toolbox.can_read() => {
            Next::Do(Place {
                attempt: 2,
                means: Means::Reread,
                ..place
            })
        }
        Outcome::Failed(reason) => retry(toolbox, action, place, &reason),
    }
}

fn retry(toolbox: &Toolbox<'_>, action: &script::Action, place: Place, reason: &str) -> Next {
    // A file that neither tool nor shell can show will not be shown by asking a third time.
    let limit = if action.rereads() { MAX_ATTEMPTS } else { 2 };
    if place.attempt >= limit {
        return Next::GiveUp {
            step: place.step,
            reason: reason.to_owned(),
        };
    }
    let attempt = place.attempt + 1;
    Next::Do(Place {
        attempt,
        means: toolbox.means(action, attempt),
        ..place
    })
}

fn calls(ask: &Ask) -> impl DoubleEndedIterator<Item = &ToolCall> {
    let said = ask
        .messages
        .iter()
        .filter(|m| m.speaker == Speaker::Assistant)
        .flat_map(|m| &m.parts);
    said.filter_map(|part| {
        if let Part::Call(call) = part {
            Some(call)
        } else {
            None
        }
    })
}

/// What came of a call; of several results the last.
fn result_of<'a>(ask: &'a Ask, call: &ToolCall) -> Option<&'a ToolResult> {
    let parts = ask.messages.iter().flat_map(|m| &m.parts);
    let mut results = parts.filter_map(|part| {
        if let Part::Result(result) = part {
            Some(result)
        } else {
            None
        }
    });
    results.rfind(|result| result.call == call.id)
}

/// Reads from the conversation where the session stands, and what comes next.
fn next(ask: &Ask, plan: &Plan, toolbox: &Toolbox<'_>, call_count: usize) -> Next {
    let first = step_or_close(plan, toolbox, 0);
    let Some(last) = calls(ask).next_back() else {
        return first;
    };
    let next = match Place::parse(&last.id) {
        Some(place) if place.script == plan.tag => {
            after(plan, toolbox, place, result_of(ask, last))
        }
        Some(_other_walkthrough) => first,
        // An agent that gives calls ids of its own. Every answer follows from the conversation
        // before it, so the whole of it can be followed again.
        None => calls(ask).fold(first, |next, call| match next {
            Next::Do(place) => after(plan, toolbox, place, result_of(ask, call)),
            end => end,
        }),
    };
    match next {
        Next::Do(place) if call_count >= plan.actions.len() * CALLS_PER_STEP => Next::GiveUp {
            step: place.step,
            reason: format!("{call_count} tool calls did not get it done"),
        },
        next => next,
    }
}

#[cfg(test)]
mod tests;
