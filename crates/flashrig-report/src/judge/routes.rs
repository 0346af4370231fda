//! What a session asked for: routes, models, and the same thing again.

use std::collections::HashSet;

use flashrig_record::{Attempt, Dialect, MissingField, Outcome, RefusalKind, Role, UnknownRoute};

/// Different routes or models that are listed.
const LISTED: usize = 50;

/// Requests to routes that flashrig does not know or that the server does not have, each with its
/// status and its count, in order of the first.
pub fn unknown_routes(attempts: &[Attempt]) -> Vec<UnknownRoute> {
    let mut found: Vec<UnknownRoute> = Vec::new();
    for a in attempts.iter().filter(|a| is_unknown(a)) {
        let is_full = found.len() >= LISTED;
        let is_it = |f: &&mut UnknownRoute| {
            (&f.method, &f.path, f.status) == (&a.method, &a.path, a.status)
        };
        match found.iter_mut().find(is_it) {
            Some(known) => known.requests += 1,
            None if !is_full => found.push(UnknownRoute {
                method: a.method.clone(),
                path: a.path.clone(),
                status: a.status,
                requests: 1,
            }),
            None => {}
        }
    }
    found
}

fn is_unknown(attempt: &Attempt) -> bool {
    let by_dialect = attempt.dialect == Dialect::Other && !attempt.method.is_empty();
    let turned_away = attempt.outcome == Outcome::RejectedByGateway;
    !turned_away && (by_dialect || attempt.refusal == Some(RefusalKind::UnknownRoute))
}

/// Required fields that the streams of main and side requests lacked, in order of the first.
pub fn missing_fields(attempts: &[Attempt]) -> Vec<MissingField> {
    let mut found: Vec<MissingField> = Vec::new();
    let answers = attempts.iter().filter(|a| a.role != Role::Probe);
    for field in answers.flat_map(|a| &a.missing_fields) {
        let is_full = found.len() >= LISTED;
        match found.iter_mut().find(|f| f.field == *field) {
            Some(known) => known.streams += 1,
            None if !is_full => found.push(MissingField {
                field: field.clone(),
                streams: 1,
            }),
            None => {}
        }
    }
    found
}

/// Every model name asked for, in order of its first request.
pub fn models_asked(attempts: &[Attempt]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for model in attempts.iter().filter_map(|a| a.model.as_ref()) {
        if found.len() < LISTED && !found.contains(model) {
            found.push(model.clone());
        }
    }
    found
}

/// Main and side requests over the distinct bodies among them; `None` when there were none.
pub fn amplification(attempts: &[Attempt]) -> Option<f64> {
    let sent = || {
        let asked = |a: &&Attempt| a.role != Role::Probe && a.outcome != Outcome::RejectedByGateway;
        attempts.iter().filter(asked)
    };
    let hashes: HashSet<&str> = sent().filter_map(|a| a.body_hash.as_deref()).collect();
    // What was not read whole is like nothing else.
    let unhashed = sent().filter(|a| a.body_hash.is_none()).count();
    let distinct = hashes.len() + unhashed;
    (distinct > 0).then(|| sent().count() as f64 / distinct as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_record::testing::attempt;

    fn asked(method: &str, path: &str, dialect: Dialect, refusal: Option<RefusalKind>) -> Attempt {
        let end = refusal.map_or(Outcome::Complete, |_| Outcome::Refused);
        let mut a = attempt(Role::Probe, end, 0.0, None, 1.0);
        (a.method, a.path) = (method.to_owned(), path.to_owned());
        (a.dialect, a.refusal) = (dialect, refusal);
        a.status = Some(if refusal.is_some() { 404 } else { 200 });
        a.model = None;
        a
    }

    #[test]
    fn routes_that_nobody_knows_and_that_the_server_lacks_are_listed_with_status_and_count() {
        let missing = Some(RefusalKind::UnknownRoute);
        let attempts = [
            asked("HEAD", "/", Dialect::Other, missing),
            asked("GET", "/v1/models", Dialect::Models, None),
            asked(
                "POST",
                "/v1/messages/count_tokens",
                Dialect::AnthropicCountTokens,
                missing,
            ),
            asked("HEAD", "/", Dialect::Other, missing),
            asked("HEAD", "/", Dialect::Other, None),
        ];
        let want = [
            "HEAD / -> 404 (2)",
            "POST /v1/messages/count_tokens -> 404 (1)",
            "HEAD / -> 200 (1)",
        ];
        let routes = unknown_routes(&attempts);
        let routes: Vec<String> = routes.iter().map(ToString::to_string).collect();
        assert_eq!(routes, want);
    }

    #[test]
    fn every_model_name_is_listed_once_whatever_became_of_the_request() {
        let mut refused = attempt(Role::Side, Outcome::Refused, 0.0, None, 1.0);
        refused.model = Some("haiku".to_owned());
        let served = attempt(Role::Main, Outcome::Complete, 0.0, Some(0.5), 1.0);
        let models = models_asked(&[served.clone(), refused, served]);
        assert_eq!(models, ["m", "haiku"]);
    }

    #[test]
    fn a_missing_field_is_listed_with_the_number_of_streams_that_lack_it() {
        let mut lacking = attempt(Role::Main, Outcome::Complete, 0.0, Some(0.5), 1.0);
        lacking.missing_fields = vec!["choices".to_owned()];
        let mut more = lacking.clone();
        more.missing_fields.push("id".to_owned());
        let listed = missing_fields(&[lacking, more]);
        let listed: Vec<String> = listed.iter().map(ToString::to_string).collect();
        assert_eq!(listed, ["choices (2)", "id (1)"]);
    }

    #[test]
    fn amplification_counts_bodies_that_were_sent_again() {
        let sent = |hash: &str| {
            let mut a = attempt(Role::Main, Outcome::ClientAborted, 0.0, None, 1.0);
            a.body_hash = Some(hash.to_owned());
            a
        };
        assert_eq!(amplification(&[sent("a"), sent("a"), sent("b")]), Some(1.5));
        assert_eq!(amplification(&[sent("a"), sent("b")]), Some(1.0));
        assert_eq!(amplification(&[]), None);
    }
}
