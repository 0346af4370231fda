//! A server's metrics under common names. What each server calls them stands in its profile; this
//! file reads Prometheus text and knows no server.

use std::collections::{BTreeMap, HashMap, HashSet};

use schemars::JsonSchema;
use serde::Deserialize;

use flashrig_record::{Metric, MetricFound};

/// Where a server's metrics are, and what it calls them: the `[metrics]` table of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricNames {
    /// The path of the page, below the server's base address.
    #[serde(default = "usual_path")]
    pub path: String,
    /// For each common name, the server's names for it; of several the first that it tells counts.
    pub names: BTreeMap<Metric, Vec<String>>,
}

pub(super) fn usual_path() -> String {
    "/metrics".to_owned()
}

impl MetricNames {
    /// What is wrong with them: the field, and why.
    pub(super) fn fault(&self) -> Option<(String, String)> {
        if !self.path.starts_with('/') {
            let message = format!("is {:?}, but a path begins with /", self.path);
            return Some(("metrics.path".to_owned(), message));
        }
        self.names.iter().find_map(|(metric, names)| {
            let field = format!("metrics.names.{}", metric.label());
            if names.is_empty() {
                return Some((field, "names no metric; leave it out".to_owned()));
            }
            let is_name = |name: &str| {
                let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
                begins
                    && name
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':'))
            };
            let wrong = names.iter().find(|name| !is_name(name))?;
            Some((field, format!("{wrong:?} is not the name of a metric")))
        })
    }

    /// Every common metric that the page tells, with the server's own name for it.
    pub fn read(&self, page: &str) -> Vec<MetricFound> {
        let wanted = self.names.values().flatten().map(String::as_str).collect();
        let reported = sums(page, &wanted);
        let found = self.names.iter().filter_map(|(metric, names)| {
            let name = names
                .iter()
                .find(|name| reported.contains_key(name.as_str()))?;
            Some(MetricFound {
                metric: *metric,
                name: name.clone(),
                value: reported[name.as_str()],
            })
        });
        found.collect()
    }

    /// The value of one; `None` when the page does not tell it.
    pub fn value(&self, page: &str, metric: Metric) -> Option<f64> {
        let found = self.read(page).into_iter();
        found
            .filter(|found| found.metric == metric)
            .map(|found| found.value)
            .next()
    }

    /// The number of requests in the server, running and waiting; `None` when it tells neither.
    pub fn requests(&self, page: &str) -> Option<f64> {
        let found = self.read(page).into_iter();
        found
            .filter(|found| matches!(found.metric, Metric::Running | Metric::Waiting))
            .map(|found| found.value)
            .reduce(|sum, value| sum + value)
    }
}

/// The value of one by the server's own name; `None` when the page does not tell it.
pub(crate) fn by_name(page: &str, name: &str) -> Option<f64> {
    sums(page, &HashSet::from([name])).get(name).copied()
}

/// Those metrics of a page of Prometheus text that have one of these names, each summed over its
/// labels. What is no number is left out: unknown is not 0.
fn sums<'p>(page: &'p str, wanted: &HashSet<&str>) -> HashMap<&'p str, f64> {
    let mut sums = HashMap::new();
    for line in page.lines() {
        let end = memchr::memchr2(b'{', b' ', line.as_bytes()).unwrap_or(line.len());
        let (name, rest) = line.split_at(end);
        if !wanted.contains(name) {
            continue;
        }
        let after = rest.rsplit_once('}').map_or(rest, |(_, after)| after);
        let value = after
            .split_whitespace()
            .next()
            .and_then(|value| value.parse::<f64>().ok())
            .filter(|value| value.is_finite());
        if let Some(value) = value {
            *sums.entry(name).or_insert(0.0) += value;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::super::known::metrics as known;
    use super::*;

    #[test]
    fn gauges_are_summed_over_names_and_labels() {
        let text = "# HELP x\nvllm:num_requests_running{engine=\"0\",model_name=\"a b\"} 1.0\n\
                    vllm:num_requests_waiting{engine=\"0\"} 2\n\
                    vllm:num_requests_waiting{engine=\"1\"} 3 1700000000\nother 9\n";
        let known = known();
        assert_eq!(known.requests(text), Some(6.0));
        assert_eq!(
            known.requests("llamacpp:requests_processing 0\n"),
            Some(0.0)
        );
    }

    #[test]
    fn metrics_without_such_a_gauge_or_without_a_number_tell_nothing() {
        let known = known();
        assert_eq!(known.requests("process_cpu_seconds_total 3\n"), None);
        assert_eq!(known.requests("llamacpp:requests_processing nan\n"), None);
        assert_eq!(known.requests("vllm:num_requests_running\n"), None);
    }

    #[test]
    fn figures_are_read_under_each_servers_names_and_unknown_is_not_0() {
        let known = known();
        let text = "mlx_serve:mlx_active_bytes 1.5e3\nvllm:num_requests_running 1\n";
        assert_eq!(known.value(text, Metric::MemoryBytes), Some(1500.0));
        assert_eq!(known.value(text, Metric::Refused), None);
    }
}
