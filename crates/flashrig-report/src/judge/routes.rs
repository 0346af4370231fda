//! What a session asked for: routes, models, and the same thing again.

use std::collections::HashSet;

use flashrig_record::{Attempt, Dialect, Outcome, RefusalKind, Role};

/// Different routes or models that are listed.
const LISTED: usize = 50;

/// Requests to routes that flashrig does not know or that the server does not have, each with its
/// status and its count, in order of the first.
pub fn unknown_routes(attempts: &[Attempt]) -> Vec<String> {
    let mut found: Vec<(&str, &str, Option<u16>, u32)> = Vec::new();
    for a in attempts.iter().filter(|a| is_unknown(a)) {
        let key = (a.method.as_str(), a.path.as_str(), a.status);
        match found.iter().position(|f| (f.0, f.1, f.2) == key) {
            Some(known) => found[known].3 += 1,
            None if found.len() < LISTED => found.push((key.0, key.1, key.2, 1)),
            None => {}
        }
    }
    let message = |(method, path, status, count): (&str, &str, Option<u16>, u32)| {
        let status = status.map_or_else(|| "no answer".to_owned(), |s| s.to_string());
        format!("{method} {path} -> {status} ({count})")
    };
    found.into_iter().map(message).collect()
}

fn is_unknown(attempt: &Attempt) -> bool {
    let by_dialect = attempt.dialect == Dialect::Other && !attempt.method.is_empty();
    let turned_away = attempt.outcome == Outcome::RejectedByGateway;
    !turned_away && (by_dialect || attempt.refusal == Some(RefusalKind::UnknownRoute))
}

/// Required fields that the streams of main and side requests lacked, as `FIELD (STREAMS)`, in order
/// of the first.
pub fn missing_fields(attempts: &[Attempt]) -> Vec<String> {
    let mut found: Vec<(&str, u32)> = Vec::new();
    let answers = attempts.iter().filter(|a| a.role != Role::Probe);
    for field in answers.flat_map(|a| &a.missing_fields) {
        match found.iter().position(|f| f.0 == field) {
            Some(known) => found[known].1 += 1,
            None if found.len() < LISTED => found.push((field, 1)),
            None => {}
        }
    }
    let message = |(field, streams): (&str, u32)| format!("{field} ({streams})");
    found.into_iter().map(message).collect()
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
        assert_eq!(unknown_routes(&attempts), want);
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
