//! What a request body says about itself. Lenient: what cannot be read is `None`, and the body
//! is forwarded all the same; judging it is the server's business.

use sha2::{Digest, Sha256};

use super::document::Document;
use super::json::Value;
use flashrig_record::Dialect;

/// Facts read from a request body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RequestFacts {
    pub(super) model: Option<String>,
    pub(super) stream: bool,
    pub(super) tools: Option<u32>,
    pub(super) messages: Option<u32>,
    pub(super) max_tokens: Option<u64>,
}

impl RequestFacts {
    /// Reads `document`; everything `None` when it is not a JSON object.
    pub(super) fn read(dialect: Dialect, document: &Document) -> Self {
        let body = document.text();
        let mut facts = Self::default();
        for (name, value) in document.members().unwrap_or_default() {
            match name.as_str() {
                "model" => facts.model = value.read(body),
                "stream" => facts.stream = value.read(body).unwrap_or(false),
                "tools" => facts.tools = count(value, body),
                "messages" => facts.messages = count(value, body),
                // The Responses API also takes one plain string as its input.
                "input" if dialect == Dialect::OpenaiResponses => {
                    facts.messages = if value.is_string(body) {
                        Some(1)
                    } else {
                        count(value, body)
                    };
                }
                "max_tokens" | "max_completion_tokens" | "max_output_tokens" => {
                    facts.max_tokens = value.read(body).or(facts.max_tokens);
                }
                _ => {}
            }
        }
        facts
    }
}

fn count(value: &Value, body: &[u8]) -> Option<u32> {
    value
        .is_array(body)
        .then(|| u32::try_from(value.elements(body).len()).unwrap_or(u32::MAX))
}

/// The first 16 hexadecimal characters of the SHA-256 of a body; `None` for an empty one.
pub(super) fn body_hash(body: &[u8]) -> Option<String> {
    if body.is_empty() {
        return None;
    }
    Some(hex::encode(&Sha256::digest(body)[..8]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(dialect: Dialect, body: &'static [u8]) -> RequestFacts {
        RequestFacts::read(dialect, &Document::new(body))
    }

    #[test]
    fn facts_are_read_from_each_dialect() {
        let chat = br#"{"model":"m","max_completion_tokens":7,"messages":[{},{}],"tools":[{}],"stream":true}"#;
        let want = RequestFacts {
            model: Some("m".into()),
            stream: true,
            tools: Some(1),
            messages: Some(2),
            max_tokens: Some(7),
        };
        assert_eq!(read(Dialect::OpenaiChat, chat), want);
        let responses = br#"{"model":"m","input":"hi","max_output_tokens":null}"#;
        let want = RequestFacts {
            model: Some("m".into()),
            messages: Some(1),
            ..RequestFacts::default()
        };
        assert_eq!(read(Dialect::OpenaiResponses, responses), want);
    }

    #[test]
    fn what_cannot_be_read_is_unknown_and_not_an_error() {
        for body in [
            &b""[..],
            b"{",
            b"[1,2]",
            b"\xff\xfe",
            b"{\"model\":1,\"tools\":3,\"stream\":\"yes\"}",
        ] {
            assert_eq!(read(Dialect::OpenaiChat, body), RequestFacts::default());
        }
    }

    #[test]
    fn the_hash_is_the_start_of_the_sha256() {
        assert_eq!(body_hash(b"abc").as_deref(), Some("ba7816bf8f01cfea"));
        assert_eq!(body_hash(b""), None);
    }
}
