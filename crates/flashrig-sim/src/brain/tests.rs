//! What the brain answers to single requests; whole sessions are played in `tests/sim_play.rs`.

use serde_json::json;

use super::*;
use crate::ask::{Message, ToolOffer};
use crate::{Step, Walkthrough};

fn script(name: &str, prompt: &str) -> Script {
    let run = Step::Run {
        say: None,
        command: format!("echo {name}"),
    };
    let steps = vec![
        run,
        Step::Say {
            text: format!("{name} is done"),
        },
    ];
    let walkthrough = Walkthrough {
        schema: String::new(),
        steps,
    };
    Script {
        name: name.into(),
        prompt: prompt.into(),
        walkthrough,
    }
}

fn ask(user: &str) -> Ask {
    let schema = json!({"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]});
    let tool = ToolOffer {
        name: "Bash".into(),
        description: String::new(),
        schema,
        callable: true,
    };
    let message = Message {
        speaker: Speaker::User,
        parts: vec![Part::Text(user.into())],
    };
    Ask {
        model: "m".into(),
        stream: false,
        max_tokens: None,
        min_tokens: 0,
        system: String::new(),
        tools: vec![tool],
        messages: vec![message],
        answer_schema: None,
        include_usage: false,
    }
}

/// A request without tools.
pub(super) fn plain_ask(user: &str) -> Ask {
    Ask {
        tools: Vec::new(),
        ..ask(user)
    }
}

/// The message by which the next request holds an answer.
fn said(reply: &Reply) -> Message {
    let text = Some(Part::Text(reply.text.clone())).filter(|_| !reply.text.is_empty());
    let call = reply.call.clone().map(Part::Call);
    Message {
        speaker: Speaker::Assistant,
        parts: text.into_iter().chain(call).collect(),
    }
}

fn brain() -> Brain {
    Brain::new(
        &[
            script("fix-bug", "Fix the\nbug."),
            script("fix-more", "Fix the bug. And \"more\"."),
        ],
        Recall::default(),
    )
}

#[test]
fn the_longest_prompt_wins_whatever_white_space_and_quotes_the_agent_changed() {
    let command = |user: &str| brain().answer(&ask(user), "").call.unwrap().arguments;
    assert!(command("Fix  the bug.").contains("echo fix-bug"));
    assert!(command("\"Fix the bug.\n\nAnd \\\"more\\\".\"").contains("echo fix-more"));
}

#[test]
fn an_unknown_prompt_is_answered_with_what_is_known() {
    let reply = brain().answer(&ask("Write a poem"), "");
    assert_eq!(reply.call, None);
    assert!(
        reply.text.contains("no walkthrough") && reply.text.contains("fix-bug, fix-more"),
        "{}",
        reply.text
    );
}

#[test]
fn a_request_without_tools_never_plays_even_when_it_holds_the_prompt() {
    let mut title = ask("Fix the bug.");
    title.tools.clear();
    title.system = "You are a title generator.".into();
    assert_eq!(brain().answer(&title, ""), Reply::text("Fix bug"));
    title.system.clear();
    let other = brain().answer(&title, "");
    assert!(other.call.is_none() && other.text.starts_with("Understood"));
}

#[test]
fn tools_whose_schema_is_withheld_count_as_not_offered() {
    let mut request = ask("Fix the bug.");
    request.tools[0].callable = false;
    assert_eq!(brain().answer(&request, "").call, None);
}

#[test]
fn a_structured_side_answer_follows_its_schema() {
    let mut request = ask("Fix the bug.");
    request.tools.clear();
    request.answer_schema = Some(
        json!({"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}}),
    );
    assert_eq!(brain().answer(&request, "").text, "{\"title\":\"Fix bug\"}");
}

#[test]
fn a_step_that_no_offered_tool_can_do_is_said_plainly() {
    let mut request = ask("Fix the bug.");
    request.tools[0].name = "WebFetch".into();
    let reply = brain().answer(&request, "");
    assert!(
        reply.call.is_none() && reply.text.starts_with("I could not run `echo fix-bug`"),
        "{}",
        reply.text
    );
}

#[test]
fn a_call_without_a_result_is_tried_again_and_then_given_up() {
    let mut request = ask("Fix the bug.");
    let mut tries = 0;
    let end = loop {
        let reply = brain().answer(&request, "toolu_");
        if reply.call.is_none() {
            break reply.text;
        }
        tries += 1;
        request.messages.push(said(&reply));
        request.messages.push(Message {
            speaker: Speaker::User,
            parts: vec![Part::Text("go on".into())],
        });
    };
    assert_eq!(tries, 2);
    assert!(end.contains("got no result"), "{end}");
}

#[test]
fn a_command_that_fails_has_run_but_one_that_was_refused_has_not() {
    for (text, goes_on) in [
        ("Exit code 101\ntest failed", true),
        ("InputValidationError: bad", false),
    ] {
        let mut request = ask("Fix the bug.");
        let reply = brain().answer(&request, "toolu_");
        let call = reply.call.clone().unwrap().id;
        request.messages.push(said(&reply));
        let result = ToolResult {
            call,
            text: text.into(),
            is_error: Some(true),
        };
        request.messages.push(Message {
            speaker: Speaker::User,
            parts: vec![Part::Result(result)],
        });
        assert_eq!(
            brain().answer(&request, "").call.is_none(),
            goes_on,
            "{text}"
        );
    }
}

#[test]
fn a_conversation_about_another_task_before_does_not_count_as_progress() {
    let mut request = ask("Fix the bug.");
    let reply = brain().answer(&request, "");
    let call = reply.call.clone().unwrap().id;
    request.messages.push(said(&reply));
    let result = ToolResult {
        call,
        text: "ok".into(),
        is_error: None,
    };
    request.messages.push(Message {
        speaker: Speaker::Tool,
        parts: vec![Part::Result(result)],
    });
    let next = "Fix the bug. And \"more\".".into();
    request.messages.push(Message {
        speaker: Speaker::User,
        parts: vec![Part::Text(next)],
    });
    assert!(
        brain()
            .answer(&request, "")
            .call
            .unwrap()
            .arguments
            .contains("fix-more")
    );
}
