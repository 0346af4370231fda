//! Reads a recorded stream and prints its TTFT, its gaps and its usage.
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use std::time::Duration;

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use llm_observe::{Close, Dialect, ResponseReader};

/// Milliseconds since the request was sent, and what was read from the socket then.
const RECORDED: [(u64, &str); 4] = [
    (
        180,
        "data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n",
    ),
    (
        205,
        "data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\" there\"},\"finish_reason\":\"stop\"}]}\n\n",
    ),
    (
        206,
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":2}}\n\n",
    ),
    (207, "data: [DONE]\n\n"),
];

fn main() {
    let mut headers = HeaderMap::new();
    let stream = HeaderValue::from_static("text/event-stream");
    headers.insert(CONTENT_TYPE, stream);
    let mut reader = ResponseReader::new(Dialect::OpenaiChat, true, StatusCode::OK, &headers);
    for (ms, bytes) in RECORDED {
        reader.bytes(bytes.as_bytes(), Duration::from_millis(ms));
    }
    let outcome = reader.close(Close::Clean, Duration::from_millis(207));
    let facts = reader.facts();
    println!("outcome        {outcome:?}");
    println!("TTFT           {:?}", facts.first_token);
    println!("gaps in us     {:?}", facts.event_gaps_us);
    println!("input tokens   {:?}", facts.input_tokens);
    println!("output tokens  {:?}", facts.output_tokens);
    println!("oddities       {:?}", facts.oddities());
}
