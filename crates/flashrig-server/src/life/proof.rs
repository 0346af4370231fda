//! Whether what a server was started with took effect: the value that it tells, held against the
//! value that it was given. A flag that does nothing must not pass for one that does.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::error::StartError;
use super::launch::Valued;
use crate::log::LogIndex;
use crate::profiles::{MetricNames, SettingSource, by_name};
use flashrig_http::{Upstream, ask};
use flashrig_record::{ProofSource, SettingProof};

const LIMIT: Duration = Duration::from_secs(5);

/// Whom to ask.
pub(crate) struct Witness<'a> {
    pub(crate) server: &'a Upstream,
    pub(crate) metrics: &'a MetricNames,
    pub(crate) log_index: &'a LogIndex,
}

/// Looks for the value of each variable where the server tells it.
pub(crate) async fn prove(valued: &[Valued], witness: &Witness<'_>) -> Vec<SettingProof> {
    let settings = witness.log_index.settings();
    let mut pages: HashMap<&str, Option<String>> = HashMap::new();
    let mut proofs = Vec::new();
    for variable in valued {
        let path = match &variable.reported_in {
            Some(SettingSource::Field { path, .. }) => Some(path.as_str()),
            Some(SettingSource::Metric(_)) => Some(witness.metrics.path.as_str()),
            None => None,
        };
        if let Some(path) = path
            && !pages.contains_key(path)
        {
            pages.insert(path, witness.page(path).await);
        }
        let page = path.and_then(|path| pages.get(path)?.as_deref());
        let of_answer = match &variable.reported_in {
            Some(SettingSource::Field { path, field }) => {
                page.and_then(|page| at(page, field)).map(|reported| {
                    let (path, field) = (path.clone(), field.clone());
                    (reported, ProofSource::Field { path, field })
                })
            }
            Some(SettingSource::Metric(name)) => {
                page.and_then(|page| by_name(page, name)).map(|reported| {
                    let name = name.clone();
                    (reported.to_string(), ProofSource::Metric { name })
                })
            }
            None => None,
        };
        let of_log = || {
            let (value, line) = settings.get(&variable.name)?;
            let line = line.clone();
            Some((value.clone(), ProofSource::Log { line }))
        };
        let reported = of_answer.or_else(of_log);
        proofs.push(SettingProof {
            name: variable.name.clone(),
            value: variable.text.clone(),
            engaged: reported.as_ref().map(|(reported, _)| {
                same(&variable.text, reported)
                    || variable.rounds_up && is_rounded_up(&variable.text, reported)
            }),
            reported_by: reported.as_ref().map(|(_, by)| by.clone()),
            reported: reported.map(|(reported, _)| reported),
        });
    }
    proofs
}

/// Whether the server contradicts a value that it was given.
///
/// # Errors
/// It does; says which, and who says so.
pub(crate) fn contradicted(
    server: &str,
    valued: &[Valued],
    proofs: &[SettingProof],
) -> Result<(), StartError> {
    let Some(proof) = proofs.iter().find(|proof| proof.engaged == Some(false)) else {
        return Ok(());
    };
    let flag = valued
        .iter()
        .find(|v| v.name == proof.name)
        .and_then(|v| v.flag.as_deref())
        .unwrap_or(&proof.name);
    let reported = proof.reported.as_deref().unwrap_or("nothing");
    let by = proof.reported_by.as_ref();
    let by = by.map_or_else(|| "nobody".to_owned(), ToString::to_string);
    Err(StartError::NoEffect {
        profile: server.to_owned(),
        message: format!(
            "it was started with {flag} {}, and tells {reported} ({by}): {flag} did nothing, or not \
             what was asked for; look into its log, or set {} otherwise",
            proof.value, proof.name,
        ),
    })
}

impl Witness<'_> {
    async fn page(&self, path: &str) -> Option<String> {
        let answer = ask(self.server, path, None, LIMIT).await.ok()?;
        (answer.status == 200).then(|| String::from_utf8_lossy(&answer.body).into_owned())
    }
}

/// The value at a JSON pointer.
fn at(page: &str, field: &str) -> Option<String> {
    let page: Value = serde_json::from_str(page).ok()?;
    match page.pointer(field)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(on) => Some(on.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whether two texts mean one value.
pub fn same(given: &str, reported: &str) -> bool {
    let (given, reported) = (given.trim(), reported.trim());
    if given.eq_ignore_ascii_case(reported) {
        return true;
    }
    if let (Ok(a), Ok(b)) = (given.parse::<f64>(), reported.parse::<f64>()) {
        return (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    }
    if let (Some(a), Some(b)) = (switch(given), switch(reported)) {
        return a == b;
    }
    // A path is told as it was given, or as it leads, or below a folder of the server's own.
    let real = |path: &str| Path::new(path).canonicalize().ok();
    match (real(given), real(reported)) {
        (Some(a), Some(b)) => a == b,
        (Some(_), None) => Path::new(given).file_name() == Path::new(reported).file_name(),
        _ => false,
    }
}

/// Whether what is told is what was given, rounded up by no more than a quarter.
fn is_rounded_up(given: &str, reported: &str) -> bool {
    match (given.trim().parse::<f64>(), reported.trim().parse::<f64>()) {
        (Ok(given), Ok(reported)) => (given..=given * 1.25).contains(&reported),
        _ => false,
    }
}

fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "1" | "enabled" => Some(true),
        "false" | "off" | "no" | "0" | "disabled" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_in_two_spellings_is_one_and_two_values_are_two() {
        for (given, reported) in [
            ("4", "4"),
            ("0.3", "0.300"),
            ("true", "on"),
            ("Q8_0", "q8_0"),
            ("4", "4.0"),
            ("/usr/bin", "/usr/bin/"),
        ] {
            assert!(same(given, reported), "{given} is {reported}");
        }
        for (given, reported) in [("4", "1"), ("0.3", "0.5"), ("true", "off"), ("a", "b")] {
            assert!(!same(given, reported), "{given} is not {reported}");
        }
    }

    #[test]
    fn a_value_may_be_rounded_up_by_a_quarter_and_never_down() {
        for (given, reported, is_it) in [
            ("32768", "33024", true),
            ("1000", "1250", true),
            ("1000", "1251", false),
            ("32768", "32767", false),
            ("x", "x1", false),
        ] {
            assert_eq!(is_rounded_up(given, reported), is_it, "{given} {reported}");
        }
    }

    #[test]
    fn only_plain_values_are_told_by_a_field() {
        let page = r#"{"a": {"b": [4, true, "x", null]}}"#;
        assert_eq!(at(page, "/a/b/0").as_deref(), Some("4"));
        assert_eq!(at(page, "/a/b/1").as_deref(), Some("true"));
        assert_eq!(at(page, "/a/b/2").as_deref(), Some("x"));
        assert_eq!(
            (at(page, "/a/b/3"), at(page, "/a"), at("no", "/a")),
            (None, None, None)
        );
    }
}
