//! Shapes of requests that are refused on purpose, as this or that server refuses them.

use serde_json::Value;

use super::ask::AskError;
use super::faults::RefusedShape;

/// Refuses a body that has one of the shapes.
pub fn check(body: &Value, refused: &[RefusedShape]) -> Result<(), AskError> {
    for shape in refused {
        let (has, field, what) = match shape {
            RefusedShape::SystemInMessages => {
                (system_after(body, 0), "messages", "the role 'system'")
            }
            RefusedShape::SystemNotFirst => (
                system_after(body, 1),
                "messages",
                "a system message that is not the first",
            ),
            RefusedShape::Tools => {
                let tools = body["tools"].as_array();
                (tools.is_some_and(|t| !t.is_empty()), "tools", "tools")
            }
            RefusedShape::Streaming => (body["stream"] == true, "stream", "streaming"),
            RefusedShape::FixedLength => (
                !body["ignore_eos"].is_null() || !body["min_tokens"].is_null(),
                "ignore_eos",
                "ignore_eos or min_tokens",
            ),
        };
        if has {
            return Err(AskError::Shape { field, what });
        }
    }
    Ok(())
}

fn system_after(body: &Value, first: usize) -> bool {
    let messages = body["messages"].as_array().into_iter().flatten();
    messages.skip(first).any(|m| m["role"] == "system")
}
