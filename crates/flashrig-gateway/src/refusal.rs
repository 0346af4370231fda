//! Why a request got no answer from the server: the reason, its status and its names in the
//! dialects' errors and in the record.

use hyper::StatusCode;

use flashrig_http::SendError;
use flashrig_record::{ErrorDetail, Outcome, PROMPT_TOO_LONG, REDIRECTED};

/// Why the gateway answers in the server's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The client did not present the session's token.
    Unauthorized,
    /// A web page made the request, or it is for another host.
    Forbidden,
    /// The request is not proper HTTP.
    BadRequest,
    /// The request's head did not come to its end.
    SlowHead,
    /// The request's body did not come to its end.
    SlowBody,
    /// Too much is going on at the gateway.
    Busy,
    /// A method that only proxies understand.
    NotAProxy,
    /// The body is above the limit.
    TooLarge,
    /// The prompt is above the limit.
    PromptTooLong,
    /// No connection to the server, or none that can be trusted.
    Unreachable,
    /// The server points elsewhere; a client that follows would go round the gateway.
    Redirected,
    /// The connection gave no answer.
    NoAnswer,
    /// The server was silent for longer than the time limit.
    Silent,
}

impl Reason {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::BadRequest | Self::PromptTooLong => StatusCode::BAD_REQUEST,
            Self::SlowHead | Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::NotAProxy => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unreachable | Self::Redirected | Self::NoAnswer => StatusCode::BAD_GATEWAY,
            Self::Silent => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    pub(super) fn anthropic_type(self) -> &'static str {
        match self {
            Self::Unauthorized => "authentication_error",
            Self::Forbidden => "permission_error",
            Self::BadRequest
            | Self::SlowHead
            | Self::SlowBody
            | Self::NotAProxy
            | Self::PromptTooLong => "invalid_request_error",
            Self::Busy => "overloaded_error",
            Self::TooLarge => "request_too_large",
            Self::Unreachable | Self::Redirected | Self::NoAnswer => "api_error",
            Self::Silent => "timeout_error",
        }
    }

    pub(super) fn openai_type(self) -> &'static str {
        match self {
            Self::Unauthorized
            | Self::Forbidden
            | Self::BadRequest
            | Self::SlowHead
            | Self::SlowBody
            | Self::NotAProxy
            | Self::TooLarge
            | Self::PromptTooLong => "invalid_request_error",
            Self::Busy | Self::Unreachable | Self::Redirected | Self::NoAnswer | Self::Silent => {
                "server_error"
            }
        }
    }

    /// The kind under which the attempt's record files the fault.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Unauthorized => "invalid_api_key",
            Self::Forbidden => "web_page_or_other_host",
            Self::BadRequest => "malformed_request",
            Self::SlowHead => "slow_head",
            Self::SlowBody => "slow_body",
            Self::Busy => "gateway_busy",
            Self::NotAProxy => "not_a_proxy",
            Self::TooLarge => "request_too_large",
            Self::PromptTooLong => PROMPT_TOO_LONG,
            Self::Unreachable => "server_unreachable",
            Self::Redirected => REDIRECTED,
            Self::NoAnswer => "no_http_answer",
            Self::Silent => "time_limit",
        }
    }

    /// The fault as the attempt's record has it.
    pub(super) fn error(self, message: &str) -> ErrorDetail {
        ErrorDetail {
            kind: Some(self.code().to_owned()),
            message: message.to_owned(),
            field: None,
        }
    }
}

/// An attempt that the gateway turns away, or that brought no answer.
pub(super) struct Refusal {
    pub(super) reason: Reason,
    pub(super) message: String,
    pub(super) end: Outcome,
}

impl Refusal {
    pub(super) fn rejected(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            end: Outcome::RejectedByGateway,
        }
    }
}

impl From<SendError> for Refusal {
    fn from(error: SendError) -> Self {
        let (reason, end) = match error {
            SendError::Unreachable { .. } | SendError::Tls { .. } => {
                (Reason::Unreachable, Outcome::Unreachable)
            }
            SendError::Redirected(_) => (Reason::Redirected, Outcome::UpstreamError),
            SendError::NoAnswer(_) => (Reason::NoAnswer, Outcome::UpstreamError),
            SendError::Silent(_) => (Reason::Silent, Outcome::Stalled),
        };
        Self {
            reason,
            message: error.to_string(),
            end,
        }
    }
}
