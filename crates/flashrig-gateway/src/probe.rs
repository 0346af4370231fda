//! Probes that the gateway answers itself, when it is told to: that somebody is there, the served
//! model, how long a prompt is. Nothing of them reaches the server; each says so in its row.
//!
//! Told by method and path, as dialects are. What is not plainly a probe is the server's to answer.

use hyper::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::prompt::PromptCap;
use flashrig_record::{Attempt, Dialect, ErrorDetail, OwnAnswer};

/// Paths at which clients ask whether somebody is there, with and without `/api` before them.
const GREETINGS: [&str; 6] = ["", "/v1", "/hello", "/health", "/healthz", "/ping"];

/// An answer in the server's place.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Value,
    pub(super) what: OwnAnswer,
    /// What the row says went wrong; `None` when nothing did.
    pub(super) error: Option<ErrorDetail>,
}

/// The answer to `attempt`, whose request was read whole, with `model` being the one that is
/// served; `None` when it is no probe.
pub(super) fn answer(attempt: &Attempt, model: &str, lengths: &PromptCap) -> Option<Answer> {
    let whole = |what, body| Answer {
        status: StatusCode::OK,
        body,
        what,
        error: None,
    };
    match attempt.dialect {
        Dialect::AnthropicCountTokens => {
            let tokens = lengths.estimate(attempt.request_bytes);
            Some(whole(
                OwnAnswer::TokenEstimate { tokens },
                json!({ "input_tokens": tokens }),
            ))
        }
        Dialect::Models => Some(match asked_model(&attempt.path) {
            None => whole(OwnAnswer::Models, list(model)),
            Some(name) if name == model => whole(OwnAnswer::Models, described(model)),
            Some(name) => unknown(&name, model),
        }),
        Dialect::Other if is_greeting(&attempt.method, &attempt.path) => {
            Some(whole(OwnAnswer::Greeting, json!({ "message": "hello" })))
        }
        Dialect::Other
        | Dialect::AnthropicMessages
        | Dialect::OpenaiChat
        | Dialect::OpenaiResponses => None,
    }
}

/// HEAD brings nothing but that somebody is there, whatever it asks for.
fn is_greeting(method: &str, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    let path = path.strip_prefix("/api").unwrap_or(path);
    method == Method::HEAD.as_str() || (method == Method::GET.as_str() && GREETINGS.contains(&path))
}

/// The name in `/v1/models/NAME`, which may hold slashes of its own; `None` for the list.
fn asked_model(path: &str) -> Option<String> {
    let (_, name) = path.split_once("/models")?;
    let name = name.trim_matches('/');
    (!name.is_empty()).then(|| percent_decode_str(name).decode_utf8_lossy().into_owned())
}

/// A model as both dialects' clients read it: each looks at its own names.
fn described(model: &str) -> Value {
    json!({
        "id": model,
        "object": "model",
        "created": 0,
        "owned_by": "flashrig",
        "type": "model",
        "display_name": model,
        "created_at": "1970-01-01T00:00:00Z",
    })
}

fn list(model: &str) -> Value {
    json!({
        "object": "list",
        "data": [described(model)],
        "has_more": false,
        "first_id": model,
        "last_id": model,
    })
}

/// Both dialects' form of an error at once, as nothing tells whose client asks.
fn unknown(name: &str, model: &str) -> Answer {
    let message = format!("the model `{name}` does not exist; `{model}` is served");
    Answer {
        status: StatusCode::NOT_FOUND,
        body: json!({
            "type": "error",
            "error": {
                "type": "not_found_error",
                "message": message,
                "param": "model",
                "code": "model_not_found",
            },
        }),
        what: OwnAnswer::Models,
        error: Some(ErrorDetail {
            kind: Some("model_not_found".to_owned()),
            message,
            field: Some("model".to_owned()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_questions_whether_somebody_is_there_are_greetings() {
        for (method, path) in [
            ("HEAD", "/"),
            ("HEAD", "/v1/anything"),
            ("GET", "/"),
            ("GET", "/v1/"),
            ("GET", "/api/hello"),
            ("GET", "/health"),
        ] {
            assert!(is_greeting(method, path), "{method} {path}");
        }
        for (method, path) in [
            ("GET", "/v1/files"),
            ("GET", "/apihello"),
            ("GET", "/slots"),
            ("POST", "/"),
            ("OPTIONS", "/"),
        ] {
            assert!(!is_greeting(method, path), "{method} {path}");
        }
    }

    #[test]
    fn a_models_name_is_read_from_the_path_with_its_slashes_and_percent_signs() {
        assert_eq!(asked_model("/v1/models"), None);
        assert_eq!(asked_model("/models/"), None);
        let name = |path| asked_model(path).unwrap();
        assert_eq!(name("/v1/models/m"), "m");
        assert_eq!(name("/v1/models/org/m"), "org/m");
        assert_eq!(name("/v1/models/org%2Fm"), "org/m");
        assert_eq!(name("/v1/models/50%"), "50%");
        assert_eq!(name("/v1/models/%zz%+1%C3%A9"), "%zz%+1é");
    }
}
