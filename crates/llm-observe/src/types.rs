//! The facts that reading an answer gives: plain data.

#[cfg(feature = "schemars")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The protocol that a request speaks, told from its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// `POST /v1/messages`
    AnthropicMessages,
    /// `POST /v1/messages/count_tokens`
    AnthropicCountTokens,
    /// `POST /v1/chat/completions`
    OpenaiChat,
    /// `POST /v1/responses`
    OpenaiResponses,
    /// `GET /v1/models`, `GET /v1/models/NAME`
    Models,
    /// Anything else; passed through and listed by its path.
    Other,
}

impl Dialect {
    /// As people call it.
    pub fn label(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "Anthropic messages",
            Self::AnthropicCountTokens => "token counts",
            Self::OpenaiChat => "OpenAI chat",
            Self::OpenaiResponses => "OpenAI responses",
            Self::Models => "model lists",
            Self::Other => "other",
        }
    }

    /// Whether requests of this dialect make the model generate.
    pub fn generates(self) -> bool {
        match self {
            Self::AnthropicMessages | Self::OpenaiChat | Self::OpenaiResponses => true,
            Self::AnthropicCountTokens | Self::Models | Self::Other => false,
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The answer came whole: for a stream, with the dialect's own end mark.
    Complete,
    /// The stream closed before its end mark, or the body before its announced length.
    Truncated,
    /// No byte for longer than the time limit.
    Stalled,
    /// An error event after a 200.
    ErrorInStream,
    /// The client left before the end.
    ClientAborted,
    /// A 4xx answer other than those of `overloaded`.
    Refused,
    /// 429, 503 or 529.
    Overloaded,
    /// Another 5xx answer, or an answer that is not HTTP.
    UpstreamError,
    /// No connection to the server.
    Unreachable,
    /// Refused by the gateway itself: wrong token, malformed or oversize request.
    RejectedByGateway,
}

/// What the server said went wrong, in its own words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(JsonSchema))]
pub struct ErrorDetail {
    /// The server's error type or code, when it gave one.
    pub kind: Option<String>,
    /// The server's message, or the gateway's description of the fault.
    pub message: String,
    /// The field that the message blames, when it names one.
    pub field: Option<String>,
}

/// Why a request was turned down, told from the status and from the words of the servers that
/// people run. What to do differs by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// The prompt, or the prompt and the output asked for, exceed the server's context.
    ContextTooSmall,
    /// The prompt does not fit into the server's memory, whatever its context.
    OutOfMemory,
    /// The server does not accept the form of the request.
    RequestShape,
    /// The key is missing or wrong.
    Auth,
    /// The server does not serve this model.
    UnknownModel,
    /// The server has no such route, or not with this method.
    UnknownRoute,
    /// Too many requests at once, or in too short a time.
    TooMany,
    /// None of these.
    Other,
}

/// A tool call, put together from its fragments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(JsonSchema))]
pub struct ToolCall {
    /// The tool's name.
    pub name: Option<String>,
    /// The call's id.
    pub id: Option<String>,
    /// Bytes of arguments.
    pub argument_bytes: u64,
}
