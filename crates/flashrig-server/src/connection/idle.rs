//! Waiting for the server to be idle between arms: generation may go on after a client left.

use flashrig_config::{format_duration, plural};
use std::time::Duration;

use serde_json::Value;

use super::connect::Connected;
use flashrig_clock::Stamp;
use flashrig_http::{Answer, HttpError, ask};
use flashrig_record::IdleBy;

/// How long a server that does not say is left alone.
const QUIET: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(100);
const ASK_LIMIT: Duration = Duration::from_secs(5);

/// The server is idle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Idle {
    /// How long that took.
    pub waited: Duration,
    /// How it was known.
    pub by: IdleBy,
}

impl Idle {
    /// This one and a later one as one: the least certain way counts.
    pub fn and(earlier: Option<Self>, later: Option<Self>) -> Option<Self> {
        let (Some(a), Some(b)) = (earlier, later) else {
            return earlier.or(later);
        };
        Some(Self {
            waited: a.waited + b.waited,
            by: a.by.max(b.by),
        })
    }
}

/// The server did not become idle.
#[derive(Debug, thiserror::Error)]
pub enum IdleError {
    /// It still works.
    #[error("the server at {url} still works on {requests} {} after the last client left", format_duration(*.limit))]
    Busy {
        /// The server.
        url: String,
        /// How many requests, in words.
        requests: String,
        /// How long was waited.
        limit: Duration,
    },
    /// It is gone.
    #[error("the server is gone: {0}")]
    Gone(HttpError),
}

/// What the server says of how busy it is.
enum Says {
    Idle(IdleBy),
    Busy(String),
    Nothing,
}

/// Waits until the server says that it works on nothing: by its metrics, or else by its slots. One
/// that says neither is left alone for one second.
///
/// # Errors
/// It still works on something after `limit`, or nobody answers there any more.
pub async fn wait_idle(server: &Connected, limit: Duration) -> Result<Idle, IdleError> {
    let start = Stamp::now();
    loop {
        let says = match by_metrics(server).await? {
            Says::Nothing => by_slots(server).await?,
            says => says,
        };
        let waited = Stamp::now().since(start);
        let requests = match says {
            Says::Idle(by) => return Ok(Idle { waited, by }),
            Says::Busy(requests) => requests,
            Says::Nothing => {
                tokio::time::sleep(QUIET).await;
                return Ok(Idle {
                    waited: Stamp::now().since(start),
                    by: IdleBy::Quiet,
                });
            }
        };
        if waited > limit {
            return Err(IdleError::Busy {
                url: server.record.url.clone(),
                requests,
                limit,
            });
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn by_metrics(server: &Connected) -> Result<Says, IdleError> {
    let Some(answer) = get(server, &server.metrics.path).await? else {
        // A server too busy to answer is not idle.
        return Ok(Says::Busy("its metrics' answer".to_owned()));
    };
    let text = String::from_utf8_lossy(&answer.body);
    let reported = (answer.status == 200).then(|| server.metrics.requests(&text));
    Ok(match reported.flatten() {
        None => Says::Nothing,
        Some(n) if n <= 0.0 => Says::Idle(IdleBy::Metrics),
        Some(n) => Says::Busy(plural(n as u64, "request")),
    })
}

async fn by_slots(server: &Connected) -> Result<Says, IdleError> {
    let Some(answer) = get(server, "/slots").await? else {
        return Ok(Says::Busy("the list of its slots".to_owned()));
    };
    Ok(match slots_at_work(&answer) {
        None => Says::Nothing,
        Some(0) => Says::Idle(IdleBy::Slots),
        Some(n) => Says::Busy(format!("{n} of its slots")),
    })
}

/// llama.cpp lists its slots, each with whether it is at work.
fn slots_at_work(answer: &Answer) -> Option<usize> {
    if answer.status != 200 {
        return None;
    }
    let list = answer.json()?;
    let slots = list.as_array().filter(|slots| !slots.is_empty())?;
    let at_work = |slot: &Value| slot.get("is_processing")?.as_bool();
    let each: Option<Vec<bool>> = slots.iter().map(at_work).collect();
    Some(each?.into_iter().filter(|at_work| *at_work).count())
}

/// `None` when it accepts and does not answer.
async fn get(server: &Connected, path: &str) -> Result<Option<Answer>, IdleError> {
    match ask(&server.upstream, path, None, ASK_LIMIT).await {
        Ok(answer) => Ok(Some(answer)),
        Err(gone @ HttpError::Unreachable { .. }) => Err(IdleError::Gone(gone)),
        Err(HttpError::Silent { .. }) => Ok(None),
        // What is no answer tells nothing.
        Err(_) => Ok(Some(Answer {
            status: 0,
            body: bytes::Bytes::new(),
            turned_away: None,
        })),
    }
}

/// Whether anybody answers there, whatever it says.
///
/// # Errors
/// Nobody does.
pub async fn still_there(server: &Connected) -> Result<(), IdleError> {
    get(server, "/v1/models").await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_work(status: u16, body: &str) -> Option<usize> {
        slots_at_work(&Answer {
            status,
            body: body.to_owned().into(),
            turned_away: None,
        })
    }

    #[test]
    fn slots_tell_how_many_are_at_work_and_anything_else_tells_nothing() {
        let slots = r#"[{"id":0,"is_processing":false},{"id":1,"is_processing":true}]"#;
        assert_eq!(at_work(200, slots), Some(1));
        assert_eq!(at_work(200, r#"[{"id":0,"is_processing":false}]"#), Some(0));
        assert_eq!(at_work(501, slots), None);
        for other in [
            "[]",
            "{}",
            r#"[{"id":0}]"#,
            "not json",
            r#"[{"is_processing":1}]"#,
        ] {
            assert_eq!(at_work(200, other), None, "{other}");
        }
    }

    #[test]
    fn of_several_waits_the_least_certain_way_counts() {
        let idle = |seconds, by| {
            let waited = Duration::from_secs(seconds);
            Some(Idle { waited, by })
        };
        let both = Idle::and(idle(1, IdleBy::Quiet), idle(2, IdleBy::Metrics));
        assert_eq!(both, idle(3, IdleBy::Quiet));
        assert_eq!(Idle::and(None, both), both);
    }
}
