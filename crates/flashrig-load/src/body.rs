//! Request bodies as bytes that only ever grow at their end: a prompt of a million tokens is
//! written once, and a later turn costs one copy of it and nothing that looks at it.

use bytes::Bytes;

use super::aim::LoadDialect;

/// A conversation as the body of a request, without its closing.
#[derive(Clone, Debug)]
pub(super) struct Conversation {
    bytes: Vec<u8>,
    messages: u32,
}

/// How long the answers may, or must, be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    /// Tokens at most.
    pub(super) tokens: u32,
    /// Whether the fields go with it that make it exactly so many.
    pub(super) fixed: bool,
}

const CLOSING: &[u8] = b"]}";

impl Conversation {
    /// Begins one. `room` is the expected length in bytes.
    pub(super) fn new(dialect: LoadDialect, model: &str, output: Output, room: usize) -> Self {
        let mut bytes = Vec::with_capacity(room + 512);
        // A string is always JSON.
        let model = serde_json::Value::from(model).to_string();
        let Output { tokens, fixed } = output;
        let mut head = format!("{{\"model\":{model},\"stream\":true,");
        if dialect == LoadDialect::OpenaiChat {
            head.push_str("\"stream_options\":{\"include_usage\":true},");
        }
        head.push_str(&format!("\"temperature\":0,\"max_tokens\":{tokens},"));
        if fixed {
            head.push_str(&format!("\"ignore_eos\":true,\"min_tokens\":{tokens},"));
        }
        head.push_str("\"messages\":[");
        bytes.extend_from_slice(head.as_bytes());
        Self { bytes, messages: 0 }
    }

    /// Begins one that is only to be counted, and generates nothing.
    pub(super) fn to_be_counted(model: &str) -> Self {
        let model = serde_json::Value::from(model);
        let head = format!("{{\"model\":{model},\"messages\":[");
        Self {
            bytes: head.into_bytes(),
            messages: 0,
        }
    }

    /// Appends a message of the user. `write` appends text that needs no escaping.
    pub(super) fn user(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.open("user");
        write(&mut self.bytes);
        self.bytes.extend_from_slice(b"\"}");
    }

    /// Appends an answer. Servers refuse empty ones.
    pub(super) fn assistant(&mut self, text: &str) {
        self.open("assistant");
        let text = if text.is_empty() { "." } else { text };
        let quoted = serde_json::Value::from(text).to_string();
        self.bytes
            .extend_from_slice(&quoted.as_bytes()[1..quoted.len() - 1]);
        self.bytes.extend_from_slice(b"\"}");
    }

    fn open(&mut self, role: &str) {
        if self.messages > 0 {
            self.bytes.push(b',');
        }
        self.messages += 1;
        self.bytes
            .extend_from_slice(format!("{{\"role\":\"{role}\",\"content\":\"").as_bytes());
    }

    /// The body as it is now.
    pub(super) fn body(&self) -> Bytes {
        let mut body = Vec::with_capacity(self.bytes.len() + CLOSING.len());
        body.extend_from_slice(&self.bytes);
        body.extend_from_slice(CLOSING);
        body.into()
    }

    /// Messages in it.
    pub(super) fn messages(&self) -> u32 {
        self.messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_body_is_json_in_the_dialect_and_a_later_turn_begins_with_the_earlier_one() {
        let output = Output {
            tokens: 64,
            fixed: true,
        };
        let mut talk = Conversation::new(LoadDialect::OpenaiChat, "a\"b", output, 0);
        talk.user(|out| out.extend_from_slice(br"one\ntwo"));
        let first = talk.body();
        talk.assistant("he said \"no\"\n\u{1}");
        talk.user(|out| out.extend_from_slice(b"and?"));
        let second = talk.body();
        let parsed: Value = serde_json::from_slice(&second).unwrap();
        assert_eq!(
            parsed,
            json!({
                "model": "a\"b", "stream": true, "stream_options": {"include_usage": true},
                "temperature": 0, "max_tokens": 64, "ignore_eos": true, "min_tokens": 64,
                "messages": [
                    {"role": "user", "content": "one\ntwo"},
                    {"role": "assistant", "content": "he said \"no\"\n\u{1}"},
                    {"role": "user", "content": "and?"},
                ],
            })
        );
        assert!(second.starts_with(&first[..first.len() - CLOSING.len()]));
        assert_eq!(talk.messages(), 3);
    }

    #[test]
    fn fields_that_a_dialect_or_a_server_does_not_know_are_left_out() {
        let output = Output {
            tokens: 8,
            fixed: false,
        };
        let mut talk = Conversation::new(LoadDialect::AnthropicMessages, "m", output, 0);
        talk.user(|_| {});
        talk.assistant("");
        let parsed: Value = serde_json::from_slice(&talk.body()).unwrap();
        for field in ["stream_options", "ignore_eos", "min_tokens"] {
            assert!(parsed.get(field).is_none(), "{field}");
        }
        assert_eq!(
            parsed["messages"][1]["content"], ".",
            "an empty one is refused"
        );
    }
}
