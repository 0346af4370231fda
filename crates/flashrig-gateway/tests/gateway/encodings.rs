//! Compressed answers: the client gets the server's bytes, and the row what they say.

use std::io::Write as _;

use crate::gateway_rig::*;
use flashrig_record::{Attempt, Outcome, RefusalKind};

const ENCODINGS: [&str; 4] = ["gzip", "deflate", "br", "zstd"];

/// `parts` as one compressed stream, each flushed by itself.
fn compressed(encoding: &str, parts: &[&str]) -> Vec<Vec<u8>> {
    let mut ends = Vec::new();
    let level = flate2::Compression::default();
    macro_rules! each {
        ($encoder:expr, $finish:expr) => {{
            let mut encoder = $encoder;
            for part in parts {
                encoder.write_all(part.as_bytes()).unwrap();
                encoder.flush().unwrap();
                ends.push(encoder.get_ref().len());
            }
            $finish(encoder)
        }};
    }
    let bytes: Vec<u8> = match encoding {
        "gzip" => each!(
            flate2::write::GzEncoder::new(Vec::new(), level),
            |e: flate2::write::GzEncoder<_>| e.finish().unwrap()
        ),
        "deflate" => each!(
            flate2::write::ZlibEncoder::new(Vec::new(), level),
            |e: flate2::write::ZlibEncoder<_>| e.finish().unwrap()
        ),
        "br" => each!(
            brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20),
            brotli::CompressorWriter::into_inner
        ),
        "zstd" => each!(
            zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap(),
            |e: zstd::stream::write::Encoder<'_, _>| e.finish().unwrap()
        ),
        other => panic!("no encoder for {other}"),
    };
    *ends.last_mut().unwrap() = bytes.len();
    let mut from = 0;
    ends.into_iter()
        .map(|end| bytes[std::mem::replace(&mut from, end)..end].to_vec())
        .collect()
}

/// One exchange with an answer in this encoding; the body's bytes as the client got them.
async fn exchange(
    status: &str,
    kind: &str,
    encoding: &str,
    parts: &[Vec<u8>],
) -> (Vec<u8>, bool, Attempt) {
    let rig = Rig::new().await;
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    server
        .send(format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Encoding: {encoding}\r\nTransfer-Encoding: chunked\r\n\r\n"
        ))
        .await;
    for part in parts.iter().filter(|part| !part.is_empty()) {
        server.send_chunk(part).await;
    }
    server.end_stream().await;
    let response = client.response().await;
    assert_eq!(
        crate::upstream::header(&response.head, "content-encoding"),
        Some(encoding)
    );
    (response.body, response.whole, rig.row().await)
}

#[tokio::test]
async fn a_compressed_stream_passes_unchanged_and_its_tokens_and_clocks_are_known() {
    let usage =
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}\n\n";
    let hidden = delta(r#"{"reasoning":"hm"}"#);
    let visible = delta(r#"{"content":"日本"}"#);
    for encoding in ENCODINGS {
        let parts = compressed(encoding, &[&hidden, &visible, usage, STOP]);
        let (body, whole, row) = exchange("200 OK", "text/event-stream", encoding, &parts).await;
        assert_eq!((body, whole), (parts.concat(), true), "{encoding}");
        assert_eq!(
            (row.outcome, row.content_events),
            (Outcome::Complete, 2),
            "{encoding}"
        );
        assert_eq!((row.input_tokens, row.output_tokens), (Some(9), Some(3)));
        assert_eq!(row.oddities, [""; 0]);
        assert_eq!(row.event_gaps_us.len(), 1);
        assert!(row.clocks.first_token_s.is_some() && row.clocks.first_text_s.is_some());
    }
}

#[tokio::test]
async fn a_token_of_a_compressed_stream_is_known_when_it_comes_and_not_when_the_stream_ends() {
    for encoding in ENCODINGS {
        let parts = compressed(encoding, &[&delta(r#"{"content":"hi"}"#), STOP]);
        let rig = Rig::new().await;
        let mut client = rig.post(CHAT, CHAT_BODY).await;
        let (mut server, _) = rig.server.request().await;
        server
            .send(format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: {encoding}\r\nTransfer-Encoding: chunked\r\n\r\n"
            ))
            .await;
        client.head().await.unwrap();
        server.send_chunk(&parts[0]).await;
        assert!(client.chunk().await.is_some());
        let reported = rig.now();
        server.send_chunk(&parts[1]).await;
        server.end_stream().await;
        client.chunk().await.unwrap();
        assert_eq!(client.chunk().await.unwrap(), b"");
        let row = rig.row().await;
        assert!(row.clocks.first_token_s.unwrap() <= reported, "{encoding}");
        assert_eq!(row.outcome, Outcome::Complete);
    }
}

#[tokio::test]
async fn compressed_plain_answers_and_error_bodies_are_read() {
    let answer = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#;
    let refusal = r#"{"error":{"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#;
    for encoding in ENCODINGS {
        let json = "application/json";
        let parts = compressed(encoding, &[answer]);
        let (body, _, row) = exchange("200 OK", json, encoding, &parts).await;
        assert_eq!(body, parts.concat());
        assert_eq!(
            (row.outcome, row.input_tokens, row.output_tokens),
            (Outcome::Complete, Some(9), Some(2)),
            "{encoding}"
        );
        let parts = compressed(encoding, &[refusal]);
        let (body, _, row) = exchange("400 Bad Request", json, encoding, &parts).await;
        assert_eq!(body, parts.concat());
        assert_eq!(
            (row.outcome, row.refusal),
            (Outcome::Refused, Some(RefusalKind::ContextTooSmall))
        );
        assert_eq!(
            row.error.unwrap().message,
            "the request exceeds the available context size"
        );
    }
}

#[tokio::test]
async fn an_encoding_that_is_not_known_passes_unread_and_says_so() {
    let (body, _, row) = exchange(
        "200 OK",
        "text/event-stream",
        "compress",
        &[b"\x1f\x9d".to_vec()],
    )
    .await;
    assert_eq!(body, b"\x1f\x9d");
    assert_eq!((row.outcome, row.input_tokens), (Outcome::Complete, None));
    assert_eq!(row.oddities, ["answer_encoding_unknown"]);
    let (_, _, row) = exchange("500 Oops", "text/html", "compress", &[b"\x1f".to_vec()]).await;
    assert!(row.error.unwrap().message.contains("compressed"));
}
