//! OpenAI responses, streamed and plain.

use serde_json::Value;

use super::facts::{Content, Facts, replace};
use super::tools::Fragment;
use super::{error, text};
use std::time::Duration;

/// A frame of a stream. The dialect keeps nothing between frames that would have to be kept here.
pub(crate) fn frame(frame: &Value, at: Duration, facts: &mut Facts) {
    let Some(kind) = frame.get("type").and_then(Value::as_str) else {
        match error::in_object(frame) {
            Some(fault) => facts.error = Some(fault),
            None => facts.missing("type"),
        }
        return;
    };
    match kind {
        "error" => facts.error = error::in_object(frame),
        "response.failed" => {
            let fault = frame.get("response").and_then(error::in_object);
            facts.error = fault.or_else(|| {
                Some(error::plain_text(
                    b"the response failed; the server did not say why",
                    None,
                ))
            });
        }
        "response.completed" | "response.incomplete" => {
            facts.ended = true;
            match frame.get("response") {
                Some(response) => figures(response, facts),
                None => facts.missing(&format!("{kind}.response")),
            }
        }
        "response.output_item.added" if is_tool_call(frame) => {
            facts.tool_named(at);
            if let Some(item) = frame.get("item") {
                begin_call(index(frame), item, facts);
            }
        }
        "response.output_item.done" if is_tool_call(frame) => {
            if let Some(arguments) = frame.get("item").and_then(arguments) {
                facts.calls.done(index(frame), arguments);
            }
        }
        "response.output_text.delta" | "response.refusal.delta" => {
            delta(frame, kind, at, Content::Visible, facts)
        }
        "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
            if let Some(part) = text(frame, "delta") {
                facts.calls.arguments(index(frame), part);
            }
            delta(frame, kind, at, Content::Hidden, facts);
        }
        _ if kind.ends_with(".delta") => delta(frame, kind, at, Content::Hidden, facts),
        _ => {}
    }
}

fn is_tool_call(frame: &Value) -> bool {
    frame.get("item").is_some_and(is_call)
}

fn is_call(item: &Value) -> bool {
    matches!(
        text(item, "type"),
        Some("function_call" | "custom_tool_call")
    )
}

fn index(frame: &Value) -> Option<u64> {
    frame.get("output_index").and_then(Value::as_u64)
}

fn arguments(item: &Value) -> Option<&str> {
    text(item, "arguments").or_else(|| text(item, "input"))
}

fn begin_call(index: Option<u64>, item: &Value, facts: &mut Facts) {
    facts.calls.begin(Fragment {
        index,
        id: item.get("call_id").and_then(Value::as_str),
        name: item.get("name").and_then(Value::as_str),
        arguments: arguments(item),
    });
    if text(item, "type") == Some("custom_tool_call") {
        facts.calls.free_form();
    }
}

fn delta(frame: &Value, kind: &str, at: Duration, content: Content, facts: &mut Facts) {
    match frame.get("delta") {
        Some(Value::String(text)) if text.is_empty() => {}
        Some(_) => facts.content(at, content),
        None => facts.missing(&format!("{kind}.delta")),
    }
}

fn figures(response: &Value, facts: &mut Facts) {
    facts.answered_by(response);
    let figure = |path: &str| response.pointer(path).and_then(Value::as_u64);
    replace(&mut facts.input_tokens, figure("/usage/input_tokens"));
    replace(
        &mut facts.cached_tokens,
        figure("/usage/input_tokens_details/cached_tokens"),
    );
    replace(&mut facts.output_tokens, figure("/usage/output_tokens"));
    replace(
        &mut facts.reasoning_tokens,
        figure("/usage/output_tokens_details/reasoning_tokens"),
    );
    facts.stop_reason = response
        .pointer("/incomplete_details/reason")
        .or_else(|| response.get("status"))
        .and_then(Value::as_str)
        .map(str::to_owned);
}

/// A plain answer.
pub(crate) fn plain(answer: &Value, at: Duration, facts: &mut Facts) {
    figures(answer, facts);
    facts.ended = true;
    let Some(items) = answer.get("output").and_then(Value::as_array) else {
        facts.missing("output");
        return;
    };
    if items.is_empty() {
        return;
    }
    for item in items.iter().filter(|item| is_call(item)) {
        begin_call(None, item, facts);
    }
    let parts = items
        .iter()
        .filter_map(|item| item.get("content").and_then(Value::as_array))
        .flatten();
    let visible = parts.into_iter().any(|part| text(part, "text").is_some());
    facts.content(
        at,
        if visible {
            Content::Visible
        } else {
            Content::Hidden
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn watch(frames: &[Value]) -> Facts {
        let mut facts = Facts::default();
        for (at, value) in frames.iter().enumerate() {
            frame(value, Duration::from_nanos(at as u64), &mut facts);
        }
        facts.settle();
        facts
    }

    #[test]
    fn reasoning_text_and_arguments_are_tokens_and_announcements_are_not() {
        let facts = watch(&[
            json!({"type": "response.created", "response": {"id": "r"}}),
            json!({"type": "response.output_item.added", "item": {"type": "message"}}),
            json!({"type": "response.reasoning_summary_text.delta", "delta": "hm"}),
            json!({"type": "response.output_text.delta", "delta": ""}),
            json!({"type": "response.output_text.delta", "delta": "hi"}),
            json!({"type": "response.function_call_arguments.delta", "delta": "{"}),
            json!({"type": "response.output_text.done", "text": "hi"}),
            json!({"type": "response.completed", "response": {"status": "completed", "usage":
                {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 3}}}),
        ]);
        assert_eq!(
            (facts.first_token, facts.first_text),
            (Some(Duration::from_nanos(2)), Some(Duration::from_nanos(4)))
        );
        assert_eq!(
            (facts.last_token, facts.content_events),
            (Some(Duration::from_nanos(5)), 3)
        );
        assert_eq!(
            (facts.input_tokens, facts.cached_tokens, facts.output_tokens),
            (Some(9), Some(4), Some(3))
        );
        assert_eq!(facts.stop_reason.as_deref(), Some("completed"));
        assert!(facts.ended && facts.missing_fields.is_empty());
    }

    #[test]
    fn failures_carry_the_servers_words() {
        let failed = json!({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "boom"}}});
        let error = watch(&[failed]).error.unwrap();
        assert_eq!(
            (error.kind.as_deref(), error.message.as_str()),
            (Some("server_error"), "boom")
        );
        let error = watch(&[json!({"type": "error", "code": "x", "message": "m", "param": null})])
            .error
            .unwrap();
        assert_eq!(
            (error.kind.as_deref(), error.message.as_str()),
            (Some("x"), "m")
        );
    }

    #[test]
    fn missing_fields_are_named() {
        let facts = watch(&[
            json!({"type": "response.output_text.delta"}),
            json!({"type": "response.completed"}),
        ]);
        assert_eq!(
            facts.missing_fields,
            [
                "response.output_text.delta.delta",
                "response.completed.response"
            ]
        );
    }
}
