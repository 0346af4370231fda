//! What must hold for every answer, however hostile and however cut: one function, run by the
//! property tests and by the fuzz target.

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

use super::{Close, Facts, ResponseReader};
use crate::{Dialect, Outcome};
use std::time::Duration;

/// The dialects whose answers are read.
pub(crate) const DIALECTS: [Dialect; 3] = [
    Dialect::AnthropicMessages,
    Dialect::OpenaiChat,
    Dialect::OpenaiResponses,
];

/// Reads an answer that arrives in these chunks, all at the same instant.
pub(crate) fn read<'a>(
    dialect: Dialect,
    status: StatusCode,
    headers: &HeaderMap,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Facts, Outcome) {
    let mut watch = ResponseReader::new(dialect, true, status, headers);
    for chunk in chunks {
        watch.bytes(chunk, Duration::from_nanos(0));
    }
    let end = watch.close(Close::Clean, Duration::from_nanos(0));
    (watch.facts().clone(), end)
}

/// Reads `answer` whole, byte by byte and in chunks of the lengths in `cuts`, in every dialect,
/// streamed, plain and as an error. Panics when any two readings differ.
pub fn any_chunking(answer: &[u8], cuts: &[u8]) {
    let mut lengths = cuts.iter().map(|cut| usize::from(*cut).max(1)).cycle();
    let mut rest = answer;
    let mut chunks = Vec::new();
    while !rest.is_empty() {
        let length = lengths.next().unwrap_or(rest.len()).min(rest.len());
        let (chunk, tail) = rest.split_at(length);
        chunks.push(chunk);
        rest = tail;
    }
    for (status, content_type) in [
        (StatusCode::OK, "text/event-stream"),
        (StatusCode::OK, "application/json"),
        (StatusCode::BAD_REQUEST, "application/json"),
    ] {
        let headers =
            HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(content_type))]);
        for dialect in DIALECTS {
            let whole = read(dialect, status, &headers, [answer]);
            let bytes = read(dialect, status, &headers, answer.chunks(1));
            assert_eq!(bytes, whole, "{dialect:?} {content_type}: byte by byte");
            let cut = read(dialect, status, &headers, chunks.iter().copied());
            assert_eq!(cut, whole, "{dialect:?} {content_type}: in chunks");
        }
    }
}
