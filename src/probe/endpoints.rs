//! Which routes a server has, and what they say of it.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use flashrig_http::{Answer, HttpError, ask};
use flashrig_load::READY;
use flashrig_record::{Endpoint, EndpointState};
use flashrig_server::{Identity, Opened, model_list};

/// None of these routes works on anything.
const LIMIT: Duration = Duration::from_secs(10);
const MODELS: &str = "/v1/models";
const COUNT: &str = "/v1/messages/count_tokens";

/// What a look at all routes gave.
pub(super) struct Looked {
    pub(super) rows: Vec<Endpoint>,
    models: Option<Value>,
    answers: Vec<(String, Value)>,
}

/// Looks at all routes at once.
///
/// # Errors
/// Nobody is there, it is not an LLM server, or it wants a key.
pub(super) async fn look(server: &Opened) -> Result<Looked, HttpError> {
    let mut paths = vec![
        "/health",
        MODELS,
        "/version",
        "/api/version",
        "/props",
        "/slots",
    ];
    paths.push(&server.interface.metrics.path);
    let mut asking = JoinSet::new();
    for (place, path) in paths.iter().enumerate() {
        let (upstream, path) = (server.upstream.clone(), (*path).to_owned());
        asking.spawn(async move { (place, ask(&upstream, &path, None, LIMIT).await) });
    }
    let mut results = asking.join_all().await;
    results.sort_by_key(|(place, _)| *place);

    let mut looked = Looked {
        rows: Vec::new(),
        models: None,
        answers: Vec::new(),
    };
    for (place, result) in results {
        let path = paths[place];
        let result = match result {
            // It accepts: what else it does is to be found out.
            Err(error) if path == MODELS && !matches!(error, HttpError::Silent { .. }) => {
                return Err(error);
            }
            Ok(answer) if path == MODELS => {
                looked.models = model_list(&server.upstream.url_of(MODELS), &answer)?;
                Ok(answer)
            }
            result => result,
        };
        let reported = result.as_ref().ok().filter(|answer| answer.status == 200);
        if let Some(value) = reported.and_then(Answer::json) {
            looked.answers.push((path.to_owned(), value));
        }
        looked.rows.push(row(format!("GET {path}"), &result));
    }
    Ok(looked)
}

impl Looked {
    /// Who the server says it is.
    pub(super) fn identity(&self, model: Option<&str>) -> Identity {
        let at = |path: &str| {
            let found = self.answers.iter().find(|(of, _)| of == path);
            found.map(|(_, value)| value)
        };
        let versions = [at("/version"), at("/api/version")].into_iter().flatten();
        Identity::learned(self.models.as_ref(), at("/props"), versions, model)
    }

    /// Entries of the list of slots.
    pub(super) fn slots(&self) -> Option<u64> {
        let (_, slots) = self.answers.iter().find(|(of, _)| of == "/slots")?;
        Some(slots.as_array()?.len() as u64)
    }

    /// Whether it accepts connections and answered nothing at all.
    pub(super) fn is_silent(&self) -> bool {
        let mut states = self.rows.iter().map(|row| row.state);
        states.all(|state| state == EndpointState::Silent)
    }
}

/// Asks the counting route for the size of the small prompt.
pub(super) async fn count(server: &Opened, model: &str) -> (Endpoint, Option<u64>) {
    let body = json!({"model": model, "messages": [{"role": "user", "content": READY}]});
    let result = ask(&server.upstream, COUNT, Some(&body), LIMIT).await;
    let answer = result.as_ref().ok().filter(|answer| answer.status == 200);
    let tokens = answer
        .and_then(Answer::json)
        .and_then(|reported| reported.get("input_tokens")?.as_u64());
    (row(format!("POST {COUNT}"), &result), tokens)
}

/// `system_fingerprint` of an answer that is not streamed.
pub(super) async fn fingerprint(server: &Opened, model: &str, limit: Duration) -> Option<String> {
    let message = json!([{"role": "user", "content": READY}]);
    let body = json!({"model": model, "max_tokens": 1, "messages": message});
    let answer = ask(&server.upstream, "/v1/chat/completions", Some(&body), limit).await;
    let reported = answer.ok()?.json()?;
    Some(reported.get("system_fingerprint")?.as_str()?.to_owned())
}

/// The page of metrics; `None` when there is none.
pub(super) async fn metrics(server: &Opened) -> Option<String> {
    let path = &server.interface.metrics.path;
    let answer = ask(&server.upstream, path, None, LIMIT).await.ok()?;
    (answer.status == 200).then(|| String::from_utf8_lossy(&answer.body).into_owned())
}

/// What the health check and the model list say at this moment, in words.
pub(super) async fn signs_of_life(server: &Opened) -> String {
    let mut message = Vec::new();
    for path in ["/health", MODELS] {
        message.push(match ask(&server.upstream, path, None, LIMIT).await {
            Ok(answer) => format!("{path} answers {}", answer.status),
            Err(_) => format!("{path} gives no answer"),
        });
    }
    message.join(" and ")
}

fn row(route: String, result: &Result<Answer, HttpError>) -> Endpoint {
    let (status, state, message) = match result {
        Ok(answer) => {
            let state = match answer.status {
                200..=299 if is_page(answer) => EndpointState::Page,
                200..=299 => EndpointState::Answers,
                404 | 405 | 501 => EndpointState::Absent,
                _ => EndpointState::Refuses,
            };
            let message = (state == EndpointState::Refuses).then(|| answer.label());
            (Some(answer.status), state, message)
        }
        Err(error @ HttpError::Silent { .. }) => {
            (None, EndpointState::Silent, Some(error.to_string()))
        }
        Err(error) => (None, EndpointState::Broken, Some(error.to_string())),
    };
    Endpoint {
        route,
        status,
        state,
        message: message.filter(|message| !message.is_empty()),
    }
}

fn is_page(answer: &Answer) -> bool {
    let start = answer.body.trim_ascii_start();
    let start = &start[..start.len().min(14)];
    let start = start.to_ascii_lowercase();
    start.starts_with(b"<!doctype html") || start.starts_with(b"<html")
}
