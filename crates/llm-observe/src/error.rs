//! What a server says went wrong, in the many forms servers say it.

use http::StatusCode;
use serde_json::Value;

use super::{cut, text};
use crate::ErrorDetail;

/// Bytes of a message that are kept.
const MESSAGE_BYTES: usize = 4 * 1024;

/// Reads the body of an answer with an error status.
pub(crate) fn from_answer(body: &[u8], status: StatusCode) -> ErrorDetail {
    let unframed = body.strip_prefix(b"data:").unwrap_or(body).trim_ascii();
    match serde_json::from_slice::<Value>(unframed) {
        Ok(value) => in_object(&value)
            .or_else(|| text(&value, "message").map(|message| error(None, message, None)))
            .or_else(|| value.as_str().map(|message| error(None, message, None)))
            .unwrap_or_else(|| plain_text(body, Some(status))),
        Err(_) => plain_text(body, Some(status)),
    }
}

/// The error that a JSON object reports, if it reports one: `{"error":{…}}`, `{"error":"…"}`,
/// `{"type":"error",…}`, `{"object":"error",…}` or `{"detail":…}`.
pub(crate) fn in_object(value: &Value) -> Option<ErrorDetail> {
    if let Some(fault) = value.get("error").filter(|fault| !fault.is_null()) {
        return Some(match fault {
            Value::String(message) => error(None, message, None),
            fault => described(fault),
        });
    }
    let says_error = |key| value.get(key).and_then(Value::as_str) == Some("error");
    if says_error("type") || says_error("object") {
        return Some(described(value));
    }
    match value.get("detail")? {
        Value::String(message) => Some(error(None, message, None)),
        Value::Array(faults) => faults.first().map(|fault| {
            let message = text(fault, "msg").map_or_else(|| fault.to_string(), str::to_owned);
            let path = fault.get("loc").and_then(Value::as_array).map(|path| {
                let parts = path.iter().map(|part| {
                    part.as_str()
                        .map_or_else(|| part.to_string(), str::to_owned)
                });
                parts
                    .skip_while(|part| part == "body")
                    .collect::<Vec<_>>()
                    .join(".")
            });
            error(text(fault, "type").map(str::to_owned), &message, path)
        }),
        other => Some(error(None, &other.to_string(), None)),
    }
}

fn described(fault: &Value) -> ErrorDetail {
    let kind = text(fault, "type")
        .filter(|kind| *kind != "error")
        .map(str::to_owned)
        .or_else(|| {
            fault
                .get("code")
                .filter(|code| !code.is_null())
                .map(|code| {
                    code.as_str()
                        .map_or_else(|| code.to_string(), str::to_owned)
                })
        });
    let message = text(fault, "message").map_or_else(|| fault.to_string(), str::to_owned);
    error(kind, &message, text(fault, "param").map(str::to_owned))
}

/// An answer in no known form: its words as they are, or its status when it has none.
pub(crate) fn plain_text(body: &[u8], status: Option<StatusCode>) -> ErrorDetail {
    let message = String::from_utf8_lossy(body.trim_ascii());
    match status {
        Some(status) if message.is_empty() => {
            error(None, &format!("status {status} without a word"), None)
        }
        _ => error(None, &message, None),
    }
}

fn error(kind: Option<String>, message: &str, field: Option<String>) -> ErrorDetail {
    let field = field.or_else(|| named_field(message));
    ErrorDetail {
        kind,
        message: cut(message, MESSAGE_BYTES).to_owned(),
        field,
    }
}

/// The request field that a message names, such as `messages.0.role`, `messages[0].role` or
/// `max_tokens`.
fn named_field(message: &str) -> Option<String> {
    const ROOTS: [&str; 5] = ["messages", "system", "tools", "input", "thinking"];
    const NAMES: [&str; 10] = [
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "tool_choice",
        "stream_options",
        "response_format",
        "reasoning_effort",
        "output_config",
        "context_management",
        "cache_control",
    ];
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']');
    message
        .split(|c| !is_part(c))
        .map(|word| word.trim_matches('.'))
        .find_map(|word| {
            let end = word.find(['.', '[']).unwrap_or(word.len());
            let (root, path) = word.split_at(end);
            let is_path = path.len() > 1 && ROOTS.contains(&root);
            (is_path || NAMES.contains(&word)).then(|| word.to_owned())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> (Option<String>, String, Option<String>) {
        let error = from_answer(body.as_bytes(), StatusCode::BAD_REQUEST);
        (error.kind, error.message, error.field)
    }

    fn want(
        kind: Option<&str>,
        message: &str,
        field: Option<&str>,
    ) -> (Option<String>, String, Option<String>) {
        (
            kind.map(str::to_owned),
            message.to_owned(),
            field.map(str::to_owned),
        )
    }

    #[test]
    fn every_known_form_is_read() {
        assert_eq!(
            read(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
            want(Some("overloaded_error"), "Overloaded", None)
        );
        assert_eq!(
            read(
                r#"{"error":{"message":"bad role","type":null,"code":400,"param":"messages.0.role"}}"#
            ),
            want(Some("400"), "bad role", Some("messages.0.role"))
        );
        assert_eq!(
            read(r#"{"error":"no such model"}"#),
            want(None, "no such model", None)
        );
        assert_eq!(
            read(r#"{"detail":"Not Found"}"#),
            want(None, "Not Found", None)
        );
        assert_eq!(
            read(
                r#"{"detail":[{"type":"missing","loc":["body","messages",0,"role"],"msg":"Field required"}]}"#
            ),
            want(Some("missing"), "Field required", Some("messages.0.role"))
        );
        assert_eq!(
            read(r#"{"object":"error","message":"too long","type":"BadRequestError","code":400}"#),
            want(Some("BadRequestError"), "too long", None)
        );
        assert_eq!(
            read("<html>busy</html>"),
            want(None, "<html>busy</html>", None)
        );
        assert_eq!(
            read(""),
            want(None, "status 400 Bad Request without a word", None)
        );
        assert_eq!(read(r#"{"a":1}"#), want(None, r#"{"a":1}"#, None));
    }

    #[test]
    fn the_field_is_found_in_the_words() {
        let field = |message: &str| named_field(message);
        assert_eq!(
            field("messages.1.role: must be user").as_deref(),
            Some("messages.1.role")
        );
        assert_eq!(
            field("Unexpected role in `messages[0].role`.").as_deref(),
            Some("messages[0].role")
        );
        assert_eq!(
            field("'max_tokens' is too large: 32000.").as_deref(),
            Some("max_tokens")
        );
        assert_eq!(
            field("System message must be at the beginning. See tools."),
            None
        );
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let error = from_answer("ä".repeat(5000).as_bytes(), StatusCode::BAD_REQUEST);
        assert_eq!(error.message, "ä".repeat(2048));
    }

    #[test]
    fn an_ordinary_answer_is_no_error() {
        assert_eq!(
            in_object(&serde_json::json!({"error": null, "choices": []})),
            None
        );
    }
}
