//! OpenAI chat completions, streamed and plain.

use crate::Oddity;
use std::time::Duration;

use serde_json::Value;

use super::facts::{Content, Facts, replace};
use super::tools::Fragment;
use super::{error, text};

/// The state of one stream.
#[derive(Default)]
pub(crate) struct Stream {
    figures: Figures,
}

impl Stream {
    pub(crate) fn frame(&mut self, frame: &Value, at: Duration, facts: &mut Facts) {
        if let Some(fault) = error::in_object(frame) {
            facts.error = Some(fault);
            return;
        }
        self.figures.merge(frame);
        self.figures.report(facts);
        facts.answered_by(frame);
        timings(frame, facts);
        let Some(choices) = frame.get("choices").and_then(Value::as_array) else {
            facts.missing("choices");
            return;
        };
        let mut content = None;
        for choice in choices {
            match choice.get("delta") {
                Some(delta) => {
                    content = most_visible(content, content_of(delta));
                    keep(delta, facts);
                    gather(delta, false, facts);
                    if names_tool(delta) {
                        facts.tool_named(at);
                    }
                }
                // Some servers leave an empty delta out of the last chunk.
                None if choice
                    .get("finish_reason")
                    .is_some_and(|reason| !reason.is_null()) => {}
                None => facts.missing("choices[].delta"),
            }
            if let Some(reason) = text(choice, "finish_reason") {
                facts.stop_reason = Some(reason.to_owned());
                facts.ended = true;
            }
        }
        if let Some(content) = content {
            facts.content(at, content);
        }
    }
}

/// Usage, in its own object or as llama.cpp's timings.
#[derive(Default)]
struct Figures {
    input: Option<u64>,
    cached: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
}

impl Figures {
    fn merge(&mut self, answer: &Value) {
        let has = |key: &str| answer.get(key).is_some_and(Value::is_object);
        if !has("usage") && !has("timings") {
            // Nearly every frame of a stream: looking for each figure by its path would cost more
            // than reading the frame.
            return;
        }
        let figure = |path: &str| answer.pointer(path).and_then(Value::as_u64);
        replace(&mut self.input, figure("/usage/prompt_tokens"));
        replace(&mut self.output, figure("/usage/completion_tokens"));
        let either = |paths: [&str; 3]| paths.into_iter().find_map(figure);
        replace(
            &mut self.cached,
            either([
                "/usage/prompt_tokens_details/cached_tokens",
                "/usage/cached_tokens",
                "/usage/prompt_cache_hit_tokens",
            ]),
        );
        replace(
            &mut self.reasoning,
            either([
                "/usage/completion_tokens_details/reasoning_tokens",
                "/usage/output_tokens_details/reasoning_tokens",
                "/usage/reasoning_tokens",
            ]),
        );
        if self.cached.is_none() {
            self.cached = figure("/timings/cache_n");
        }
        if self.input.is_none()
            && let (Some(read), Some(cached)) =
                (figure("/timings/prompt_n"), figure("/timings/cache_n"))
        {
            self.input = Some(read + cached);
        }
        if self.output.is_none() {
            self.output = figure("/timings/predicted_n");
        }
    }

    fn report(&self, facts: &mut Facts) {
        facts.input_tokens = self.input;
        facts.cached_tokens = self.cached;
        facts.output_tokens = self.output;
        facts.reasoning_tokens = self.reasoning;
    }
}

/// llama.cpp's own timings and its count of reused prompt tokens, beside any dialect's usage.
pub(crate) fn timings(answer: &Value, facts: &mut Facts) {
    let Some(timings) = answer.get("timings") else {
        return;
    };
    if facts.cached_tokens.is_none() {
        facts.cached_tokens = timings.get("cache_n").and_then(Value::as_u64);
    }
    let milliseconds = |name: &str| {
        let reported = timings.get(name)?.as_f64()?;
        Duration::try_from_secs_f64(reported / 1000.0).ok()
    };
    facts.server_prompt = milliseconds("prompt_ms").or(facts.server_prompt);
    facts.server_decode = milliseconds("predicted_ms").or(facts.server_decode);
}

fn most_visible(a: Option<Content>, b: Option<Content>) -> Option<Content> {
    match (a, b) {
        (Some(Content::Visible), _) | (_, Some(Content::Visible)) => Some(Content::Visible),
        (a, b) => a.or(b),
    }
}

/// Keeps the text of a delta or of a message, where text is kept.
fn keep(delta: &Value, facts: &mut Facts) {
    match delta.get("content") {
        Some(Value::String(visible)) => facts.says(visible),
        Some(Value::Array(parts)) => {
            for part in parts {
                facts.says(text(part, "text").unwrap_or_default());
            }
        }
        _ => {}
    }
    for key in ["reasoning_content", "reasoning"] {
        if let Some(hidden) = text(delta, key) {
            facts.thinks(hidden);
            return;
        }
    }
}

/// The generated content of a delta or of a message. A role is none, nor is an empty text.
fn content_of(delta: &Value) -> Option<Content> {
    let parts = || {
        delta
            .get("content")
            .and_then(Value::as_array)
            .is_some_and(|parts| parts.iter().any(|part| text(part, "text").is_some()))
    };
    if text(delta, "content").is_some() || text(delta, "refusal").is_some() || parts() {
        return Some(Content::Visible);
    }
    let reasoning = ["reasoning_content", "reasoning"]
        .iter()
        .any(|key| text(delta, key).is_some());
    let arguments = calls(delta).any(|call| match call.get("arguments") {
        Some(Value::String(arguments)) => !arguments.is_empty(),
        // Against the format, but some servers send them as an object.
        Some(Value::Object(_)) => true,
        _ => false,
    });
    (reasoning || arguments).then_some(Content::Hidden)
}

fn names_tool(delta: &Value) -> bool {
    calls(delta).any(|call| text(call, "name").is_some())
}

fn calls(delta: &Value) -> impl Iterator<Item = &Value> {
    let calls = delta
        .get("tool_calls")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    calls
        .filter_map(|call| call.get("function"))
        .chain(delta.get("function_call"))
}

/// Puts the fragments of tool calls together.
fn gather(delta: &Value, is_whole: bool, facts: &mut Facts) {
    let calls = delta.get("tool_calls").and_then(Value::as_array);
    for call in calls.into_iter().flatten() {
        let function = call.get("function");
        let arguments = function.and_then(|function| function.get("arguments"));
        // Against the format, but some servers send them as an object.
        let object = arguments.filter(|a| a.is_object()).map(Value::to_string);
        if object.is_some() {
            facts.calls.odd(Oddity::ArgumentsNotText);
        }
        let fragment = Fragment {
            index: call.get("index").and_then(Value::as_u64),
            id: call.get("id").and_then(Value::as_str),
            name: function
                .and_then(|function| function.get("name"))
                .and_then(Value::as_str),
            arguments: object.as_deref().or(arguments.and_then(Value::as_str)),
        };
        // A plain answer has whole calls, in order and without an index.
        if is_whole {
            facts.calls.begin(fragment);
        } else {
            facts.calls.fragment(fragment);
        }
    }
    if let Some(call) = delta.get("function_call").filter(|call| call.is_object()) {
        // The form before there were several calls: neither index nor id belong to it.
        facts.calls.legacy(Fragment {
            name: call.get("name").and_then(Value::as_str),
            arguments: call.get("arguments").and_then(Value::as_str),
            ..Fragment::default()
        });
    }
}

/// A plain answer.
pub(crate) fn plain(answer: &Value, at: Duration, facts: &mut Facts) {
    let mut figures = Figures::default();
    figures.merge(answer);
    figures.report(facts);
    facts.answered_by(answer);
    timings(answer, facts);
    facts.ended = true;
    let Some(choices) = answer.get("choices").and_then(Value::as_array) else {
        facts.missing("choices");
        return;
    };
    let mut content = None;
    for choice in choices {
        match choice.get("message") {
            Some(message) => {
                content = most_visible(content, content_of(message));
                keep(message, facts);
                gather(message, true, facts);
                if names_tool(message) {
                    facts.tool_named(at);
                }
            }
            None => facts.missing("choices[].message"),
        }
        if let Some(reason) = text(choice, "finish_reason") {
            facts.stop_reason = Some(reason.to_owned());
        }
    }
    if let Some(content) = content {
        facts.content(at, content);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn watch(frames: &[Value]) -> Facts {
        let (mut stream, mut facts) = (Stream::default(), Facts::default());
        for (at, frame) in frames.iter().enumerate() {
            stream.frame(frame, Duration::from_nanos(at as u64), &mut facts);
        }
        facts.settle();
        facts
    }

    fn delta(delta: Value) -> Value {
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
    }

    #[test]
    fn roles_and_empty_deltas_are_not_tokens_and_reasoning_and_arguments_are() {
        let facts = watch(&[
            delta(json!({"role": "assistant", "content": ""})),
            delta(json!({"content": null})),
            delta(json!({"reasoning": "hm"})),
            delta(json!({"reasoning_content": "hm"})),
            delta(json!({"content": "hi"})),
            delta(
                json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "ls", "arguments": ""}}]}),
            ),
            delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]})),
        ]);
        assert_eq!(facts.first_token, Some(Duration::from_nanos(2)));
        assert_eq!(facts.first_text, Some(Duration::from_nanos(4)));
        assert_eq!(facts.last_token, Some(Duration::from_nanos(6)));
        assert_eq!(facts.content_events, 4);
        assert!(!facts.ended && facts.missing_fields.is_empty());
    }

    #[test]
    fn usage_counts_wherever_it_comes_and_is_unknown_when_it_does_not() {
        let last = json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3,
            "prompt_tokens_details": {"cached_tokens": 4}}});
        let stop = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
        let facts = watch(&[stop.clone(), last]);
        assert_eq!(
            (facts.input_tokens, facts.cached_tokens, facts.output_tokens),
            (Some(9), Some(4), Some(3))
        );
        assert!(facts.ended);
        let facts = watch(&[stop]);
        assert_eq!(
            (facts.input_tokens, facts.cached_tokens, facts.output_tokens),
            (None, None, None)
        );
    }

    fn codes(facts: &crate::Facts) -> Vec<&str> {
        facts.oddities().iter().map(crate::Oddity::code).collect()
    }

    #[test]
    fn a_tool_call_written_as_text_is_odd_however_it_is_cut_and_a_real_one_is_not() {
        let stop = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
        let facts = watch(&[
            delta(json!({"content": "I will look. <tool"})),
            delta(json!({"content": "_call>{\"name\": \"ls\"}</tool_call>"})),
            stop.clone(),
        ]);
        assert_eq!(codes(&facts), ["tool_call_as_text"]);
        let call = json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "ls", "arguments": "{}"}}]});
        let facts = watch(&[delta(call.clone()), stop]);
        assert!(
            codes(&facts).contains(&"stop_contradicts_tool_calls"),
            "{:?}",
            codes(&facts)
        );
        let calls = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]});
        let facts = watch(&[delta(json!({"content": "<tool_call>"})), delta(call), calls]);
        assert!(
            !codes(&facts).contains(&"tool_call_as_text"),
            "{:?}",
            codes(&facts)
        );
        assert!(!codes(&facts).contains(&"stop_contradicts_tool_calls"));
    }

    #[test]
    fn usage_below_the_number_of_content_events_leaves_tokens_out() {
        let usage = |n| json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": n}});
        let text = || delta(json!({"content": "a"}));
        let facts = watch(&[text(), text(), text(), usage(2)]);
        assert_eq!(codes(&facts), ["usage_leaves_tokens_out"]);
        assert!(codes(&watch(&[text(), text(), usage(2)])).is_empty());
        // An event may hold several tokens.
        assert!(codes(&watch(&[text(), usage(40)])).is_empty());
    }

    #[test]
    fn timings_stand_in_for_usage() {
        let frame =
            json!({"choices": [], "timings": {"cache_n": 90, "prompt_n": 10, "predicted_n": 7}});
        let facts = watch(&[frame]);
        assert_eq!(
            (facts.input_tokens, facts.cached_tokens, facts.output_tokens),
            (Some(100), Some(90), Some(7))
        );
        assert_eq!((facts.server_prompt, facts.server_decode), (None, None));
    }

    #[test]
    fn what_the_server_says_that_reading_and_writing_took_is_kept() {
        let timings = json!({"prompt_ms": 11.5, "predicted_ms": 22.25});
        let frame = json!({"choices": [], "timings": timings});
        let facts = watch(&[frame, json!({"choices": []})]);
        assert_eq!(facts.server_prompt, Some(Duration::from_micros(11_500)));
        assert_eq!(facts.server_decode, Some(Duration::from_micros(22_250)));
        let broken = json!({"choices": [], "timings": {"prompt_ms": -1, "predicted_ms": "x"}});
        assert_eq!(watch(&[broken]).server_prompt, None);
    }

    #[test]
    fn a_chunk_without_choices_and_an_error_object_are_named() {
        assert_eq!(watch(&[json!({"id": "c"})]).missing_fields, ["choices"]);
        let facts = watch(&[json!({"error": {"message": "boom", "code": 500}})]);
        assert_eq!(
            facts.error.map(|error| error.message).as_deref(),
            Some("boom")
        );
        assert!(facts.missing_fields.is_empty());
    }
}
