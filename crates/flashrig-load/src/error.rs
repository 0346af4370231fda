//! Why a server cannot be measured with synthetic sessions.

/// Why a server cannot be measured. The words say what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Nobody there.
    #[error("{0}")]
    Unreachable(String),
    /// A web page instead of a model.
    #[error(
        "{path} answers with an HTML page, so this is hardly an LLM server: {message}; give the \
         server's API address, not that of its web interface"
    )]
    Html {
        /// The route.
        path: &'static str,
        /// The beginning of what it says.
        message: String,
    },
    /// Neither dialect is there.
    #[error(
        "the server speaks neither OpenAI chat completions ({openai}) nor Anthropic messages \
         ({anthropic}); put a translating proxy before it"
    )]
    NoDialect {
        /// What it said to the one.
        openai: String,
        /// What it said to the other.
        anthropic: String,
    },
    /// The answer came in one piece.
    #[error(
        "the server does not stream: it answered {path} in one piece though a stream was asked \
         for, so no first token can be timed; switch streaming on in the server"
    )]
    NotStreamed {
        /// The route.
        path: &'static str,
    },
    /// No token counts.
    #[error(
        "the server tells no usage at the end of its streams on {path}, so prompts cannot be \
         brought to a size nor speeds be told; switch usage on in the server \
         (stream_options.include_usage was asked for)"
    )]
    NoUsage {
        /// The route.
        path: &'static str,
    },
    /// It accepts and generates nothing.
    #[error(
        "the server accepts requests to {path} and generates nothing ({message}); look into its log \
         and start it again, or give a longer --first-token-limit"
    )]
    Stalled {
        /// The route.
        path: &'static str,
        /// What was waited for.
        message: String,
    },
    /// Another model is served.
    #[error("the server does not serve the model {model:?}: {message}; choose one with --model")]
    UnknownModel {
        /// The model asked for.
        model: String,
        /// Its words.
        message: String,
    },
    /// The key.
    #[error(
        "the server does not let the request in ({message}); give it the right key with --key-env NAME, \
         or what else it asks for with --basic-env or --header-env"
    )]
    Auth {
        /// Its words.
        message: String,
    },
    /// Turned down otherwise.
    #[error("the server refused a short request to {path}: {message}")]
    Refused {
        /// The route.
        path: &'static str,
        /// Its words.
        message: String,
    },
    /// The request failed otherwise.
    #[error("a short request to {path} failed: {message}")]
    Failed {
        /// The route.
        path: &'static str,
        /// How it ended.
        message: String,
    },
    /// Its counts cannot be true.
    #[error(
        "the server's token counts cannot be used to size prompts: it counted {few} tokens for a \
         short prompt and {many} for one with {lines} more lines"
    )]
    Counts {
        /// Of the short prompt.
        few: u64,
        /// Of the long one.
        many: u64,
        /// How much longer it was.
        lines: u32,
    },
    /// The context leaves no room.
    #[error(
        "a context of {context_tokens} tokens is too small: the turns after the first need \
         {needed} of them; give a longer context, fewer --checks or fewer --answer-tokens"
    )]
    TooSmall {
        /// The context.
        context_tokens: u64,
        /// What the later turns need.
        needed: u64,
    },
}
