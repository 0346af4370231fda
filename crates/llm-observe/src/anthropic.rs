//! Anthropic messages, streamed and plain.

use serde_json::Value;

use super::facts::{Content, Facts, replace};
use super::tools::Fragment;
use super::{error, openai_chat, text};
use std::time::Duration;

/// The state of one stream: usage comes in parts, at its start and at its end.
#[derive(Default)]
pub(crate) struct Stream {
    usage: Usage,
}

#[derive(Default)]
struct Usage {
    fresh: Option<u64>,
    cache_read: Option<u64>,
    cache_creation: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
}

impl Usage {
    fn merge(&mut self, usage: &Value) {
        let figure = |name: &str| usage.get(name).and_then(Value::as_u64);
        replace(&mut self.fresh, figure("input_tokens"));
        replace(&mut self.cache_read, figure("cache_read_input_tokens"));
        replace(
            &mut self.cache_creation,
            figure("cache_creation_input_tokens"),
        );
    }

    fn merge_output(&mut self, usage: &Value) {
        replace(
            &mut self.output,
            usage.get("output_tokens").and_then(Value::as_u64),
        );
        // The dialect itself counts reasoning among the output; some servers tell it apart.
        let details = [
            "/output_tokens_details/reasoning_tokens",
            "/output_tokens_details/thinking_tokens",
            "/completion_tokens_details/reasoning_tokens",
            "/reasoning_tokens",
        ];
        let figure = |path: &str| usage.pointer(path).and_then(Value::as_u64);
        replace(&mut self.reasoning, details.into_iter().find_map(figure));
    }

    /// This dialect counts cached tokens beside the input tokens, not among them.
    fn report(&self, facts: &mut Facts) {
        facts.input_tokens = self
            .fresh
            .map(|fresh| fresh + self.cache_read.unwrap_or(0) + self.cache_creation.unwrap_or(0));
        facts.cached_tokens = self.cache_read.or(facts.cached_tokens);
        facts.output_tokens = self.output;
        facts.reasoning_tokens = self.reasoning;
    }
}

impl Stream {
    pub(crate) fn frame(&mut self, frame: &Value, at: Duration, facts: &mut Facts) {
        match frame.get("type").and_then(Value::as_str) {
            Some("message_start") => self.start(frame, facts),
            Some("content_block_start") => {
                let Some(block) = frame.get("content_block") else {
                    facts.missing("content_block_start.content_block");
                    return;
                };
                match block.get("type").and_then(Value::as_str) {
                    Some("tool_use" | "server_tool_use") => {
                        for field in ["id", "name"] {
                            if text(block, field).is_none() {
                                facts
                                    .missing(&format!("content_block_start.content_block.{field}"));
                            }
                        }
                        facts.tool_named(at);
                        begin_call(frame, block, facts);
                    }
                    _ => content(block, at, facts),
                }
            }
            Some("content_block_delta") => match frame.get("delta") {
                Some(delta) => {
                    if let Some(arguments) = delta.get("partial_json").and_then(Value::as_str) {
                        let index = frame.get("index").and_then(Value::as_u64);
                        facts.calls.arguments(index, arguments);
                    }
                    content(delta, at, facts);
                }
                None => facts.missing("content_block_delta.delta"),
            },
            Some("message_delta") => {
                match frame.get("delta") {
                    Some(delta) => {
                        if let Some(reason) = text(delta, "stop_reason") {
                            facts.stop_reason = Some(reason.to_owned());
                        }
                    }
                    None => facts.missing("message_delta.delta"),
                }
                if let Some(usage) = frame.get("usage").filter(|usage| usage.is_object()) {
                    self.usage.merge(usage);
                    self.usage.merge_output(usage);
                    self.usage.report(facts);
                } else {
                    facts.missing("message_delta.usage");
                }
                openai_chat::timings(frame, facts);
            }
            Some("message_stop") => {
                facts.ended = true;
                openai_chat::timings(frame, facts);
            }
            Some("ping" | "content_block_stop") => {}
            None if frame.get("error").is_none() => facts.missing("type"),
            _ => {
                if let Some(fault) = error::in_object(frame) {
                    facts.error = Some(fault);
                }
            }
        }
    }

    fn start(&mut self, frame: &Value, facts: &mut Facts) {
        let Some(message) = frame.get("message") else {
            facts.missing("message_start.message");
            return;
        };
        facts.answered_by(message);
        if text(message, "id").is_none() {
            facts.missing("message_start.message.id");
        }
        match message.get("usage").filter(|usage| usage.is_object()) {
            // Its output count is a placeholder; only `message_delta` has the real one.
            Some(usage) => {
                self.usage.merge(usage);
                self.usage.report(facts);
            }
            None => facts.missing("message_start.message.usage"),
        }
    }
}

/// A call begins with its block. Its input is empty there and follows in deltas, but some servers
/// give it whole.
fn begin_call(frame: &Value, block: &Value, facts: &mut Facts) {
    let whole = block
        .get("input")
        .filter(|input| input.as_object().is_some_and(|input| !input.is_empty()))
        .map(Value::to_string);
    facts.calls.begin(Fragment {
        index: frame.get("index").and_then(Value::as_u64),
        id: block.get("id").and_then(Value::as_str),
        name: block.get("name").and_then(Value::as_str),
        arguments: whole.as_deref(),
    });
}

/// The generated content of a delta, or of a block.
fn content(delta: &Value, at: Duration, facts: &mut Facts) {
    if let Some(visible) = text(delta, "text") {
        facts.says(visible);
        facts.content(at, Content::Visible);
    } else if let Some(hidden) = text(delta, "thinking") {
        facts.thinks(hidden);
        facts.content(at, Content::Hidden);
    } else if text(delta, "partial_json").is_some() {
        facts.content(at, Content::Hidden);
    }
}

/// A plain answer.
pub(crate) fn plain(answer: &Value, at: Duration, facts: &mut Facts) {
    facts.answered_by(answer);
    match answer.get("content").and_then(Value::as_array) {
        Some(blocks) => {
            for block in blocks {
                if matches!(text(block, "type"), Some("tool_use" | "server_tool_use")) {
                    begin_call(&Value::Null, block, facts);
                }
                facts.says(text(block, "text").unwrap_or_default());
            }
            let visible = blocks.iter().any(|block| text(block, "text").is_some());
            if !blocks.is_empty() {
                facts.content(
                    at,
                    if visible {
                        Content::Visible
                    } else {
                        Content::Hidden
                    },
                );
            }
        }
        None => facts.missing("content"),
    }
    if text(answer, "id").is_none() {
        facts.missing("id");
    }
    facts.stop_reason = text(answer, "stop_reason").map(str::to_owned);
    match answer.get("usage").filter(|usage| usage.is_object()) {
        Some(reported) => {
            let mut usage = Usage::default();
            usage.merge(reported);
            usage.merge_output(reported);
            usage.report(facts);
        }
        None => facts.missing("usage"),
    }
    facts.ended = true;
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

    fn delta(kind: &str, key: &str, value: &str) -> Value {
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": kind, key: value}})
    }

    #[test]
    fn thinking_and_tool_arguments_are_tokens_and_signatures_and_empty_deltas_are_not() {
        let facts = watch(&[
            json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 5, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "content_block": {"type": "thinking", "thinking": ""}}),
            delta("thinking_delta", "thinking", ""),
            delta("thinking_delta", "thinking", "hm"),
            delta("signature_delta", "signature", "abc"),
            delta("text_delta", "text", "hi"),
            delta("input_json_delta", "partial_json", ""),
            delta("input_json_delta", "partial_json", "{"),
            json!({"type": "ping"}),
        ]);
        assert_eq!(facts.first_token, Some(Duration::from_nanos(3)));
        assert_eq!(facts.first_text, Some(Duration::from_nanos(5)));
        assert_eq!(facts.last_token, Some(Duration::from_nanos(7)));
        assert_eq!(facts.content_events, 3);
        assert!(!facts.ended);
        assert_eq!(
            facts.output_tokens, None,
            "the start's count is a placeholder"
        );
    }

    #[test]
    fn input_tokens_are_the_sum_of_fresh_read_and_written() {
        let facts = watch(&[
            json!({"type": "message_start", "message": {"id": "m", "usage":
                {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 1}}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"input_tokens": 0, "output_tokens": 42}}),
            json!({"type": "message_stop"}),
        ]);
        assert_eq!(
            (facts.input_tokens, facts.cached_tokens, facts.output_tokens),
            (Some(125), Some(100), Some(42))
        );
        assert_eq!(facts.stop_reason.as_deref(), Some("tool_use"));
        assert!(facts.ended && facts.missing_fields.is_empty());
    }

    #[test]
    fn a_call_that_never_gets_arguments_began_when_it_was_named() {
        let named = json!({"type": "content_block_start", "content_block": {"type": "tool_use", "id": "t", "name": "ls"}});
        let facts = watch(&[json!({"type": "ping"}), named]);
        assert_eq!(
            (facts.first_token, facts.content_events),
            (Some(Duration::from_nanos(1)), 1)
        );
    }

    #[test]
    fn missing_fields_are_named() {
        let facts = watch(&[
            json!({"type": "message_start", "message": {}}),
            json!({"type": "content_block_start", "content_block": {"type": "tool_use", "name": "x"}}),
            json!({"type": "content_block_delta"}),
            json!({"type": "message_delta"}),
            json!({"kind": "message_stop"}),
        ]);
        let want = [
            "message_start.message.id",
            "message_start.message.usage",
            "content_block_start.content_block.id",
            "content_block_delta.delta",
            "message_delta.delta",
            "message_delta.usage",
            "type",
        ];
        assert_eq!(facts.missing_fields, want);
    }
}
