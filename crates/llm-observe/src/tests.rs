//! Any chunking, any encoding: the same facts.

use http::StatusCode;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use proptest::prelude::*;

use super::fuzz::{any_chunking, read};
use crate::{Dialect, Outcome};

/// `parts` compressed as one stream, each flushed by itself, the last with the stream's end.
pub(crate) fn compressed(encoding: &str, parts: &[&[u8]]) -> Vec<Vec<u8>> {
    fn each<W: std::io::Write>(
        mut encoder: W,
        parts: &[&[u8]],
        sent: impl Fn(&W) -> usize,
        finish: impl FnOnce(W) -> Vec<u8>,
    ) -> Vec<Vec<u8>> {
        let mut ends = Vec::new();
        for part in parts {
            encoder.write_all(part).unwrap();
            encoder.flush().unwrap();
            ends.push(sent(&encoder));
        }
        let bytes = finish(encoder);
        if let Some(last) = ends.last_mut() {
            *last = bytes.len();
        }
        let mut from = 0;
        let cut = ends.into_iter().map(|end| {
            let part = bytes[from..end].to_vec();
            from = end;
            part
        });
        cut.collect()
    }
    let level = flate2::Compression::default();
    let out = Vec::new;
    match encoding {
        "gzip" => each(
            flate2::write::GzEncoder::new(out(), level),
            parts,
            |encoder| encoder.get_ref().len(),
            |encoder| encoder.finish().unwrap(),
        ),
        "deflate" => each(
            flate2::write::ZlibEncoder::new(out(), level),
            parts,
            |encoder| encoder.get_ref().len(),
            |encoder| encoder.finish().unwrap(),
        ),
        "deflate-raw" => each(
            flate2::write::DeflateEncoder::new(out(), level),
            parts,
            |encoder| encoder.get_ref().len(),
            |encoder| encoder.finish().unwrap(),
        ),
        "br" => each(
            brotli::CompressorWriter::new(out(), 4096, 5, 20),
            parts,
            |encoder| encoder.get_ref().len(),
            brotli::CompressorWriter::into_inner,
        ),
        "zstd" => each(
            zstd::stream::write::Encoder::new(out(), 3).unwrap(),
            parts,
            |encoder| encoder.get_ref().len(),
            |encoder| encoder.finish().unwrap(),
        ),
        _ => parts.iter().map(|part| part.to_vec()).collect(),
    }
}

/// Frames of all dialects, whole and faulty.
const FRAMES: [&str; 22] = [
    r#"data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":10,"cache_read_input_tokens":90}}}"#,
    r#"data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"日本","input":{}}}"#,
    r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"ä\":1}"}}"#,
    r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}"#,
    r#"data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":42}}"#,
    r#"data: {"type":"message_stop"}"#,
    r#"data:{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
    r#"data:{"choices":[{"index":0,"delta":{"content":"日本"}}]}"#,
    r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"","function":{"name":"ls","arguments":"{"}}]}}]}"#,
    r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"arguments":"}"}}]}}]}"#,
    r#"data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"completion_tokens_details":{"reasoning_tokens":2}}}"#,
    r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
    "data: [DONE]",
    r#"data: {"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"ls"}}"#,
    r#"data: {"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}"#,
    r#"data: {"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":5,"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1}}}}"#,
    r#"data: {"error":{"message":"boom","code":500}}"#,
    "event: error",
    ": keepalive 3/9",
    "data: {\"choices\":",
    "\u{feff}",
    "",
];

proptest! {
    #[test]
    fn any_chunking_of_any_frames_gives_the_same_facts_in_every_dialect(
        frames in proptest::collection::vec(proptest::sample::select(FRAMES.to_vec()), 0..12),
        ends in proptest::collection::vec(proptest::sample::select(vec!["\n\n", "\r\r", "\r\n\r\n", "\n", "\r\n"]), 12),
        cuts in proptest::collection::vec(1_u8..40, 1..20),
    ) {
        let text: String = frames.iter().zip(&ends).map(|(frame, end)| format!("{frame}{end}")).collect();
        any_chunking(text.as_bytes(), &cuts);
    }

    #[test]
    fn any_chunking_of_any_bytes_gives_the_same_facts_in_every_dialect(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        cuts in proptest::collection::vec(1_u8..40, 1..20),
    ) {
        any_chunking(&bytes, &cuts);
        any_chunking(&[b"data: ", bytes.as_slice(), b"\n\n"].concat(), &cuts);
    }

    #[test]
    fn any_chunking_of_any_encoding_gives_the_facts_of_the_plain_answer(
        frames in proptest::collection::vec(proptest::sample::select(FRAMES.to_vec()), 1..12),
        encoding in proptest::sample::select(vec!["gzip", "deflate", "deflate-raw", "br", "zstd"]),
        size in 1_usize..200,
    ) {
        let frames: Vec<String> = frames.iter().map(|frame| format!("{frame}\n\n")).collect();
        let parts: Vec<&[u8]> = frames.iter().map(String::as_bytes).collect();
        let bytes = compressed(encoding, &parts).concat();
        let (plain, coded) = (headers(None), headers(Some(encoding.trim_end_matches("-raw"))));
        for dialect in super::fuzz::DIALECTS {
            let want = read(dialect, StatusCode::OK, &plain, parts.iter().copied());
            let found = read(dialect, StatusCode::OK, &coded, bytes.chunks(size));
            prop_assert_eq!(&found, &want);
        }
    }

    #[test]
    fn no_bytes_in_any_encoding_make_it_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        encoding in proptest::sample::select(vec!["gzip", "deflate", "br", "zstd", "x", ""]),
        keep in 0_usize..200,
    ) {
        read(Dialect::OpenaiChat, StatusCode::OK, &headers(Some(encoding)), bytes.chunks(7));
        // A good beginning and then rubbish.
        let mut good = compressed(encoding, &[b"data: {\"choices\":[]}\n\n"]).concat();
        good.truncate(keep);
        good.extend_from_slice(&bytes);
        read(Dialect::OpenaiChat, StatusCode::OK, &headers(Some(encoding)), good.chunks(5));
    }
}

fn headers(encoding: Option<&'static str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    if let Some(encoding) = encoding {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    headers
}

#[test]
fn what_cannot_be_decoded_is_flagged_and_what_was_read_before_stays() {
    let frame = r#"data: {"choices":[{"delta":{"content":"hi"}}]}"#.to_owned() + "\n\n";
    let mut parts = compressed("gzip", &[frame.as_bytes(), b"data: [DONE]\n\n"]);
    parts[1] = b"\xff\xff\xff\xff\xff rubbish".to_vec();
    let chunks = parts.iter().map(Vec::as_slice);
    let (facts, end) = read(
        Dialect::OpenaiChat,
        StatusCode::OK,
        &headers(Some("gzip")),
        chunks,
    );
    assert_eq!(facts.content_events, 1);
    assert_eq!(facts.oddities(), ["answer_not_decoded"]);
    assert_eq!(end, Outcome::Truncated, "no client can read on either");
}

#[test]
fn an_answer_that_is_given_up_for_its_size_is_not_taken_for_one_that_broke_off() {
    let long = vec![b' '; 24 * 1024 * 1024];
    let frame = r#"data: {"choices":[{"delta":{"content":"hi"}}]}"#.to_owned() + "\n\n";
    let parts = compressed("br", &[frame.as_bytes(), &long, b"\n\ndata: [DONE]\n\n"]);
    let chunks = parts.iter().map(Vec::as_slice);
    let (facts, end) = read(
        Dialect::OpenaiChat,
        StatusCode::OK,
        &headers(Some("br")),
        chunks,
    );
    assert_eq!((facts.content_events, end), (1, Outcome::Complete));
    assert_eq!(facts.oddities(), ["answer_too_large_decoded"]);
}
