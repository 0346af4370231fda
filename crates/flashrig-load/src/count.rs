//! The server's count of a prompt without generating anything, where it has a route for that.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::Response;
use hyper::body::Incoming;
use serde_json::Value;

use super::Client;
use super::exchange;
use flashrig_http::Wire;
use flashrig_record::Dialect;

/// The route of Anthropic's dialect; servers of either dialect have it.
const PATH: &str = "/v1/messages/count_tokens";
/// Counting takes no time; a server that hangs there is asked in another way.
const LIMIT: Duration = Duration::from_secs(10);
/// The largest answer that is read.
const ANSWER_BYTES: usize = 64 * 1024;

/// The server's count of the conversation in `body`; `None` when it does not count.
pub(super) async fn count_tokens(client: &Client, body: Bytes) -> Option<u64> {
    tokio::time::timeout(LIMIT, counted(client, body))
        .await
        .ok()?
}

async fn counted(client: &Client, body: Bytes) -> Option<u64> {
    let aim = client.aim();
    let request = exchange::post(aim, PATH, Dialect::AnthropicCountTokens, body).ok()?;
    let mut wire = Wire::dial(&aim.upstream).await.ok()?;
    let response = wire.send(request).await.ok()?;
    let (status, body) = whole(response, &mut wire).await?;
    if status != 200 {
        return None;
    }
    let answer: Value = serde_json::from_slice(&body).ok()?;
    answer.get("input_tokens")?.as_u64().filter(|n| *n > 0)
}

/// Reads an answer to its end.
async fn whole(response: Response<Incoming>, wire: &mut Wire) -> Option<(u16, Bytes)> {
    let status = response.status().as_u16();
    let mut reading = std::pin::pin!(Limited::new(response.into_body(), ANSWER_BYTES).collect());
    let body = std::future::poll_fn(|cx| {
        wire.drive(cx);
        reading.as_mut().poll(cx)
    });
    Some((status, body.await.ok()?.to_bytes()))
}
