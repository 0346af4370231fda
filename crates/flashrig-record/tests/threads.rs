//! Threads, roles and prefixes of whole sessions: recordings of real agents, their texts blanked,
//! and the shapes that people met.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::collections::BTreeMap;

use flashrig_clock::Seconds;
use flashrig_record::threads::{Pieces, Prompt, explain};
use flashrig_record::{Attempt, Clocks, Dialect, Outcome, PrefixSummary, Role};
use serde_json::{Value, json};

/// A session's requests: in order of arrival, each with its body.
#[derive(Default)]
struct Traffic {
    attempts: Vec<Attempt>,
    prompts: BTreeMap<u32, Prompt>,
    pieces: Pieces,
    now: f64,
}

impl Traffic {
    /// A request that begins when the one before has ended.
    fn ask(&mut self, body: &Value) -> &mut Attempt {
        let began = self.now;
        self.now += 3.0;
        self.ask_at(began, began + 1.0, began + 2.0, body)
    }

    /// A request at given instants.
    fn ask_at(&mut self, began: f64, first_token: f64, ended: f64, body: &Value) -> &mut Attempt {
        self.add(
            Dialect::AnthropicMessages,
            (began, first_token, ended),
            body,
        )
    }

    fn add(&mut self, dialect: Dialect, at: (f64, f64, f64), body: &Value) -> &mut Attempt {
        let number = self.attempts.len() as u32 + 1;
        let text = body.to_string();
        if let Some(prompt) = Prompt::read(dialect, text.as_bytes(), &mut self.pieces) {
            self.prompts.insert(number, prompt);
        }
        let attempt = Attempt {
            number,
            method: "POST".into(),
            path: "/v1/messages".into(),
            stream: true,
            status: Some(200),
            outcome: Outcome::Complete,
            request_bytes: text.len() as u64,
            response_bytes: 100,
            input_tokens: Some(text.len() as u64 / 4),
            output_tokens: Some(10),
            content_events: 10,
            clocks: Clocks {
                head_s: Seconds(at.0),
                first_token_s: Some(Seconds(at.1)),
                end_s: Seconds(at.2),
                ..Clocks::default()
            },
            ..Attempt::begun(dialect, Role::Side)
        };
        self.attempts.push(attempt);
        self.attempts.last_mut().unwrap()
    }

    fn explain(&mut self) -> Option<PrefixSummary> {
        explain(&mut self.attempts, &self.prompts)
    }

    fn roles(&self) -> Vec<Role> {
        self.attempts.iter().map(|a| a.role).collect()
    }

    fn threads(&self) -> Vec<u32> {
        self.attempts.iter().map(|a| a.thread.unwrap()).collect()
    }
}

/// A conversation of an agent with tools, `turns` turns old.
fn conversation(system: &[&str], tools: &[&str], prompt: &str, turns: usize) -> Value {
    let system: Vec<Value> = system
        .iter()
        .map(|text| json!({"type": "text", "text": text}))
        .collect();
    let tools: Vec<Value> = tools
        .iter()
        .map(|name| json!({"name": name, "description": "a tool", "input_schema": {}}))
        .collect();
    let mut messages = vec![json!({"role": "user", "content": prompt})];
    for turn in 0..turns {
        let id = format!("{prompt}-{turn}");
        messages.push(json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": format!("{id} ls")}}]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": "x".repeat(300)}]}));
    }
    json!({"max_tokens": 32000, "system": system, "tools": tools, "messages": messages})
}

const MAIN: [&str; 2] = ["header: v1;", "You are the main agent. Do everything well."];
const SUB: [&str; 2] = [
    "header: v1;",
    "Search only, and report what you have found.",
];
const TOOLS: [&str; 4] = ["Agent", "Bash", "Edit", "Read"];

fn main(turns: usize) -> Value {
    conversation(&MAIN, &TOOLS, "fix the bug", turns)
}

fn recording(name: &str) -> (Traffic, Vec<String>) {
    let path = format!(
        "{}/tests/recordings/{name}.jsonl",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(path).unwrap();
    let mut traffic = Traffic::default();
    let mut want = Vec::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let dialect = serde_json::from_value(line["dialect"].clone()).unwrap();
        let at = |name: &str| line[name].as_f64().unwrap();
        let instants = (at("began_s"), at("first_token_s"), at("ended_s"));
        let attempt = traffic.add(dialect, instants, &line["body"]);
        attempt.input_tokens = line["input_tokens"].as_u64();
        attempt.cached_tokens = line["cached_tokens"].as_u64();
        want.push(line["role"].as_str().unwrap().to_owned());
    }
    (traffic, want)
}

fn assert_roles_of(name: &str) -> (Traffic, Option<PrefixSummary>) {
    let (mut traffic, want) = recording(name);
    let summary = traffic.explain();
    let roles: Vec<String> = traffic
        .roles()
        .iter()
        .map(|r| {
            serde_json::to_value(r)
                .unwrap()
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(roles, want, "{name}");
    (traffic, summary)
}

#[test]
fn claude_code_headless_is_one_main_thread_with_a_stable_prefix() {
    let (traffic, summary) = assert_roles_of("claude-headless");
    assert_eq!(traffic.threads(), [1, 1, 1, 1]);
    let summary = summary.unwrap();
    // The cache marks that move to the last message, and the system message that turns from a
    // list into a string as they do, are no changes.
    assert_eq!((summary.turns, summary.changed), (3, 0), "{summary:?}");
    assert_eq!((summary.judged, summary.lost), (3, 0), "{summary:?}");
}

#[test]
fn the_title_request_of_claude_code_on_a_terminal_is_a_side_request_in_a_thread_of_its_own() {
    let (traffic, summary) = assert_roles_of("claude-interactive");
    assert_eq!(traffic.threads(), [1, 2]);
    assert_eq!(summary, None);
}

#[test]
fn the_title_request_of_opencode_is_a_side_request_in_a_thread_of_its_own() {
    let (traffic, summary) = assert_roles_of("opencode");
    assert_eq!(traffic.threads(), [1, 2, 2, 2]);
    assert_eq!(summary.unwrap().changed, 0);
}

#[test]
fn a_title_request_that_starts_before_the_main_one_is_a_side_request() {
    let mut traffic = Traffic::default();
    let title = conversation(&["header: v1;", "Write a title."], &[], "fix the bug", 0);
    traffic.ask_at(1.00, 2.0, 2.5, &title);
    traffic.ask_at(1.12, 4.0, 5.0, &main(0));
    traffic.ask_at(6.0, 7.0, 8.0, &main(1));
    traffic.explain();
    assert_eq!(traffic.roles(), [Role::Side, Role::Main, Role::Main]);
    assert_eq!(traffic.threads(), [1, 2, 2]);
}

#[test]
fn a_title_asked_for_by_a_forced_tool_or_before_any_answer_is_a_side_request() {
    let mut forced = conversation(&["Titles."], &["set_title"], "fix the bug", 0);
    forced["tool_choice"] = json!({"type": "tool", "name": "set_title"});
    let free = conversation(&["Titles, freely."], &["set_title"], "fix the bug", 0);
    let mut traffic = Traffic::default();
    traffic.ask_at(1.0, 3.0, 4.0, &forced);
    traffic.ask_at(1.1, 3.1, 4.0, &free);
    traffic.ask_at(1.2, 4.0, 5.0, &main(0));
    traffic.ask_at(6.0, 7.0, 8.0, &main(1));
    traffic.explain();
    assert_eq!(
        traffic.roles(),
        [Role::Side, Role::Side, Role::Main, Role::Main]
    );
}

#[test]
fn a_plain_agent_without_tools_has_a_main_thread() {
    let mut traffic = Traffic::default();
    for turns in 0..3 {
        traffic.ask(&conversation(&["Be brief."], &[], "hello", turns));
    }
    traffic.explain();
    assert_eq!(traffic.roles(), [Role::Main; 3]);
    assert_eq!(traffic.threads(), [1, 1, 1]);
}

#[test]
fn sub_agents_beside_the_main_thread_grow_threads_of_their_own() {
    let sub = |prompt: &str, turns| conversation(&SUB, &TOOLS[1..], prompt, turns);
    let mut traffic = Traffic::default();
    traffic.ask_at(0.0, 1.0, 2.0, &main(0));
    // Two at once, of one kind, with prompts that begin alike; then the main thread again.
    traffic.ask_at(3.0, 4.0, 5.0, &sub("find the callers of foo", 0));
    traffic.ask_at(3.1, 4.1, 5.1, &sub("find the callers of bar", 0));
    traffic.ask_at(6.0, 7.0, 8.0, &sub("find the callers of foo", 1));
    traffic.ask_at(6.1, 7.1, 8.1, &sub("find the callers of bar", 1));
    traffic.ask_at(9.0, 10.0, 11.0, &main(1));
    // One after another, which must not pass for the first one's new turn.
    traffic.ask_at(12.0, 13.0, 14.0, &sub("find the callers of baz", 0));
    traffic.ask_at(15.0, 16.0, 17.0, &main(2));
    traffic.explain();
    assert_eq!(traffic.threads(), [1, 2, 3, 2, 3, 1, 4, 1]);
    let (m, s) = (Role::Main, Role::SubAgent);
    assert_eq!(traffic.roles(), [m, s, s, s, s, m, s, m]);
}

#[test]
fn a_sub_agent_that_works_longer_than_the_main_thread_does_not_become_it() {
    let mut traffic = Traffic::default();
    traffic.ask(&main(0));
    for turns in 0..9 {
        traffic.ask(&conversation(&SUB, &TOOLS[1..], "look around", turns));
    }
    traffic.ask(&main(1));
    traffic.explain();
    assert_eq!(traffic.roles()[0], Role::Main);
    assert_eq!(traffic.roles()[10], Role::Main);
    assert!(traffic.roles()[1..10].iter().all(|r| *r == Role::SubAgent));
}

#[test]
fn a_history_begun_anew_by_the_main_agent_is_main_all_the_same() {
    let mut traffic = Traffic::default();
    for turns in 0..4 {
        traffic.ask(&main(turns));
    }
    let anew = |turns| conversation(&MAIN, &TOOLS, "What was done so far: much.", turns);
    traffic.ask(&anew(0));
    traffic.ask(&anew(1));
    traffic.explain();
    assert_eq!(traffic.roles(), [Role::Main; 6]);
    assert_eq!(traffic.threads(), [1, 1, 1, 1, 2, 2]);
}

#[test]
fn a_question_asked_on_top_of_the_main_thread_is_a_side_request() {
    let mut traffic = Traffic::default();
    traffic.ask(&main(0));
    traffic.ask(&main(1));
    let mut aside = main(1);
    let question = json!({"role": "user", "content": "What may the user want next?"});
    aside["messages"].as_array_mut().unwrap().push(question);
    traffic.ask(&aside);
    traffic.ask(&main(2));
    traffic.explain();
    let m = Role::Main;
    assert_eq!(traffic.roles(), [m, m, Role::Side, m]);
    let prefix = traffic.attempts[3].prefix.clone().unwrap();
    assert_eq!((prefix.previous, prefix.breaks_at), (2, None));
}

#[test]
fn the_same_body_sent_again_stays_in_its_thread_and_is_no_turn() {
    let mut traffic = Traffic::default();
    traffic.ask_at(0.0, 5.0, 6.0, &main(0));
    traffic.ask_at(1.0, 5.0, 6.0, &main(0));
    traffic.ask_at(7.0, 8.0, 9.0, &main(1));
    let summary = traffic.explain().unwrap();
    assert_eq!(traffic.threads(), [1, 1, 1]);
    assert_eq!(summary.turns, 1);
}

/// Case E1.
#[test]
fn a_billing_line_that_changes_on_each_request_is_found_at_its_byte_of_system_0() {
    let mut traffic = Traffic::default();
    let line = |n: usize| {
        format!(
            "x-billing-header: cc_version=2.1.332.610; cc_entrypoint=x; cch={};",
            7 * n + 10
        )
    };
    for turns in 0..14 {
        // Once it happens to stay the same.
        let line = line(turns.min(12));
        let body = conversation(&[&line, MAIN[1]], &TOOLS, "fix the bug", turns);
        traffic.ask(&body).cached_tokens = Some(0);
    }
    let summary = traffic.explain().unwrap();
    assert_eq!(traffic.threads(), [1; 14]);
    assert_eq!(traffic.roles(), [Role::Main; 14]);
    assert_eq!((summary.turns, summary.changed), (13, 12));
    let change = &summary.changes[0];
    let byte = line(0).find("cch=").unwrap() as u64 + 4;
    assert_eq!((change.field.as_str(), change.turns), ("system[0]", 12));
    assert_eq!(change.byte, byte);
    // The server could reuse next to nothing and is not blamed for it; where it could, it is.
    assert_eq!((summary.judged, summary.lost), (1, 1));
    let fact = traffic.attempts[1].prefix.clone().unwrap();
    assert_eq!(fact.reused_tokens, Some(0));
    let (reusable, input) = (
        fact.reusable_tokens.unwrap(),
        traffic.attempts[1].input_tokens.unwrap(),
    );
    assert!(reusable * 4 < input, "{reusable} of {input}");
}

/// Case E2.
#[test]
fn a_stable_prefix_of_which_nothing_was_cached_was_lost_by_the_server() {
    let mut traffic = Traffic::default();
    for turns in 0..14 {
        let attempt = traffic.ask(&main(turns));
        let lost = [3, 7, 12].contains(&turns);
        attempt.cached_tokens = Some(if lost {
            0
        } else {
            attempt.input_tokens.unwrap() - 90
        });
    }
    let summary = traffic.explain().unwrap();
    assert_eq!((summary.turns, summary.changed), (13, 0));
    assert_eq!((summary.judged, summary.lost), (13, 3), "{summary:?}");
    assert!(summary.reusable_tokens > summary.reused_tokens);
}

#[test]
fn a_server_that_does_not_say_what_it_reused_has_lost_nothing() {
    let mut traffic = Traffic::default();
    traffic.ask(&main(0));
    traffic.ask(&main(1));
    let summary = traffic.explain().unwrap();
    assert_eq!((summary.turns, summary.judged, summary.lost), (1, 0, 0));
    assert_eq!(summary.reused_tokens, None);
}

#[test]
fn an_agent_that_rewrites_old_tool_results_stays_one_thread_and_the_place_is_named() {
    let mut traffic = Traffic::default();
    for turns in 1..5 {
        let mut body = main(turns);
        let old = body["messages"].as_array().unwrap().len() - 2;
        body["messages"][old]["content"] = json!("(cleared)");
        traffic.ask(&body);
    }
    let summary = traffic.explain().unwrap();
    assert_eq!(traffic.threads(), [1; 4]);
    assert_eq!(summary.changed, 3);
    assert!(
        summary.changes[0].field.starts_with("messages[*].content"),
        "{summary:?}"
    );
}
