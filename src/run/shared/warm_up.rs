//! One unscored request of each shape that agents will send: the first request of a shape pays
//! set-up in many servers, and a shape that the server does not take is found out before anything
//! is measured. So is a server that accepts requests and does not generate.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use super::error::WarmUpError;
use super::stalled::stalled;
use flashrig_http::{HttpError, ask};
use flashrig_load::{Aim, LoadDialect, LoadLimits, READY, Trial, trial};
use flashrig_record::{Attempt, Dialect, Outcome, RefusalKind};
use flashrig_server::{Connected, Served, watch_pulse};

/// The shapes: plain, and with a tool offered, as agents do.
const SHAPES: [(Trial, &str); 2] = [
    (Trial::Ready, "a short request"),
    (Trial::Tool, "a short request that offers a tool"),
];

/// Sends one short streaming request of each shape in each of the protocols; `limit` is that of
/// each first token, on the wall clock. Protocols that generate nothing need none.
///
/// # Errors
/// See [`WarmUpError`].
pub async fn warm_up(
    server: &Connected,
    dialects: &BTreeSet<Dialect>,
    limit: Duration,
    say: impl Fn(String),
) -> Result<(), WarmUpError> {
    let mut served = Served::default();
    for dialect in dialects.iter().filter(|dialect| dialect.generates()) {
        say(format!("warming up {}", server.record.name));
        match dialect {
            Dialect::AnthropicMessages => {
                let dialect = LoadDialect::AnthropicMessages;
                try_shapes(server, dialect, limit, &mut served).await?;
            }
            Dialect::OpenaiChat => {
                try_shapes(server, LoadDialect::OpenaiChat, limit, &mut served).await?;
            }
            _ => whole(server, limit).await?,
        }
    }
    Ok(())
}

/// What synthetic requests to this server are sent with.
pub fn aim_at(server: &Connected, dialect: LoadDialect, limit: Duration, speed: f64) -> Aim {
    Aim {
        upstream: server.upstream.clone(),
        model: server.record.model.clone(),
        dialect,
        limits: LoadLimits::each(limit),
        speed,
    }
}

async fn try_shapes(
    server: &Connected,
    dialect: LoadDialect,
    limit: Duration,
    served: &mut Served,
) -> Result<(), WarmUpError> {
    let aim = aim_at(server, dialect, limit, 1.0);
    for (shape, name) in SHAPES {
        let mut seen = None;
        let (attempt, _) = tokio::select! {
            biased;
            tried = trial(&aim, shape) => tried,
            never = watch_pulse(server, limit, || true, &mut seen) => match never {},
        };
        served.sent += u32::from(attempt.outcome != Outcome::Unreachable);
        served.generated += u32::from(attempt.clocks.first_token_s.is_some());
        if attempt.outcome == Outcome::Stalled {
            return Err(stalled(server, *served, limit, seen).await);
        }
        reported(server, dialect.path(), name, &attempt)?;
    }
    Ok(())
}

/// What a request came to; agents take what is not streamed, too.
fn reported(
    server: &Connected,
    path: &'static str,
    shape: &'static str,
    attempt: &Attempt,
) -> Result<(), WarmUpError> {
    if attempt.outcome == Outcome::Complete {
        return Ok(());
    }
    let said = attempt.error.as_ref().map(|e| one_line(&e.message));
    let said = said.unwrap_or_default();
    let url = server.record.url.clone();
    Err(match (attempt.outcome, attempt.status, attempt.refusal) {
        (_, Some(status @ (404 | 405 | 501)), kind) if kind != Some(RefusalKind::UnknownModel) => {
            WarmUpError::NoRoute {
                url,
                path,
                status,
                message: said,
            }
        }
        (end, status, _) => WarmUpError::Refused {
            url,
            what: match end {
                Outcome::Refused | Outcome::Overloaded => "refused",
                Outcome::Truncated => "broke off its answer to",
                _ => "failed",
            },
            shape,
            path,
            message: match status {
                Some(status) => format!("{status}: {said}"),
                None => said,
            },
        },
    })
}

/// A protocol in which no stream of its own can be read here: the answer is waited for as a whole.
async fn whole(server: &Connected, limit: Duration) -> Result<(), WarmUpError> {
    let path = "/v1/responses";
    let url = &server.record.url;
    let body = json!({
        "model": server.record.model,
        "max_output_tokens": 16,
        "stream": true,
        "input": [{"role": "user", "content": READY}],
    });
    let answer = match ask(&server.upstream, path, Some(&body), limit).await {
        Err(HttpError::Silent { .. }) => {
            let served = Served {
                sent: 1,
                generated: 0,
            };
            return Err(stalled(server, served, limit, None).await);
        }
        other => other?,
    };
    let (status, message, url) = (answer.status, answer.label(), url.clone());
    match status {
        200..=299 => Ok(()),
        404 | 405 | 501 => Err(WarmUpError::NoRoute {
            url,
            path,
            status,
            message,
        }),
        _ => Err(WarmUpError::Refused {
            url,
            what: "refused",
            shape: SHAPES[0].1,
            path,
            message: format!("{status}: {message}"),
        }),
    }
}

/// The beginning of what a server says, which may be a page.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(300).collect()
}
