//! The server's count of a prompt without generating anything, where it has a route for that.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::Client;
use super::exchange;
use flashrig_http::Pool;
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
    let pool = Pool::new(aim.upstream.clone());
    let (response, mut connection) = pool.send(request, None, |_| {}).await.ok()?;
    if response.status() != 200 {
        return None;
    }
    let body = connection.read_whole(response, ANSWER_BYTES).await.ok()?;
    let answer: Value = serde_json::from_slice(&body).ok()?;
    answer.get("input_tokens")?.as_u64().filter(|n| *n > 0)
}
