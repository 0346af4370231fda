//! Bounded memory, whatever a server sends. A program of its own, so that no other test's memory
//! is measured along.

#![expect(
    dead_code,
    reason = "each test file uses its own part of the shared support"
)]
#![expect(
    clippy::unwrap_used,
    reason = "the support code of tests fails the test"
)]

#[path = "gateway/gateway_rig.rs"]
mod gateway_rig;
use flashrig_testkit::upstream;

use std::io::Write as _;

use flashrig_record::Outcome;
use gateway_rig::*;

static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Resident pages of this process, where the system tells.
fn resident() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    pages.split(' ').nth(1)?.parse().ok()
}

#[tokio::test]
async fn a_stream_of_64_mebibytes_without_a_newline_takes_bounded_memory() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let rig = Rig::new().await;
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    let chunk = vec![b'x'; 1024 * 1024];
    let before = resident();
    server.start_stream().await;
    client.head().await.unwrap();
    let sending = tokio::spawn(async move {
        for _ in 0..64 {
            server.send_chunk(&chunk).await;
        }
        server.end_stream().await;
        server
    });
    let mut passed = 0;
    loop {
        match client.chunk().await {
            Some(chunk) if chunk.is_empty() => break,
            Some(chunk) => passed += chunk.len(),
            None => panic!("broken off after {passed} bytes"),
        }
    }
    sending.await.unwrap();
    assert_eq!(passed, 64 * 1024 * 1024);
    if let (Some(before), Some(after)) = (before, resident()) {
        let grown = after.saturating_sub(before) * 4096;
        assert!(grown < 40 * 1024 * 1024, "{grown} bytes more");
    }
    let row = rig.row().await;
    assert_eq!(row.outcome, Outcome::Truncated, "its end mark never came");
}

#[tokio::test]
async fn a_decompression_bomb_passes_whole_and_takes_bounded_memory() {
    let _alone = ONE_AT_A_TIME.lock().await;
    // 200 MiB of zeros, compressed piece by piece.
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    for _ in 0..200 {
        encoder.write_all(&[0; 1024 * 1024]).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    let rig = Rig::new().await;
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    let before = resident();
    server
        .send(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: zstd\r\nContent-Length: {}\r\n\r\n",
            bomb.len()
        ))
        .await;
    server.send(&bomb).await;
    let response = client.response().await;
    assert_eq!((response.body, response.whole), (bomb, true));
    if let (Some(before), Some(after)) = (before, resident()) {
        let grown = after.saturating_sub(before) * 4096;
        assert!(grown < 64 * 1024 * 1024, "{grown} bytes more");
    }
    let row = rig.row().await;
    assert_eq!(row.oddities, ["answer_too_large_decoded"]);
    assert_eq!(row.outcome, Outcome::Complete);
}
