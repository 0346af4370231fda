//! Signs of life of a server that has stopped answering.

use std::convert::Infallible;
use std::time::Duration;

use super::connect::Connected;
use flashrig_http::{HttpError, ask};
use flashrig_record::Pulse;

const LIMIT: Duration = Duration::from_secs(5);

/// Looks for signs of life. Takes 15 seconds at most.
pub async fn pulse(server: &Connected) -> Pulse {
    let get = async |path: &str| ask(&server.upstream, path, None, LIMIT).await;
    let health = get("/health").await;
    let models = get("/v1/models").await;
    let metrics = get(&server.metrics.path)
        .await
        .ok()
        .filter(|a| a.status == 200);
    Pulse {
        is_there: !matches!(models, Err(HttpError::Unreachable { .. })),
        health: health.ok().map(|answer| answer.status),
        models: models.ok().map(|answer| answer.status),
        requests: metrics.and_then(|a| server.metrics.requests(&String::from_utf8_lossy(&a.body))),
    }
}

/// Looks for signs of life shortly before anybody has waited in vain for `limit`: afterwards the
/// requests are gone, and a server that was merely slow looks as idle as one that had lost them.
pub async fn watch_pulse(
    server: &Connected,
    limit: Duration,
    anybody_waits: impl Fn() -> bool,
    seen: &mut Option<Pulse>,
) -> Infallible {
    loop {
        tokio::time::sleep(limit.mul_f64(0.8)).await;
        if anybody_waits() {
            *seen = Some(pulse(server).await);
        }
    }
}
