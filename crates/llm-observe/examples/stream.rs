//! Reads a streamed answer piece by piece, as it comes from the socket, with the time of each piece.

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use llm_observe::{Close, Dialect, Watch};

fn main() {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    let mut watch = Watch::new(Dialect::OpenaiChat, true, http::StatusCode::OK, &headers);
    let pieces = [
        (120, r#"data: {"choices":[{"delta":{"content":"Hel"}}]}"#),
        (145, r#"data: {"choices":[{"delta":{"content":"lo"}}]}"#),
        (
            150,
            r#"data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#,
        ),
        (151, "data: [DONE]"),
    ];
    for (milliseconds, piece) in pieces {
        let at = Duration::from_millis(milliseconds);
        watch.bytes(format!("{piece}\n\n").as_bytes(), at);
    }
    let outcome = watch.close(Close::Clean, Duration::from_millis(151));
    let facts = watch.facts();
    println!("outcome: {outcome:?}");
    println!("first token after {:?}", facts.first_token);
    println!(
        "tokens: {:?} in, {:?} out",
        facts.input_tokens, facts.output_tokens
    );
    // This server does not say how much came from its cache: unknown, not 0.
    println!("cached: {:?}", facts.cached_tokens);
}
