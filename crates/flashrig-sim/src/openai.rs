//! The OpenAI chat-completions dialect: requests in, answers and errors out.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::ask::{
    Ask, AskError, Message, Part, Speaker, ToolCall, ToolOffer, ToolResult, min_tokens,
};
use super::reply::{Piece, Planned, Stop};

/// A keep-alive comment; not an event.
pub const KEEP_ALIVE: &str = ": keep-alive\n\n";

/// Reads a request.
pub fn parse(body: &Value) -> Result<Ask, AskError> {
    let model = body["model"]
        .as_str()
        .ok_or_else(|| AskError::field("model", "field required"))?;
    let limit = ["max_completion_tokens", "max_tokens"]
        .iter()
        .find_map(|key| body.get(*key).filter(|v| !v.is_null()));
    let max_tokens = match limit.map(|v| v.as_u64().filter(|n| *n > 0)) {
        Some(None) => {
            return Err(AskError::field(
                "max_tokens",
                "must be a whole number above 0",
            ));
        }
        known => known.flatten(),
    };
    let list = body
        .get("messages")
        .ok_or_else(|| AskError::field("messages", "field required"))?;
    let list = list
        .as_array()
        .ok_or_else(|| AskError::field("messages", "must be a list"))?;
    if list.is_empty() {
        return Err(AskError::field(
            "messages",
            "at least one message is required",
        ));
    }
    let mut messages = list
        .iter()
        .enumerate()
        .map(|(n, m)| message(n, m))
        .collect::<Result<Vec<_>, _>>()?;
    // Leading instructions stand before the tools, as chat templates put them.
    let leading = messages
        .iter()
        .take_while(|m| m.speaker == Speaker::System)
        .count();
    let system: Vec<String> = messages
        .drain(..leading)
        .flat_map(|m| m.parts)
        .filter_map(|part| {
            if let Part::Text(text) = part {
                Some(text)
            } else {
                None
            }
        })
        .collect();
    let may_call = body["tool_choice"] != "none";
    Ok(Ask {
        model: model.to_owned(),
        stream: body["stream"].as_bool().unwrap_or(false),
        max_tokens,
        min_tokens: min_tokens(body),
        system: system.join("\n"),
        tools: body["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|offer| tool(offer, may_call))
            .collect(),
        messages,
        answer_schema: body.pointer("/response_format/json_schema/schema").cloned(),
        include_usage: body
            .pointer("/stream_options/include_usage")
            .and_then(Value::as_bool)
            .unwrap_or(false),
    })
}

fn tool(tool: &Value, may_call: bool) -> Option<ToolOffer> {
    let function = tool.get("function")?;
    Some(ToolOffer {
        name: function["name"].as_str()?.to_owned(),
        description: function["description"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        schema: function["parameters"].clone(),
        callable: may_call,
    })
}

fn message(n: usize, message: &Value) -> Result<Message, AskError> {
    let speaker = match message["role"].as_str() {
        Some("user") => Speaker::User,
        Some("assistant") => Speaker::Assistant,
        Some("system" | "developer") => Speaker::System,
        Some("tool" | "function") => Speaker::Tool,
        Some(other) => {
            return Err(AskError::field(
                format!("messages[{n}].role"),
                format!("unknown role '{other}'"),
            ));
        }
        None => {
            return Err(AskError::field(
                format!("messages[{n}].role"),
                "field required",
            ));
        }
    };
    let content = &message["content"];
    if !matches!(content, Value::String(_) | Value::Array(_) | Value::Null) {
        return Err(AskError::field(
            format!("messages[{n}].content"),
            "must be text or a list of parts",
        ));
    }
    if speaker == Speaker::Tool {
        let call = message["tool_call_id"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let texts: Vec<String> = content_parts(content)
            .into_iter()
            .filter_map(|part| {
                if let Part::Text(text) = part {
                    Some(text)
                } else {
                    None
                }
            })
            .collect();
        let result = ToolResult {
            call,
            text: texts.join("\n"),
            is_error: None,
        };
        return Ok(Message {
            speaker,
            parts: vec![Part::Result(result)],
        });
    }
    let mut parts = content_parts(content);
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        parts.push(Part::Call(ToolCall {
            id: call["id"].as_str().unwrap_or_default().to_owned(),
            name: call
                .pointer("/function/name")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            arguments: call
                .pointer("/function/arguments")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
        }));
    }
    Ok(Message { speaker, parts })
}

fn content_parts(content: &Value) -> Vec<Part> {
    match content {
        Value::String(text) if !text.is_empty() => vec![Part::Text(text.clone())],
        Value::Array(parts) => parts
            .iter()
            .map(|part| match part["text"].as_str() {
                Some(text) => Part::Text(text.to_owned()),
                None => Part::Other(part.to_string()),
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn finish_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::EndTurn => "stop",
        Stop::ToolUse => "tool_calls",
        Stop::Length => "length",
    }
}

/// Usage; prompt tokens include those from the cache.
fn usage(planned: &Planned, cached: u64) -> Value {
    let output = planned.tokens as u64;
    json!({
        "prompt_tokens": planned.prompt_tokens, "completion_tokens": output,
        "total_tokens": planned.prompt_tokens + output, "prompt_tokens_details": {"cached_tokens": cached},
    })
}

/// A whole answer.
pub fn whole(planned: &Planned, cached: u64) -> Value {
    let text = planned.text.as_str();
    let mut message = json!({"role": "assistant", "content": if text.is_empty() { Value::Null } else { text.into() }});
    if let Some(call) = &planned.call {
        message["tool_calls"] = json!([{
            "id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments},
        }]);
    }
    json!({
        "id": planned.id, "object": "chat.completion", "created": planned.created, "model": planned.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(planned.stop)}],
        "usage": usage(planned, cached),
    })
}

fn data(data: &Value, out: &mut String) {
    out.push_str("data: ");
    out.push_str(&data.to_string());
    out.push_str("\n\n");
}

fn chunk(planned: &Planned, delta: &Value, finish: Option<&str>, out: &mut String) {
    let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    data(&bare_chunk(planned, &choices), out);
}

fn bare_chunk(planned: &Planned, choices: &Value) -> Value {
    json!({
        "id": planned.id, "object": "chat.completion.chunk", "created": planned.created, "model": planned.model,
        "choices": choices,
    })
}

/// The role chunk.
pub fn stream_start(planned: &Planned, out: &mut String) {
    chunk(
        planned,
        &json!({"role": "assistant", "content": ""}),
        None,
        out,
    );
}

/// A chunk with one token.
pub fn stream_piece(planned: &Planned, piece: Piece<'_>, out: &mut String) {
    let delta = match piece {
        // By far the most: written without a tree of values in between.
        Piece::Text(text) => {
            let (id, created, model) = (&planned.id, planned.created, Value::from(&*planned.model));
            let _ = writeln!(
                out,
                "data: {{\"id\":\"{id}\",\"object\":\"chat.completion.chunk\",\"created\":{created},\"model\":{model},\
                 \"choices\":[{{\"index\":0,\"delta\":{{\"content\":{}}},\"finish_reason\":null}}]}}\n",
                Value::from(text)
            );
            return;
        }
        Piece::CallStart => {
            let (id, name) = planned
                .call
                .as_ref()
                .map(|call| (&call.id, &call.name))
                .unzip();
            let function = json!({"name": name, "arguments": ""});
            json!({"tool_calls": [{"index": 0, "id": id, "type": "function", "function": function}]})
        }
        Piece::Arguments(text) => {
            json!({"tool_calls": [{"index": 0, "function": {"arguments": text}}]})
        }
    };
    chunk(planned, &delta, None, out);
}

/// Finish chunk, usage chunk when asked for, end mark.
pub fn stream_end(planned: &Planned, cached: Option<u64>, out: &mut String) {
    chunk(planned, &json!({}), Some(finish_reason(planned.stop)), out);
    if let Some(cached) = cached {
        let mut last = bare_chunk(planned, &json!([]));
        last["usage"] = usage(planned, cached);
        data(&last, out);
    }
    out.push_str("data: [DONE]\n\n");
}

/// An error after the 200; no end mark follows.
pub fn stream_error(message: &str, out: &mut String) {
    data(&error_body("server_error", message, None, None), out);
}

/// An error body.
pub fn error_body(kind: &str, message: &str, param: Option<&str>, code: Option<&str>) -> Value {
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}

/// Status and body of a refusal.
pub fn error(error: &AskError) -> (u16, Value) {
    let (kind, param, code) = match error {
        AskError::Field { field, .. } => ("invalid_request_error", Some(field.as_str()), None),
        AskError::Shape { field, .. } => ("invalid_request_error", Some(*field), None),
        AskError::Memory {
            unavailable: true, ..
        } => ("server_error", None, Some("out_of_memory")),
        AskError::UnknownModel { .. } => (
            "invalid_request_error",
            Some("model"),
            Some("model_not_found"),
        ),
        AskError::TooLong { .. } => (
            "invalid_request_error",
            Some("messages"),
            Some("context_length_exceeded"),
        ),
        AskError::Overloaded { .. } => ("overloaded_error", None, Some("overloaded")),
        AskError::Stopping => ("server_error", None, Some("shutting_down")),
        AskError::NotJson(_) | AskError::BodyTooLarge { .. } | AskError::Memory { .. } => {
            ("invalid_request_error", None, None)
        }
    };
    (
        error.status(),
        error_body(kind, &error.to_string(), param, code),
    )
}
