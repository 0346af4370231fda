//! The cold-cache nonce: one line at the very start of the prompt, constant for a session, so that
//! nothing an earlier session left in the server's prompt cache can be reused.
//!
//! The line is spliced into the body's text at the right offset. Every byte before and after it
//! stays as the client wrote it: no key is reordered, no number or escape rewritten.

use super::document::Document;
use super::json::Value;
use flashrig_record::Dialect;

/// The body with the line for `nonce`; `None` when it is not one to put a prompt line into
/// (another dialect, not JSON, not of the dialect's shape), and then it goes unchanged.
pub(super) fn insert(dialect: Dialect, document: &Document, nonce: &str) -> Option<Vec<u8>> {
    let text = escaped(nonce);
    let splice = match dialect {
        Dialect::AnthropicMessages | Dialect::AnthropicCountTokens => anthropic(document, &text),
        Dialect::OpenaiChat => chat(document, &text),
        Dialect::OpenaiResponses => root_member(document, "instructions", &text),
        Dialect::Models | Dialect::Other => None,
    }?;
    let body = document.text();
    let mut changed = Vec::with_capacity(body.len() + splice.with.len());
    changed.extend_from_slice(body.get(..splice.from)?);
    changed.extend_from_slice(splice.with.as_bytes());
    changed.extend_from_slice(body.get(splice.to..)?);
    Some(changed)
}

/// The line, as the inside of a JSON string.
fn escaped(nonce: &str) -> String {
    let line = format!("[cache nonce {nonce}]\n");
    let quoted = serde_json::Value::from(line).to_string();
    quoted.trim_matches('"').to_owned()
}

/// Replaces the bytes `from..to` by `with`; a plain insertion when both are equal.
struct Splice {
    from: usize,
    to: usize,
    with: String,
}

fn insert_at(offset: usize, with: String) -> Option<Splice> {
    Some(Splice {
        from: offset,
        to: offset,
        with,
    })
}

/// Puts `item` first into an array or object.
fn insert_first(body: &[u8], container: &Value, item: &str) -> Option<Splice> {
    let empty = container.elements(body).is_empty() && container.members(body).is_empty();
    insert_at(
        container.inside(),
        if empty {
            item.to_owned()
        } else {
            format!("{item},")
        },
    )
}

/// Into the body's own member `name`, which is made when there is none.
fn root_member(document: &Document, name: &str, text: &str) -> Option<Splice> {
    match document.member(name) {
        Some(value) => into_string(document.text(), value, text),
        None => {
            let comma = if document.members()?.is_empty() {
                ""
            } else {
                ","
            };
            let member = format!("\"{name}\":\"{text}\"{comma}");
            insert_at(document.inside()?, member)
        }
    }
}

/// Into a string, or in the place of a null.
fn into_string(body: &[u8], value: &Value, text: &str) -> Option<Splice> {
    if value.is_string(body) {
        return insert_at(value.inside(), text.to_owned());
    }
    value.is_null(body).then(|| Splice {
        from: value.0.start,
        to: value.0.end,
        with: format!("\"{text}\""),
    })
}

fn anthropic(document: &Document, text: &str) -> Option<Splice> {
    let body = document.text();
    match document.member("system") {
        Some(system) if system.is_array(body) => into_parts(body, system, text),
        _ => root_member(document, "system", text),
    }
}

/// Into the first element when it is a text block, else as a text block before it.
fn into_parts(body: &[u8], parts: &Value, text: &str) -> Option<Splice> {
    let first = parts.elements(body).into_iter().next();
    match first
        .and_then(|part| part.member(body, "text"))
        .filter(|value| value.is_string(body))
    {
        Some(value) => insert_at(value.inside(), text.to_owned()),
        None => insert_first(
            body,
            parts,
            &format!("{{\"type\":\"text\",\"text\":\"{text}\"}}"),
        ),
    }
}

fn chat(document: &Document, text: &str) -> Option<Splice> {
    let body = document.text();
    let messages = document
        .member("messages")
        .filter(|value| value.is_array(body))?;
    let all = messages.elements(body);
    let is_system = |message: &Value| {
        let role = message
            .member(body, "role")
            .and_then(|role| role.read::<String>(body));
        matches!(role.as_deref(), Some("system" | "developer"))
    };
    let new_message = || {
        let message = format!("{{\"role\":\"system\",\"content\":\"{text}\"}}");
        insert_first(body, messages, &message)
    };
    let Some(first) = all.first() else {
        return new_message();
    };
    // A second system message would make some servers refuse the request, so when one stands
    // further down the line goes into whatever message is first.
    if !is_system(first) && !all.iter().any(is_system) {
        return new_message();
    }
    match first.member(body, "content") {
        Some(content) if content.is_array(body) => into_parts(body, &content, text),
        Some(content) => into_string(body, &content, text),
        None => insert_first(body, first, &format!("\"content\":\"{text}\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn put(dialect: Dialect, body: &str) -> String {
        String::from_utf8(insert(dialect, &Document::new(body.to_owned()), "n1").unwrap()).unwrap()
    }

    #[test]
    fn anthropic_prompts_start_with_the_line_whatever_shape_system_has() {
        let put = |body| put(Dialect::AnthropicMessages, body);
        assert_eq!(
            put(r#"{"system" : "be\tgood"}"#),
            r#"{"system" : "[cache nonce n1]\nbe\tgood"}"#
        );
        assert_eq!(
            put(r#"{"a":1, "system":[ {"type":"text","text":"x"} , {"text":"y"}]}"#),
            r#"{"a":1, "system":[ {"type":"text","text":"[cache nonce n1]\nx"} , {"text":"y"}]}"#
        );
        assert_eq!(
            put(r#"{"system":[]}"#),
            r#"{"system":[{"type":"text","text":"[cache nonce n1]\n"}]}"#
        );
        assert_eq!(
            put(r#"{"m":1}"#),
            r#"{"system":"[cache nonce n1]\n","m":1}"#
        );
        assert_eq!(
            put(r#"{"system":null}"#),
            r#"{"system":"[cache nonce n1]\n"}"#
        );
        assert_eq!(put("{}"), r#"{"system":"[cache nonce n1]\n"}"#);
    }

    #[test]
    fn chat_prompts_start_with_the_line() {
        let put = |body| put(Dialect::OpenaiChat, body);
        assert_eq!(
            put(r#"{"messages":[{"role":"system","content":"x"},{"role":"user","content":"u"}]}"#),
            r#"{"messages":[{"role":"system","content":"[cache nonce n1]\nx"},{"role":"user","content":"u"}]}"#
        );
        assert_eq!(
            put(r#"{"messages":[{"content":[{"type":"text","text":"x"}],"role":"developer"}]}"#),
            r#"{"messages":[{"content":[{"type":"text","text":"[cache nonce n1]\nx"}],"role":"developer"}]}"#
        );
        assert_eq!(
            put(r#"{"messages":[{"role":"user","content":"u"}]}"#),
            r#"{"messages":[{"role":"system","content":"[cache nonce n1]\n"},{"role":"user","content":"u"}]}"#
        );
    }

    #[test]
    fn a_system_message_further_down_is_not_joined_by_a_second_one() {
        assert_eq!(
            put(
                Dialect::OpenaiChat,
                r#"{"messages":[{"role":"user","content":"u"},{"role":"system","content":"x"}]}"#
            ),
            r#"{"messages":[{"role":"user","content":"[cache nonce n1]\nu"},{"role":"system","content":"x"}]}"#
        );
    }

    #[test]
    fn responses_prompts_start_with_the_line() {
        let put = |body| put(Dialect::OpenaiResponses, body);
        assert_eq!(
            put(r#"{"instructions":"x"}"#),
            r#"{"instructions":"[cache nonce n1]\nx"}"#
        );
        assert_eq!(
            put(r#"{"input":"x"}"#),
            r#"{"instructions":"[cache nonce n1]\n","input":"x"}"#
        );
    }

    #[test]
    fn bodies_that_cannot_take_it_go_unchanged() {
        for body in [&b""[..], b"[]", b"{\"messages\":", b"{\"messages\":3}"] {
            assert_eq!(insert(Dialect::OpenaiChat, &Document::new(body), "n"), None);
        }
        assert_eq!(
            insert(Dialect::Other, &Document::new(&b"{}"[..]), "n"),
            None
        );
    }

    proptest! {
        #[test]
        fn the_result_is_json_and_differs_by_the_line_only(system in ".*", user in ".*", nonce in ".*") {
            let body = json!({"model": "m", "system": system, "messages": [{"role": "user", "content": user}]});
            let changed = insert(Dialect::AnthropicMessages, &Document::new(body.to_string()), &nonce).unwrap();
            let mut want = body;
            want["system"] = format!("[cache nonce {nonce}]\n{system}").into();
            prop_assert_eq!(serde_json::from_slice::<serde_json::Value>(&changed).unwrap(), want);
        }
    }
}
