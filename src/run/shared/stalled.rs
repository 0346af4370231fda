//! A server that accepts requests and does not generate, found out before anything is measured:
//! looked at while it may still be told from a slow one, and named.

use std::time::Duration;

use super::error::WarmUpError;
use flashrig_load::{Client, LoadError, SessionAttempt, WarmUp, warm_up};
use flashrig_record::{Calibration, Outcome, Pulse};
use flashrig_server::{Connected, Served, pulse, stall, watch_pulse};

/// Does `work` with requests of `client`; one that stalls is named with counts, signs of life and
/// the end of the log. Rows of the client are taken.
///
/// # Errors
/// What `work` says, or the stall.
pub async fn unless_stalled<T>(
    server: &Connected,
    client: Option<&Client>,
    limit: Duration,
    work: impl Future<Output = Result<T, LoadError>>,
) -> anyhow::Result<T> {
    let mut seen = None;
    let outcome = tokio::select! {
        biased;
        done = work => done,
        never = watch_pulse(server, limit, || true, &mut seen) => match never {},
    };
    let rows = client.map(Client::take_rows).unwrap_or_default();
    match outcome {
        Ok(done) => Ok(done),
        Err(LoadError::Stalled { .. }) => {
            let served = served(&rows).unwrap_or(Served {
                sent: 1,
                generated: 0,
            });
            Err(stalled(server, served, limit, seen).await.into())
        }
        Err(error) => Err(error.into()),
    }
}

fn served(rows: &[SessionAttempt]) -> Option<Served> {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let reached = || {
        rows.iter()
            .filter(|r| r.attempt.outcome != Outcome::Unreachable)
    };
    let generated = reached().filter(|r| r.attempt.clocks.first_token_s.is_some());
    (!rows.is_empty()).then(|| Served {
        sent: count(reached().count()),
        generated: count(generated.count()),
    })
}

/// The words for it. `seen` are signs of life from before anybody had waited in vain.
pub(super) async fn stalled(
    server: &Connected,
    served: Served,
    limit: Duration,
    seen: Option<Pulse>,
) -> WarmUpError {
    let pulse = match seen {
        Some(pulse) => pulse,
        None => pulse(server).await,
    };
    let stall = stall(served, 1, limit.into(), pulse, &server.last_lines());
    WarmUpError::Stalled {
        url: server.record.url.clone(),
        message: stall.of("it"),
    }
}

/// Warms a server up for synthetic sessions; nothing of it is scored or stored.
///
/// # Errors
/// It refuses, fails or stalls.
pub async fn warm_up_sessions(
    server: &Connected,
    client: &Client,
    calibration: &Calibration,
    what: WarmUp,
) -> anyhow::Result<()> {
    let limit = client.aim().limits_on_the_wall().first_token;
    let warming = warm_up(client, calibration, what);
    unless_stalled(server, Some(client), limit, warming).await
}
