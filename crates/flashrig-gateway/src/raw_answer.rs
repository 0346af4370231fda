//! Answers where hyper gives none.

use hyper::StatusCode;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::refusal::Reason;

/// The whole answer, after which the connection closes.
pub(super) fn bytes(reason: Reason, message: &str) -> Vec<u8> {
    with_status(reason.status(), reason, message)
}

/// Sends an answer and closes. What cannot be written is the client's loss.
pub(super) async fn send(mut stream: TcpStream, status: StatusCode, reason: Reason, message: &str) {
    let _ = stream
        .write_all(&with_status(status, reason, message))
        .await;
    let _ = stream.shutdown().await;
}

fn with_status(status: StatusCode, reason: Reason, message: &str) -> Vec<u8> {
    let body = json!({"error": {
        "message": message,
        "type": reason.openai_type(),
        "code": reason.code(),
    }})
    .to_string();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
