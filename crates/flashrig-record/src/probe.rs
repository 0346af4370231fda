//! What a probe learned of a server. Unknown is `null`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ContextSource, Dialect, Managed};
use flashrig_clock::Seconds;

/// Format of a probe and its version.
pub const PROBE_SCHEMA: &str = "flashrig.probe/1";

/// What `flashrig servers probe` prints with `--json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    /// Format and its version: `flashrig.probe/1`.
    pub schema: String,
    /// Profile name, or the address.
    pub name: String,
    /// Base address.
    pub url: String,
    /// Whether it is a simulated server.
    pub simulated: bool,
    /// Seconds of a simulated server's own time in a wall second; times are its own then.
    pub speed: Option<f64>,
    /// Version, in the server's words.
    pub version: Option<String>,
    /// `system_fingerprint` of an answer. Some servers put their version there, others a constant.
    pub fingerprint: Option<String>,
    /// The models that it lists.
    pub models: Option<Vec<String>>,
    /// The model that was asked for.
    pub model: Option<String>,
    /// Context length in tokens.
    pub context_tokens: Option<u64>,
    /// Who told it.
    pub context_source: ContextSource,
    /// Quantization of the model, in the server's words.
    #[serde(default)]
    pub quantization: Option<String>,
    /// Entries of its list of slots.
    pub slots: Option<u64>,
    /// How flashrig started it; `null` when somebody else did.
    #[serde(default)]
    pub managed: Option<Box<Managed>>,
    /// Routes that were looked at.
    pub endpoints: Vec<Endpoint>,
    /// Protocols that were tried.
    pub dialects: Vec<DialectTried>,
    /// Tokens that its counting route tells for the first small prompt.
    pub counted_tokens: Option<u64>,
    /// Whether that is what its usage says.
    pub counts_as_usage: Option<bool>,
    /// First-token times, of a small prompt and of one of about 2,000 tokens.
    pub first_tokens: Vec<FirstToken>,
    /// Metrics under common names.
    pub metrics: Vec<MetricFound>,
    /// Whether it generates.
    pub generates: Generates,
    /// The answer in words.
    pub answer: String,
    /// What else is to be known.
    pub remarks: Vec<String>,
}

/// A route that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Endpoint {
    /// Method and path.
    pub route: String,
    /// HTTP status; `null` when it gave none.
    pub status: Option<u16>,
    /// What that means.
    pub state: EndpointState,
    /// What it said, where it did not answer.
    #[serde(rename = "words")]
    pub message: Option<String>,
}

/// What became of a look at a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndpointState {
    /// It answers.
    Answers,
    /// There is no such route.
    Absent,
    /// It is there, and turns requests down.
    Refuses,
    /// A web page.
    Page,
    /// It accepts and does not answer.
    Silent,
    /// No connection, or no HTTP.
    Broken,
}

/// A protocol that was tried with a small streaming request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DialectTried {
    /// Protocol.
    pub dialect: Dialect,
    /// Whether a stream with tokens came; `null` when it was not tried.
    pub streams: Option<bool>,
    /// Why not.
    #[serde(rename = "words")]
    pub message: Option<String>,
    /// What came of a request that offered a tool; `null` when none was sent.
    pub tool: Option<ToolTried>,
    /// Whether the profile says that the server speaks it; `null` when it says nothing of that.
    pub in_profile: Option<bool>,
}

/// What came of offering a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ToolTried {
    /// The model called it.
    Called,
    /// The server took the offer and the model did not call it, as models may.
    NotCalled,
    /// The server turned the request down, or failed.
    Refused {
        /// What it said.
        #[serde(rename = "words")]
        message: String,
    },
}

/// The first-token time of one prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FirstToken {
    /// Tokens that it was to have; `null` for the small one.
    pub aimed_tokens: Option<u64>,
    /// Tokens of the prompt by the server's usage.
    pub prompt_tokens: Option<u64>,
    /// Those that the server says came from its cache.
    pub cached_tokens: Option<u64>,
    /// From sending to the first token.
    pub first_token_s: Option<Seconds>,
    /// Why there was none.
    #[serde(rename = "words")]
    pub message: Option<String>,
}

/// A metric under its common name.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Requests that are worked on.
    Running,
    /// Requests in line.
    Waiting,
    /// Prompt tokens since the start.
    PromptTokens,
    /// Generated tokens since the start.
    GeneratedTokens,
    /// Prompt tokens looked up in the cache since the start.
    CacheQueries,
    /// Prompt tokens found there.
    CacheHits,
    /// Memory in use, in bytes.
    MemoryBytes,
    /// The most of it since the start, in bytes.
    MemoryPeakBytes,
    /// Requests refused since the start.
    Refused,
}

impl Metric {
    /// The name as it is written and read.
    pub fn label(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::PromptTokens => "prompt_tokens",
            Self::GeneratedTokens => "generated_tokens",
            Self::CacheQueries => "cache_queries",
            Self::CacheHits => "cache_hits",
            Self::MemoryBytes => "memory_bytes",
            Self::MemoryPeakBytes => "memory_peak_bytes",
            Self::Refused => "refused",
        }
    }
}

/// A metric that the server tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricFound {
    /// Common name.
    pub metric: Metric,
    /// The server's name.
    pub name: String,
    /// Value, summed over labels.
    pub value: f64,
}

/// Whether a server generates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Generates {
    /// It streams tokens in at least one protocol.
    Yes,
    /// It accepts a request and no token comes within the limit.
    AcceptsOnly,
    /// It streams in none of the protocols.
    No,
    /// It was not tried.
    Unknown,
}
