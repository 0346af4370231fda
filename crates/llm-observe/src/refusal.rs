//! Why a server turned a request down: what its status and its words mean.
//!
//! The words are those of the servers that people run (llama.cpp, vLLM, mlx-serve, mlx-lm, and the
//! two dialects' own). What is in no list is `other`, with the server's words beside it.

use crate::{Dialect, ErrorDetail, Outcome, RefusalKind};

/// An exchange that has ended, as far as its refusal can be told from it.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// Protocol of the request.
    pub dialect: Dialect,
    /// How it ended.
    pub outcome: Outcome,
    /// HTTP status, where there was one.
    pub status: Option<u16>,
    /// The error that the server described.
    pub error: Option<&'a ErrorDetail>,
}

/// The kind of refusal of an ended exchange; `None` when it was not turned down.
pub fn kind(ended: &Ended<'_>) -> Option<RefusalKind> {
    let said = ended.error.map(Said::new).unwrap_or_default();
    let fits_not = said.of_size();
    match ended.outcome {
        Outcome::Refused | Outcome::Overloaded => {}
        // Some servers have no better status for it, or notice when the answer has begun.
        Outcome::UpstreamError | Outcome::ErrorInStream => return fits_not,
        Outcome::Complete
        | Outcome::Truncated
        | Outcome::Stalled
        | Outcome::ClientAborted
        | Outcome::Unreachable
        | Outcome::RejectedByGateway => return None,
    }
    let by_words = fits_not.or_else(|| said.of_model());
    Some(match ended.status {
        Some(401 | 403) => RefusalKind::Auth,
        Some(429) => RefusalKind::TooMany,
        Some(503 | 529) => by_words.unwrap_or(RefusalKind::TooMany),
        Some(405) => RefusalKind::UnknownRoute,
        _ if said.is_kind(AUTH_KINDS) => RefusalKind::Auth,
        Some(404) => by_words
            .or_else(|| said.of_shape())
            .unwrap_or_else(|| not_found(ended.dialect, &said)),
        Some(413) => RefusalKind::ContextTooSmall,
        _ => by_words
            .or_else(|| said.of_shape())
            .unwrap_or(match ended.status {
                Some(400 | 415 | 422) if said.names_field => RefusalKind::RequestShape,
                Some(422) => RefusalKind::RequestShape,
                _ => RefusalKind::Other,
            }),
    })
}

/// A 404 that says nothing of a model. mlx-lm gives one for any fault of a generation, with the
/// fault as its words; for a route that it does not have, it has no words of its own.
fn not_found(dialect: Dialect, said: &Said) -> RefusalKind {
    let plain = ["not found", "file not found", "status 404"];
    let of_route = said.message.is_empty()
        || plain
            .iter()
            .any(|message| said.message.starts_with(message))
        || said.message.contains("<html")
        || said.has(&["no route", "route not found", "cannot post", "cannot get"])
        || said.has(&["unknown endpoint", "unknown path", "invalid url"]);
    if of_route || !dialect.generates() {
        RefusalKind::UnknownRoute
    } else {
        RefusalKind::Other
    }
}

const CONTEXT_KINDS: &[&str] = &["exceed_context_size_error", "context_length_exceeded"];
const CONTEXT_WORDS: &[&str] = &[
    "context length",
    "context size",
    "context window",
    "maximum context",
    "n_ctx",
    "maximum model length",
    "max_model_len",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input too long",
    "too many tokens",
    "maximum allowed number of output tokens",
];
const MEMORY_KINDS: &[&str] = &["out_of_memory"];
const MEMORY_WORDS: &[&str] = &[
    "gpu memory but only",
    "out of memory",
    "insufficient memory",
    "not enough memory",
];
const MODEL_KINDS: &[&str] = &["model_not_found", "model_not_loaded", "no_model"];
const MODEL_MISSING: &[&str] = &[
    "not found",
    "does not exist",
    "not exist",
    "not loaded",
    "is not available",
    "no such",
    "unknown model",
    "invalid model",
];
const AUTH_KINDS: &[&str] = &[
    "authentication_error",
    "permission_error",
    "invalid_api_key",
];
const SHAPE_WORDS: &[&str] = &[
    "role",
    "system message",
    "unexpected",
    "unsupported",
    "not supported",
    "unknown field",
    "unrecognized",
    "invalid type",
    "field required",
    "missing required",
    "extra inputs",
    "additional properties",
    "must be ",
    "expected ",
    "failed to parse",
    "chat template",
    "jinja",
    "json",
];

/// What a server said, in small letters.
#[derive(Default)]
struct Said {
    kind: String,
    message: String,
    names_field: bool,
}

impl Said {
    fn new(error: &ErrorDetail) -> Self {
        Self {
            kind: error.kind.as_deref().unwrap_or_default().to_lowercase(),
            message: error.message.to_lowercase(),
            names_field: error.field.is_some(),
        }
    }

    fn is_kind(&self, kinds: &[&str]) -> bool {
        kinds.contains(&self.kind.as_str())
    }

    fn has(&self, message: &[&str]) -> bool {
        message.iter().any(|word| self.message.contains(word))
    }

    /// Whether prompt and output fit.
    fn of_size(&self) -> Option<RefusalKind> {
        if self.is_kind(MEMORY_KINDS) || self.has(MEMORY_WORDS) {
            Some(RefusalKind::OutOfMemory)
        } else if self.is_kind(CONTEXT_KINDS) || self.has(CONTEXT_WORDS) {
            Some(RefusalKind::ContextTooSmall)
        } else {
            None
        }
    }

    fn of_model(&self) -> Option<RefusalKind> {
        let missing = self.message.contains("model") && self.has(MODEL_MISSING);
        (missing || self.is_kind(MODEL_KINDS)).then_some(RefusalKind::UnknownModel)
    }

    fn of_shape(&self) -> Option<RefusalKind> {
        self.has(SHAPE_WORDS).then_some(RefusalKind::RequestShape)
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::{end_of_status, error};

    fn refused(status: u16, body: &str, dialect: Dialect) -> Option<RefusalKind> {
        let status = StatusCode::from_u16(status).unwrap();
        kind(&Ended {
            dialect,
            outcome: end_of_status(status),
            status: Some(status.as_u16()),
            error: Some(&error::from_answer(body.as_bytes(), status)),
        })
    }

    #[test]
    fn the_words_of_real_servers_are_understood() {
        use RefusalKind::*;
        for (server, status, body, want) in [
            (
                "llama.cpp",
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":12000,"n_ctx":8192}}"#,
                ContextTooSmall,
            ),
            (
                "vLLM",
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 40000 tokens (8000 in the messages, 32000 in the completion).","type":"BadRequestError","param":null,"code":400}}"#,
                ContextTooSmall,
            ),
            (
                "vLLM",
                400,
                r#"{"object":"error","message":"'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 8192 tokens and your request has 100 input tokens","type":"BadRequestError","param":"max_tokens","code":400}"#,
                ContextTooSmall,
            ),
            (
                "vLLM",
                400,
                r#"{"error":{"message":"The decoder prompt (length 9000) is longer than the maximum model length of 8192.","type":"BadRequestError","code":400}}"#,
                ContextTooSmall,
            ),
            (
                "mlx-serve",
                400,
                r#"{"error":{"message":"Prompt exceeds maximum context length: 40000 tokens requested, 8192 available","type":"invalid_request_error"}}"#,
                ContextTooSmall,
            ),
            (
                "mlx-serve",
                400,
                r#"{"error":{"message":"Prompt (40000 tokens) requires ~9000MB GPU memory but only ~4000MB available","type":"invalid_request_error"}}"#,
                OutOfMemory,
            ),
            (
                "mlx-serve",
                503,
                r#"{"error":{"message":"the device has none left","type":"out_of_memory"}}"#,
                OutOfMemory,
            ),
            (
                "mlx-serve",
                503,
                r#"{"error":{"message":"load it first","type":"model_not_loaded"}}"#,
                UnknownModel,
            ),
            (
                "mlx-serve",
                503,
                r#"{"error":{"message":"shutting down","type":"shutting_down"}}"#,
                TooMany,
            ),
            (
                "anthropic",
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
                ContextTooSmall,
            ),
            (
                "anthropic",
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.role: Input should be 'user' or 'assistant'"}}"#,
                RequestShape,
            ),
            (
                "llama.cpp",
                400,
                r#"{"error":{"code":400,"message":"System message must be at the beginning.","type":"invalid_request_error"}}"#,
                RequestShape,
            ),
            (
                "vLLM",
                422,
                r#"{"detail":[{"type":"missing","loc":["body","messages",0,"content"],"msg":"Field required"}]}"#,
                RequestShape,
            ),
            (
                "vLLM",
                400,
                r#"{"error":{"message":"bad value","type":"BadRequestError","param":"tools.0","code":400}}"#,
                RequestShape,
            ),
            (
                "llama.cpp",
                401,
                r#"{"error":{"code":401,"message":"Invalid API Key","type":"authentication_error"}}"#,
                Auth,
            ),
            ("vLLM", 401, r#"{"error":"Unauthorized"}"#, Auth),
            (
                "vLLM",
                404,
                r#"{"error":{"message":"The model `claude-opus` does not exist.","type":"NotFoundError","param":"model","code":404}}"#,
                UnknownModel,
            ),
            (
                "ollama",
                404,
                r#"{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error"}}"#,
                UnknownModel,
            ),
            (
                "llama.cpp",
                404,
                r#"{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}"#,
                UnknownRoute,
            ),
            ("vLLM", 404, r#"{"detail":"Not Found"}"#, UnknownRoute),
            ("mlx-lm", 404, "Not Found", UnknownRoute),
            (
                "mlx-lm",
                404,
                r#"{"error":"Unexpected message role: developer"}"#,
                RequestShape,
            ),
            (
                "mlx-lm",
                404,
                r#"{"error":"list index out of range"}"#,
                Other,
            ),
            ("any", 404, "", UnknownRoute),
            (
                "any",
                405,
                r#"{"detail":"Method Not Allowed"}"#,
                UnknownRoute,
            ),
            ("any", 413, "", ContextTooSmall),
            (
                "any",
                429,
                r#"{"error":{"message":"Rate limit reached","type":"rate_limit_error"}}"#,
                TooMany,
            ),
            (
                "any",
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                TooMany,
            ),
            ("any", 503, "", TooMany),
            ("any", 418, "I am a teapot", Other),
        ] {
            let found = refused(status, body, Dialect::OpenaiChat);
            assert_eq!(found, Some(want), "{server} {status} {body}");
        }
    }

    #[test]
    fn a_404_of_a_probe_is_an_unknown_route_whatever_its_words() {
        let message = r#"{"error":"nothing here"}"#;
        assert_eq!(
            refused(404, message, Dialect::AnthropicCountTokens),
            Some(RefusalKind::UnknownRoute)
        );
        assert_eq!(
            refused(404, message, Dialect::OpenaiChat),
            Some(RefusalKind::Other)
        );
    }

    #[test]
    fn a_failure_is_a_refusal_only_when_it_is_of_size() {
        let full = r#"{"error":{"code":500,"message":"Context size has been exceeded."}}"#;
        assert_eq!(
            refused(500, full, Dialect::OpenaiChat),
            Some(RefusalKind::ContextTooSmall)
        );
        let boom = r#"{"error":{"code":500,"message":"boom"}}"#;
        assert_eq!(refused(500, boom, Dialect::OpenaiChat), None);
    }
}
