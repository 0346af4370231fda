//! The Anthropic Messages dialect: requests in, answers and errors out.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::ask::{
    Ask, AskError, Message, Part, Speaker, ToolCall, ToolOffer, ToolResult, min_tokens,
};
use super::reply::{Piece, Planned, Stop};

/// A keep-alive event.
pub const PING: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

/// Reads a request; `max_tokens` is needed to generate, not to count.
pub fn parse(body: &Value, generates: bool) -> Result<Ask, AskError> {
    let model = body["model"]
        .as_str()
        .ok_or_else(|| AskError::field("model", "field required"))?;
    let max_tokens = body.get("max_tokens").filter(|v| !v.is_null());
    let max_tokens = match max_tokens.map(|v| v.as_u64().filter(|n| *n > 0)) {
        Some(None) => {
            return Err(AskError::field(
                "max_tokens",
                "must be a whole number above 0",
            ));
        }
        None if generates => return Err(AskError::field("max_tokens", "field required")),
        known => known.flatten(),
    };
    let messages = body
        .get("messages")
        .ok_or_else(|| AskError::field("messages", "field required"))?;
    let messages = messages
        .as_array()
        .ok_or_else(|| AskError::field("messages", "must be a list"))?;
    if messages.is_empty() {
        return Err(AskError::field(
            "messages",
            "at least one message is required",
        ));
    }
    let messages = messages
        .iter()
        .enumerate()
        .map(|(n, m)| message(n, m))
        .collect::<Result<_, _>>()?;
    let may_call = body.pointer("/tool_choice/type").and_then(Value::as_str) != Some("none");
    Ok(Ask {
        model: model.to_owned(),
        stream: body["stream"].as_bool().unwrap_or(false),
        max_tokens,
        min_tokens: min_tokens(body),
        system: text_of(&body["system"]),
        tools: body["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|offer| tool(offer, may_call))
            .collect(),
        messages,
        answer_schema: body.pointer("/output_config/format/schema").cloned(),
        include_usage: true,
    })
}

fn tool(tool: &Value, may_call: bool) -> ToolOffer {
    ToolOffer {
        name: tool["name"].as_str().unwrap_or_default().to_owned(),
        description: tool["description"].as_str().unwrap_or_default().to_owned(),
        schema: tool["input_schema"].clone(),
        callable: may_call && !tool["defer_loading"].as_bool().unwrap_or(false),
    }
}

fn message(n: usize, message: &Value) -> Result<Message, AskError> {
    let speaker = match message["role"].as_str() {
        Some("user") => Speaker::User,
        Some("assistant") => Speaker::Assistant,
        // Claude Code puts system entries into the conversation.
        Some("system") => Speaker::System,
        Some(other) => {
            return Err(AskError::field(
                format!("messages.{n}.role"),
                format!("unknown role '{other}'"),
            ));
        }
        None => {
            return Err(AskError::field(
                format!("messages.{n}.role"),
                "field required",
            ));
        }
    };
    let parts = match &message["content"] {
        Value::String(text) => vec![Part::Text(text.clone())],
        Value::Array(blocks) => blocks.iter().map(part).collect(),
        _ => {
            return Err(AskError::field(
                format!("messages.{n}.content"),
                "must be text or a list of blocks",
            ));
        }
    };
    Ok(Message { speaker, parts })
}

fn part(block: &Value) -> Part {
    match block["type"].as_str() {
        Some("text") => Part::Text(block["text"].as_str().unwrap_or_default().to_owned()),
        Some("tool_use") => Part::Call(ToolCall {
            id: block["id"].as_str().unwrap_or_default().to_owned(),
            name: block["name"].as_str().unwrap_or_default().to_owned(),
            arguments: block["input"].to_string(),
        }),
        Some("tool_result") => Part::Result(ToolResult {
            call: block["tool_use_id"].as_str().unwrap_or_default().to_owned(),
            text: text_of(&block["content"]),
            is_error: Some(block["is_error"].as_bool().unwrap_or(false)),
        }),
        _ => Part::Other(block.to_string()),
    }
}

/// Text of a string or of a list of text blocks.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks
                .iter()
                .filter_map(|block| block["text"].as_str())
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn stop_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::EndTurn => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::Length => "max_tokens",
    }
}

/// Usage; input tokens are those that did not come from the cache.
fn usage(planned: &Planned, cached: u64, output: usize) -> Value {
    json!({
        "input_tokens": planned.prompt_tokens - cached, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached, "output_tokens": output,
    })
}

/// A whole answer.
pub fn whole(planned: &Planned, cached: u64) -> Value {
    let mut content = Vec::new();
    let text = &planned.text;
    if !text.is_empty() {
        content.push(json!({"type": "text", "text": text}));
    }
    if let Some(call) = &planned.call {
        // Cut off by the output limit, the arguments are not JSON; real servers send what they have.
        let input = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
        content.push(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input}));
    }
    json!({
        "id": planned.id, "type": "message", "role": "assistant", "model": planned.model, "content": content,
        "stop_reason": stop_reason(planned.stop), "stop_sequence": null,
        "usage": usage(planned, cached, planned.tokens),
    })
}

fn event(name: &str, data: &Value, out: &mut String) {
    out.push_str("event: ");
    out.push_str(name);
    out.push_str("\ndata: ");
    out.push_str(&data.to_string());
    out.push_str("\n\n");
}

/// `message_start`.
pub fn stream_start(planned: &Planned, cached: u64, out: &mut String) {
    let message = json!({
        "id": planned.id, "type": "message", "role": "assistant", "model": planned.model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage(planned, cached, 0),
    });
    event(
        "message_start",
        &json!({"type": "message_start", "message": message}),
        out,
    );
    out.push_str(PING);
}

/// `content_block_start`, of a call or else of text.
pub fn block_start(index: usize, call: Option<&ToolCall>, out: &mut String) {
    let block = match call {
        Some(call) => json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}}),
        None => json!({"type": "text", "text": ""}),
    };
    event(
        "content_block_start",
        &json!({"type": "content_block_start", "index": index, "content_block": block}),
        out,
    );
}

/// `content_block_delta`.
pub fn block_delta(index: usize, piece: Piece<'_>, out: &mut String) {
    let delta = match piece {
        // By far the most: written without a tree of values in between.
        Piece::Text(text) => {
            let _ = writeln!(
                out,
                "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":{index},\
                 \"delta\":{{\"type\":\"text_delta\",\"text\":{}}}}}\n",
                Value::from(text)
            );
            return;
        }
        Piece::Arguments(text) => json!({"type": "input_json_delta", "partial_json": text}),
        // Real servers open the arguments with an empty delta.
        Piece::CallStart => json!({"type": "input_json_delta", "partial_json": ""}),
    };
    event(
        "content_block_delta",
        &json!({"type": "content_block_delta", "index": index, "delta": delta}),
        out,
    );
}

/// `content_block_stop`.
pub fn block_stop(index: usize, out: &mut String) {
    event(
        "content_block_stop",
        &json!({"type": "content_block_stop", "index": index}),
        out,
    );
}

/// `message_delta` and `message_stop`.
pub fn stream_end(planned: &Planned, cached: u64, out: &mut String) {
    let delta = json!({"stop_reason": stop_reason(planned.stop), "stop_sequence": null});
    let usage = usage(planned, cached, planned.tokens);
    event(
        "message_delta",
        &json!({"type": "message_delta", "delta": delta, "usage": usage}),
        out,
    );
    event("message_stop", &json!({"type": "message_stop"}), out);
}

/// An error after the 200.
pub fn stream_error(message: &str, out: &mut String) {
    event("error", &error_body("api_error", message), out);
}

/// An error body.
pub fn error_body(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

/// Status and body of a refusal.
pub fn error(error: &AskError) -> (u16, Value) {
    let (status, kind) = match error {
        AskError::UnknownModel { .. } => (404, "not_found_error"),
        AskError::Overloaded { .. } => (529, "overloaded_error"),
        AskError::BodyTooLarge { .. } => (413, "request_too_large"),
        AskError::Stopping
        | AskError::Memory {
            unavailable: true, ..
        } => (503, "api_error"),
        other => (other.status(), "invalid_request_error"),
    };
    (status, error_body(kind, &error.to_string()))
}
