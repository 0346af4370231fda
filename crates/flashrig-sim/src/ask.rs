//! A request, whichever dialect it came in: what the brain reads and the cache hashes.

use serde_json::Value;

/// A generation request in neutral form.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Model name asked for.
    pub model: String,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Limit of generated tokens.
    pub max_tokens: Option<u64>,
    /// Generated tokens at least; `u64::MAX` when the model's end mark is to be ignored.
    pub min_tokens: u64,
    /// System text that stands before the conversation.
    pub system: String,
    /// Tools offered.
    pub tools: Vec<ToolOffer>,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// JSON Schema that the answer must follow, for structured output.
    pub answer_schema: Option<Value>,
    /// OpenAI: whether the stream ends with a usage chunk.
    pub include_usage: bool,
}

/// A tool as the request describes it.
#[derive(Clone, Debug)]
pub struct ToolOffer {
    /// Name to call it by.
    pub name: String,
    /// Description, for the size of the prompt only.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Value,
    /// Whether it can be called now: its schema is not withheld, and calls are not forbidden.
    pub callable: bool,
}

impl ToolOffer {
    /// Schema of one argument.
    pub fn property(&self, name: &str) -> Option<&Value> {
        self.schema.get("properties")?.get(name)
    }

    /// The first of `names` that is an argument of this tool.
    pub fn first_property<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        names
            .iter()
            .copied()
            .find(|name| self.property(name).is_some())
    }

    /// Names of the arguments that must be given.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        self.schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    }
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The client's instructions.
    System,
    /// The user, and tool results in the Anthropic dialect.
    User,
    /// The model.
    Assistant,
    /// Tool results in the OpenAI dialect.
    Tool,
}

/// One message.
#[derive(Clone, Debug)]
pub struct Message {
    /// Who speaks.
    pub speaker: Speaker,
    /// What is said, in order.
    pub parts: Vec<Part>,
}

/// A part of a message.
#[derive(Clone, Debug)]
pub enum Part {
    /// Text.
    Text(String),
    /// A tool call of the model.
    Call(ToolCall),
    /// What came of a tool call.
    Result(ToolResult),
    /// Anything else (images, reasoning, references); counted, not understood.
    Other(String),
}

/// A tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The id that its result will name.
    pub id: String,
    /// Tool name.
    pub name: String,
    /// Arguments as JSON text.
    pub arguments: String,
}

/// What came of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// Id of the call.
    pub call: String,
    /// Text of the result.
    pub text: String,
    /// Whether the client marked it as an error; `None` when the dialect has no such mark.
    pub is_error: Option<bool>,
}

impl Ask {
    /// The prompt as one text, in the order in which chat templates render it: system, tools,
    /// messages. Requests with the same beginning give texts with the same beginning.
    pub fn canonical(&self) -> String {
        let texts = self.messages.iter().flat_map(|m| &m.parts).map(|part| {
            if let Part::Text(text) = part {
                text.len()
            } else {
                64
            }
        });
        // Whole at once: a megabyte that grows is copied several times.
        let size = texts.sum::<usize>() + self.system.len() + 16 * 1024;
        let mut out = String::with_capacity(size);
        out.push_str("<|system|>");
        out.push_str(&self.system);
        for tool in &self.tools {
            out.push_str("<|tool|>");
            out.push_str(&tool.name);
            out.push(' ');
            out.push_str(&tool.description);
            out.push(' ');
            out.push_str(&tool.schema.to_string());
        }
        for message in &self.messages {
            render_message(message, &mut out);
        }
        out
    }
}

/// Appends one message to a canonical prompt.
pub fn render_message(message: &Message, out: &mut String) {
    out.push_str(match message.speaker {
        Speaker::System => "<|system|>",
        Speaker::User => "<|user|>",
        Speaker::Assistant => "<|assistant|>",
        Speaker::Tool => "<|result|>",
    });
    for part in &message.parts {
        match part {
            Part::Text(text) | Part::Other(text) => out.push_str(text),
            // Ids are the transport's business; no chat template shows them to the model.
            Part::Call(call) => {
                out.push_str("<|call|>");
                out.push_str(&call.name);
                out.push(' ');
                out.push_str(&call.arguments);
            }
            Part::Result(result) => {
                out.push_str("<|result|>");
                out.push_str(&result.text);
            }
        }
    }
}

/// A request that cannot be served, before any dialect has worded it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The body is not JSON.
    #[error("the request body is not valid json: {0}")]
    NotJson(String),
    /// A field is missing or of the wrong form.
    #[error("{field}: {problem}")]
    Field {
        /// The field, as a path.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A model that is not served.
    #[error("model '{asked}' not found; this server serves '{served}'")]
    UnknownModel {
        /// Name asked for.
        asked: String,
        /// Name served.
        served: String,
    },
    /// The prompt does not fit.
    #[error("prompt is too long: {prompt_tokens} tokens > {context} maximum")]
    TooLong {
        /// Size of the prompt, in tokens.
        prompt_tokens: u64,
        /// Size of the context, in tokens.
        context: u64,
    },
    /// The shape of the request is refused, as configured.
    #[error("{field}: this server does not accept {what}")]
    Shape {
        /// The field.
        field: &'static str,
        /// What is not accepted.
        what: &'static str,
    },
    /// There is not enough memory for it; the text is that of mlx-serve.
    #[error(
        "Prompt ({prompt_tokens} tokens) requires ~{needed_mb}MB GPU memory but only ~{available_mb}MB available"
    )]
    Memory {
        /// Size of the prompt, in tokens.
        prompt_tokens: u64,
        /// Memory that it needs.
        needed_mb: u64,
        /// Memory that there is.
        available_mb: u64,
        /// Whether the server says that it is out of memory, rather than that the request is bad.
        unavailable: bool,
    },
    /// Too many requests at once.
    #[error("the server is overloaded: {in_flight} requests in flight; try again later")]
    Overloaded {
        /// Requests queued or running.
        in_flight: u64,
    },
    /// The server is stopping.
    #[error("the server is shutting down")]
    Stopping,
    /// The body is larger than the server reads.
    #[error("the request body is larger than {limit_bytes} bytes")]
    BodyTooLarge {
        /// Limit in bytes.
        limit_bytes: usize,
    },
}

impl AskError {
    /// A field with something wrong.
    pub fn field(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Field {
            field: field.into(),
            problem: problem.into(),
        }
    }

    /// HTTP status common to both dialects; overload differs and is each dialect's own.
    pub fn status(&self) -> u16 {
        match self {
            Self::Memory {
                unavailable: true, ..
            } => 503,
            Self::NotJson(_)
            | Self::Field { .. }
            | Self::TooLong { .. }
            | Self::Shape { .. }
            | Self::Memory { .. } => 400,
            Self::UnknownModel { .. } => 404,
            Self::BodyTooLarge { .. } => 413,
            Self::Overloaded { .. } | Self::Stopping => 503,
        }
    }
}

/// Tokens that must be generated at least, by the fields that vLLM and llama.cpp know.
pub fn min_tokens(body: &Value) -> u64 {
    if body["ignore_eos"].as_bool() == Some(true) {
        return u64::MAX;
    }
    body["min_tokens"].as_u64().unwrap_or(0)
}
