//! Reading an agent's standard output as it comes: turns, tool calls, the end, errors.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

/// The meaning of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Meaning {
    /// A turn of the model.
    Turn,
    /// A tool call.
    ToolCall,
    /// The agent's work is done.
    End,
    /// The agent reports an error.
    Error,
    /// The agent reached its own limit of turns.
    TurnLimit,
}

/// A JSON pointer in which `*` stands for any array index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer(Vec<String>);

impl Pointer {
    /// Parses `/a/*/b`; `None` when it does not begin with a slash.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix('/')?;
        Some(Self(
            rest.split('/')
                .map(|s| s.replace("~1", "/").replace("~0", "~"))
                .collect(),
        ))
    }

    /// Every value that the pointer reaches.
    fn values<'v>(&self, root: &'v Value) -> Vec<&'v Value> {
        let mut reached = vec![root];
        for step in &self.0 {
            reached = reached
                .into_iter()
                .flat_map(|value| match (value, step.as_str()) {
                    (Value::Array(items), "*") => items.iter().collect(),
                    (Value::Array(items), index) => index
                        .parse::<usize>()
                        .ok()
                        .and_then(|i| items.get(i))
                        .into_iter()
                        .collect(),
                    (Value::Object(map), key) => map.get(key).into_iter().collect(),
                    _ => Vec::new(),
                })
                .collect();
        }
        reached
    }
}

/// What a line means when it matches.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The meaning.
    pub means: Meaning,
    /// Every pointer must reach its value.
    pub conditions: Vec<(Pointer, Value)>,
    /// Tells events apart.
    pub key: Option<Pointer>,
    /// Text worth showing.
    pub detail: Vec<Pointer>,
}

/// How a transcript is read.
#[derive(Clone, Debug)]
pub struct Grammar {
    /// Whether lines are JSON at all.
    pub json_lines: bool,
    /// Whether a transcript without an end or an error means failure.
    pub end_required: bool,
    /// The rules; every one that matches counts.
    pub rules: Vec<Rule>,
}

/// Something that a line told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// What.
    pub means: Meaning,
    /// Text worth showing, one line, at most 200 characters.
    pub detail: Option<String>,
}

/// What a transcript tells in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Turns; `None` when the transcript does not tell them.
    pub turns: Option<u64>,
    /// Tool calls; `None` when the transcript does not tell them.
    pub tool_calls: Option<u64>,
    /// Whether the agent said that it is done.
    pub ended: bool,
    /// Its last error, when nothing came after it that says otherwise.
    pub error: Option<String>,
    /// Whether it reached its own limit of turns.
    pub turn_limit: bool,
}

/// Reads one transcript.
#[derive(Debug)]
pub struct Reader {
    grammar: Grammar,
    seen: HashSet<(Meaning, String)>,
    summary: Summary,
}

impl Reader {
    /// Starts a transcript.
    pub fn new(grammar: Grammar) -> Self {
        let reports =
            |meaning| grammar.json_lines && grammar.rules.iter().any(|r| r.means == meaning);
        let summary = Summary {
            turns: reports(Meaning::Turn).then_some(0),
            tool_calls: reports(Meaning::ToolCall).then_some(0),
            ..Summary::default()
        };
        Self {
            grammar,
            seen: HashSet::new(),
            summary,
        }
    }

    /// Reads one line, without its newline. A line that is no JSON tells nothing.
    pub fn line(&mut self, line: &[u8]) -> Vec<Reported> {
        if !self.grammar.json_lines {
            return Vec::new();
        }
        let Ok(value) = serde_json::from_slice::<Value>(line) else {
            return Vec::new();
        };
        let mut reported = Vec::new();
        for rule in &self.grammar.rules {
            if !rule
                .conditions
                .iter()
                .all(|(p, want)| p.values(&value).contains(&want))
            {
                continue;
            }
            let keys: BTreeSet<String> = rule
                .key
                .iter()
                .flat_map(|k| k.values(&value))
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            let fresh = if keys.is_empty() {
                1
            } else {
                keys.into_iter()
                    .filter(|k| self.seen.insert((rule.means, k.clone())))
                    .count()
            };
            if fresh == 0 {
                continue;
            }
            let detail = detail(&rule.detail, &value);
            self.summary
                .take(rule.means, fresh as u64, detail.as_deref());
            reported.push(Reported {
                means: rule.means,
                detail,
            });
        }
        reported
    }

    /// The agent made a request after it had told its end: that end was none.
    pub fn went_on(&mut self) {
        self.summary.ended = false;
        self.summary.error = None;
    }

    /// What was told so far.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }
}

impl Summary {
    fn take(&mut self, means: Meaning, count: u64, detail: Option<&str>) {
        match means {
            Meaning::Turn => {
                self.turns = self.turns.map(|n| n + count);
                // The agent went on: an earlier end or error was not its last word.
                self.error = None;
                self.ended = false;
            }
            Meaning::ToolCall => self.tool_calls = self.tool_calls.map(|n| n + count),
            Meaning::End => self.ended = true,
            Meaning::Error => self.error = Some(detail.unwrap_or("without words").to_owned()),
            Meaning::TurnLimit => self.turn_limit = true,
        }
    }
}

fn detail(pointers: &[Pointer], value: &Value) -> Option<String> {
    let parts: Vec<&str> = pointers
        .iter()
        .filter_map(|p| p.values(value).into_iter().find_map(Value::as_str))
        .filter(|s| !s.is_empty())
        .take(2)
        .collect();
    let joined = parts.join(" ");
    let line: String = joined.split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then(|| line.chars().take(200).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Library;

    fn reader(agent: &str) -> Reader {
        Reader::new(Library::new(None).load(agent).unwrap().transcript)
    }

    #[test]
    fn a_turn_told_in_two_lines_counts_once_and_its_tool_calls_each() {
        let mut r = reader("claude");
        r.line(
            br#"{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"x"}]}}"#,
        );
        let reported = r.line(
            br#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cargo test"}}]}}"#,
        );
        assert_eq!(
            reported,
            [Reported {
                means: Meaning::ToolCall,
                detail: Some("Bash cargo test".into())
            }]
        );
        assert_eq!(
            (r.summary().turns, r.summary().tool_calls),
            (Some(1), Some(1))
        );
        assert!(!r.summary().ended);
    }

    #[test]
    fn a_result_that_says_error_is_an_end_with_an_error_whatever_its_subtype() {
        let mut r = reader("claude");
        r.line(br#"{"type":"result","subtype":"success","is_error":true,"result":"API Error: 529 overloaded"}"#);
        assert!(r.summary().ended);
        assert_eq!(
            r.summary().error.as_deref(),
            Some("API Error: 529 overloaded success")
        );
    }

    #[test]
    fn an_error_that_the_agent_got_over_is_forgotten() {
        let mut r = reader("opencode");
        r.line(br#"{"type":"error","error":{"name":"APIError","data":{"message":"busy"}}}"#);
        assert!(r.summary().error.is_some());
        r.line(br#"{"type":"step_start","part":{}}"#);
        r.line(br#"{"type":"step_finish","part":{"reason":"stop"}}"#);
        assert_eq!(r.summary().error, None);
        assert!(r.summary().ended);
    }

    #[test]
    fn text_transcripts_tell_nothing_rather_than_zero_turns() {
        let mut r = reader("command");
        assert!(r.line(br#"{"type":"result"}"#).is_empty());
        assert_eq!((r.summary().turns, r.summary().tool_calls), (None, None));
    }
}
