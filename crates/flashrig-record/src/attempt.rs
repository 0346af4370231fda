//! One HTTP attempt, as the gateway saw it: a line of `requests.jsonl`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PrefixFact;
use flashrig_clock::{Seconds, Stamp};
use llm_observe::refusal;
use llm_observe::{Dialect, ErrorDetail, Facts, Oddity, Outcome, RefusalKind, ToolCall};

/// What a request is to its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The agent's own thread.
    Main,
    /// Another thread with tools beside or below the main one.
    SubAgent,
    /// A short helper beside it: title, summary, check.
    Side,
    /// Connectivity, model list and token counting.
    Probe,
}

/// Instants of one attempt, in seconds since the start of the run, taken on the monotonic clock
/// at the gateway. `None` where the attempt never got that far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clocks {
    /// The request's head was read.
    pub head_s: Seconds,
    /// The request's body was read to its end.
    pub body_s: Option<Seconds>,
    /// The gate let the request through (equal to `body_s` or `head_s` when there is no gate).
    pub permit_s: Option<Seconds>,
    /// A connection to the server was there.
    pub connected_s: Option<Seconds>,
    /// The request was handed to that connection.
    pub sent_s: Option<Seconds>,
    /// The response head arrived.
    pub response_head_s: Option<Seconds>,
    /// The first byte of the response body arrived.
    pub first_byte_s: Option<Seconds>,
    /// The first generated token of any kind: text, reasoning or tool arguments.
    /// Role-only frames, empty deltas and keep-alive comments are not tokens.
    pub first_token_s: Option<Seconds>,
    /// The first visible text.
    pub first_text_s: Option<Seconds>,
    /// The last generated token.
    pub last_token_s: Option<Seconds>,
    /// The end of the response body, or of the attempt.
    pub end_s: Seconds,
}

/// The kind of a refusal by the gateway because the prompt is above `--max-prompt`.
pub const PROMPT_TOO_LONG: &str = "context_length_exceeded";
/// The kind of the error of an attempt that the server redirected, which is never followed.
pub const REDIRECTED: &str = "redirected";

/// Which of the waiting requests the gate lets in next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateOrder {
    /// Who came first.
    #[default]
    Fifo,
    /// Side requests before main ones.
    SideFirst,
    /// The smallest request body.
    ShortestFirst,
}

impl GateOrder {
    /// The order as it is typed and read.
    pub fn label(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::SideFirst => "side-first",
            Self::ShortestFirst => "shortest-first",
        }
    }
}

/// What a request found at the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateFact {
    /// Requests of all sessions that were let in when it came.
    pub let_in: u32,
    /// Requests of all sessions in line before it when it came.
    pub in_line: u32,
    /// Later requests that were let in before it.
    pub overtaken: u32,
}

/// What flashrig's gateway answered in the server's place, because it was told to answer probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum OwnAnswer {
    /// That somebody is there.
    Greeting,
    /// The served model, or that another one is not served.
    Models,
    /// The length of a prompt, estimated from its bytes: not the server's count.
    TokenEstimate {
        /// The tokens that the client was told.
        tokens: u64,
    },
}

/// One attempt. A retry is an attempt of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// Counts attempts of one session and arm from 1, in order of arrival.
    pub number: u32,
    /// HTTP method; empty when the head could not be read.
    pub method: String,
    /// Path without query; empty when the head could not be read.
    pub path: String,
    /// Protocol.
    pub dialect: Dialect,
    /// What the request is to its session. May be settled only at the session's end.
    pub role: Role,
    /// Model name asked for.
    pub model: Option<String>,
    /// Model name in the answer; `None` when it names none.
    #[serde(default)]
    pub answered_model: Option<String>,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// Number of tools offered in the request.
    pub tools: Option<u32>,
    /// Number of messages (or input items) in the request.
    pub messages: Option<u32>,
    /// The output limit asked for, in tokens.
    pub max_tokens: Option<u64>,
    /// HTTP status sent to the client; `None` when the client left before one.
    pub status: Option<u16>,
    /// How it ended.
    #[serde(rename = "end", alias = "outcome")]
    pub outcome: Outcome,
    /// What went wrong.
    pub error: Option<ErrorDetail>,
    /// Why the server turned it down, when it did.
    #[serde(default)]
    pub refusal: Option<RefusalKind>,
    /// Why the model stopped, as the server put it.
    pub stop_reason: Option<String>,
    /// Body bytes received from the client.
    pub request_bytes: u64,
    /// Body bytes sent to the client.
    pub response_bytes: u64,
    /// Prompt tokens, cached ones included, from the server's usage.
    pub input_tokens: Option<u64>,
    /// Prompt tokens that the server says came from its cache.
    pub cached_tokens: Option<u64>,
    /// Generated tokens, reasoning included.
    pub output_tokens: Option<u64>,
    /// Those of them that are reasoning, when the server tells.
    #[serde(default)]
    pub reasoning_tokens: Option<u64>,
    /// How long the server says that it read the prompt, waiting left out (llama.cpp's `timings`).
    #[serde(default)]
    pub server_prompt_s: Option<Seconds>,
    /// How long the server says that it generated.
    #[serde(default)]
    pub server_decode_s: Option<Seconds>,
    /// Content events (frames that carried generated tokens).
    pub content_events: u64,
    /// The longest time between two content events.
    pub longest_gap_s: Option<Seconds>,
    /// Microseconds from each content event to the next, the first from `first_token_s`: the
    /// arrivals of all tokens. One of 71 minutes or more stands as 4294967295.
    #[serde(default)]
    pub event_gaps_us: Vec<u32>,
    /// Whether there were more gaps than the 65536 that are kept.
    #[serde(default)]
    pub event_gaps_cut: bool,
    /// The tool calls of the answer, at most 64.
    #[serde(default)]
    pub tool_calls: Vec<ToolCall>,
    /// What is odd about the answer though clients may bear it, e.g. `tool_call_empty_id`.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub oddities: Vec<Oddity>,
    /// Required fields that the stream lacked, e.g. `message_start.message.usage`.
    pub missing_fields: Vec<String>,
    /// SHA-256 of the body as the client sent it, hexadecimal, first 16 characters; `None` when
    /// there was no body or it was not read whole.
    pub body_hash: Option<String>,
    /// The number of the session's first attempt with the same body, when this is not it.
    pub repeats: Option<u32>,
    /// Whether another attempt with the same body was still in flight when this one came.
    #[serde(default)]
    pub repeats_open: bool,
    /// Whether the gateway changed the body (a cold-cache nonce).
    pub body_changed: bool,
    /// What the gateway answered itself; `null` when the request was the server's to answer.
    #[serde(default)]
    pub answered_by_gateway: Option<OwnAnswer>,
    /// What it found at the gate; `null` when there was none or the request is not for it.
    #[serde(default)]
    pub gate: Option<GateFact>,
    /// The thread that it belongs to, from 1 in order of arrival; `null` when it is in none, as
    /// probes are, or when its body could not be read.
    pub thread: Option<u32>,
    /// Its prompt beside the one before it in its thread; `null` for the first.
    pub prefix: Option<PrefixFact>,
    /// The instants.
    pub clocks: Clocks,
}

/// So many content events at least are a burst, when they come at once.
const BURST_EVENTS: u64 = 16;
/// Seconds that they may take from the first to the last.
const BURST_SPAN_S: f64 = 0.02;
/// Seconds before the first of them, at least.
const BURST_WAIT_S: f64 = 0.2;

impl Attempt {
    /// A row of which nothing else is known yet. Until it is closed the client has left.
    pub fn begun(dialect: Dialect, role: Role) -> Self {
        Self {
            number: 0,
            method: String::new(),
            path: String::new(),
            dialect,
            role,
            model: None,
            answered_model: None,
            stream: false,
            tools: None,
            messages: None,
            max_tokens: None,
            status: None,
            outcome: Outcome::ClientAborted,
            error: None,
            refusal: None,
            stop_reason: None,
            request_bytes: 0,
            response_bytes: 0,
            input_tokens: None,
            cached_tokens: None,
            output_tokens: None,
            reasoning_tokens: None,
            server_prompt_s: None,
            server_decode_s: None,
            content_events: 0,
            longest_gap_s: None,
            event_gaps_us: Vec::new(),
            event_gaps_cut: false,
            tool_calls: Vec::new(),
            oddities: Vec::new(),
            missing_fields: Vec::new(),
            body_hash: None,
            repeats: None,
            repeats_open: false,
            body_changed: false,
            answered_by_gateway: None,
            gate: None,
            thread: None,
            prefix: None,
            clocks: Clocks::default(),
        }
    }

    /// Takes over what was read of the answer. `at` turns a reading of the clock into the row's
    /// seconds.
    pub fn observed(&mut self, facts: &Facts, at: impl Fn(Stamp) -> Seconds) {
        let at = |reading| at(Stamp::from_reading(reading));
        self.clocks.first_token_s = facts.first_token.map(&at);
        self.clocks.first_text_s = facts.first_text.map(&at);
        self.clocks.last_token_s = facts.last_token.map(&at);
        self.content_events = facts.content_events;
        self.longest_gap_s = facts.longest_gap.map(Seconds::from);
        self.input_tokens = facts.input_tokens;
        self.cached_tokens = facts.cached_tokens;
        self.output_tokens = facts.output_tokens;
        self.reasoning_tokens = facts.reasoning_tokens;
        self.answered_model.clone_from(&facts.model);
        self.server_prompt_s = facts.server_prompt.map(Seconds::from);
        self.server_decode_s = facts.server_decode.map(Seconds::from);
        self.event_gaps_us.clone_from(&facts.event_gaps_us);
        self.event_gaps_cut = facts.event_gaps_cut;
        self.tool_calls.clone_from(&facts.tool_calls);
        self.oddities = facts.oddities().to_vec();
        if self.is_burst() {
            self.oddities.push(Oddity::AnswerBurst);
        }
        self.stop_reason.clone_from(&facts.stop_reason);
        self.missing_fields.clone_from(&facts.missing_fields);
    }

    /// Whether many content events came at once after a long wait, so that neither the first token's
    /// time nor the speed of decoding can be known (case M3).
    fn is_burst(&self) -> bool {
        let clocks = &self.clocks;
        let at_once = || {
            let (first, last) = (clocks.first_token_s?.0, clocks.last_token_s?.0);
            let waited = first - clocks.sent_s?.0;
            Some(waited >= BURST_WAIT_S && last - first < BURST_SPAN_S)
        };
        self.content_events >= BURST_EVENTS && at_once() == Some(true)
    }

    /// Why the server turned it down; `None` when it did not.
    pub fn refusal_kind(&self) -> Option<RefusalKind> {
        refusal::kind(&refusal::Ended {
            dialect: self.dialect,
            outcome: self.outcome,
            status: self.status,
            error: self.error.as_ref(),
        })
    }

    /// Where the server's redirect pointed to, in words; `None` when there was no redirect.
    pub fn redirect(&self) -> Option<&str> {
        let error = self.error.as_ref()?;
        (error.kind.as_deref() == Some(REDIRECTED)).then_some(error.message.as_str())
    }

    /// Whether the gateway refused it because its prompt was above `--max-prompt`.
    pub fn is_long_prompt(&self) -> bool {
        let kind = self.error.as_ref().and_then(|e| e.kind.as_deref());
        self.outcome == Outcome::RejectedByGateway && kind == Some(PROMPT_TOO_LONG)
    }
}

/// A line of `requests.jsonl`: an attempt, and whose it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestLine {
    /// Round, from 1; 0 is the unscored warm-up.
    pub round: u32,
    /// Arm.
    pub arm: String,
    /// Session name.
    pub session: String,
    /// Which attempt at measuring its combination it is of, from 1: one that was broken off is
    /// measured again by a resumed run.
    #[serde(default = "first")]
    pub cell_attempt: u32,
    /// The attempt.
    #[serde(flatten)]
    pub attempt: Attempt,
}

/// Files of flashrig 0.1.0 lack the number.
fn first() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(sent: f64, first: f64, last: f64, events: u64) -> Attempt {
        let mut attempt = Attempt::begun(Dialect::OpenaiChat, Role::Main);
        attempt.content_events = events;
        attempt.clocks.sent_s = Some(Seconds(sent));
        attempt.clocks.first_token_s = Some(Seconds(first));
        attempt.clocks.last_token_s = Some(Seconds(last));
        attempt
    }

    #[test]
    fn many_events_at_once_after_a_long_wait_are_a_burst_and_a_steady_stream_is_not() {
        assert!(answered(1.0, 5.0, 5.001, 80).is_burst());
        assert!(!answered(1.0, 5.0, 5.8, 80).is_burst(), "10 ms an event");
        assert!(!answered(1.0, 1.05, 1.051, 80).is_burst(), "no wait");
        assert!(!answered(1.0, 5.0, 5.0, 2).is_burst(), "too few to tell");
    }
}
