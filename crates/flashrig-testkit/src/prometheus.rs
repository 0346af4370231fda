//! A strict reader of Prometheus' text format 0.0.4: what promtool would refuse, it refuses.

use std::collections::{BTreeMap, BTreeSet};

/// Names and values, in the order of the names.
type Labels = Vec<(String, String)>;

/// The samples of an exposition, by name and labels.
#[derive(Debug, Default)]
pub struct Metrics {
    kinds: BTreeMap<String, String>,
    samples: BTreeMap<(String, Labels), f64>,
}

impl Metrics {
    /// Reads a text; panics with the line that breaks a rule.
    pub fn read(text: &str) -> Self {
        let mut metrics = Self::default();
        let (mut helped, mut closed) = (BTreeSet::new(), BTreeSet::new());
        let mut family = String::new();
        assert!(text.ends_with('\n'), "the last line must end");
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap_or_else(|| panic!("{line}"));
                assert!(is_name(name, true) && !help.trim().is_empty(), "{line}");
                assert!(helped.insert(name.to_owned()), "second HELP: {line}");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap_or_else(|| panic!("{line}"));
                assert!(helped.contains(name), "TYPE without HELP: {line}");
                let known = ["counter", "gauge", "histogram", "summary", "untyped"];
                assert!(known.contains(&kind), "{line}");
                assert!(
                    closed.insert(name.to_owned()),
                    "second TYPE, or after its samples: {line}"
                );
                metrics.kinds.insert(name.to_owned(), kind.to_owned());
                family = name.to_owned();
            } else {
                let (name, labels, value) = sample(line);
                let base = metrics.family_of(&name).unwrap_or_else(|| {
                    panic!("a sample without a TYPE before it: {line}");
                });
                assert_eq!(base, family, "samples of a family stand together: {line}");
                if metrics.kinds[&base] == "counter" {
                    assert!(name.ends_with("_total"), "a counter's name: {line}");
                    assert!(value >= 0.0, "{line}");
                }
                let before = metrics.samples.insert((name, labels), value);
                assert!(before.is_none(), "the same series twice: {line}");
            }
        }
        metrics.check_histograms();
        metrics
    }

    fn family_of(&self, name: &str) -> Option<String> {
        if self.kinds.get(name).is_some_and(|kind| kind != "histogram") {
            return Some(name.to_owned());
        }
        ["_bucket", "_sum", "_count"].iter().find_map(|suffix| {
            let base = name.strip_suffix(suffix)?;
            (self.kinds.get(base)? == "histogram").then(|| base.to_owned())
        })
    }

    fn check_histograms(&self) {
        for (base, _) in self.kinds.iter().filter(|(_, kind)| *kind == "histogram") {
            let mut series: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
            for ((name, labels), value) in &self.samples {
                if *name != format!("{base}_bucket") {
                    continue;
                }
                let (end, rest): (Vec<_>, Vec<_>) =
                    labels.iter().cloned().partition(|(name, _)| name == "le");
                assert_eq!(end.len(), 1, "{base}: a bucket has one end");
                series
                    .entry(rest)
                    .or_default()
                    .push((number(&end[0].1), *value));
            }
            for (labels, mut buckets) in series {
                buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
                assert!(
                    buckets
                        .windows(2)
                        .all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1),
                    "{base}: buckets are cumulative"
                );
                let (end, all) = *buckets.last().unwrap();
                assert!(end.is_infinite(), "{base}: the last bucket is +Inf");
                let of = |suffix: &str| self.samples[&(format!("{base}{suffix}"), labels.clone())];
                assert_eq!(of("_count"), all, "{base}: _count is the +Inf bucket");
                assert!(of("_sum").is_finite());
            }
        }
    }

    /// The sample with exactly these labels.
    pub fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let mut labels: Vec<_> = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        labels.sort();
        self.samples.get(&(name.to_owned(), labels)).copied()
    }

    /// The sum over all samples of this name with this client.
    pub fn of_client(&self, name: &str, client: &str) -> f64 {
        let own = ("client".to_owned(), client.to_owned());
        self.samples
            .iter()
            .filter(|((found, labels), _)| found == name && labels.contains(&own))
            .map(|(_, value)| value)
            .sum()
    }
}

fn is_name(name: &str, colons: bool) -> bool {
    let fits = |c: char| c.is_ascii_alphabetic() || c == '_' || (colons && c == ':');
    name.chars().next().is_some_and(fits) && name.chars().all(|c| fits(c) || c.is_ascii_digit())
}

fn number(text: &str) -> f64 {
    match text {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        "NaN" => f64::NAN,
        text => text.parse().unwrap_or_else(|_| panic!("no number: {text}")),
    }
}

/// Name, labels in the order of their names, value.
fn sample(line: &str) -> (String, Labels, f64) {
    let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("{line}"));
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name, true), "{line}");
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("{line}"));
            assert!(is_name(label, false), "{line}");
            let mut value = String::new();
            let mut chars = after.char_indices();
            let close = loop {
                match chars.next().unwrap_or_else(|| panic!("{line}")) {
                    (at, '"') => break at,
                    (_, '\\') => match chars.next() {
                        Some((_, 'n')) => value.push('\n'),
                        Some((_, c @ ('\\' | '"'))) => value.push(c),
                        _ => panic!("no such escape: {line}"),
                    },
                    (_, c) => value.push(c),
                }
            };
            labels.push((label.to_owned(), value));
            let after = &after[close + 1..];
            if let Some(more) = after.strip_prefix(',') {
                rest = more;
            } else {
                rest = after.strip_prefix('}').unwrap_or_else(|| panic!("{line}"));
                break;
            }
        }
    }
    labels.sort();
    let names: BTreeSet<_> = labels.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), labels.len(), "the same label twice: {line}");
    let value = rest.strip_prefix(' ').unwrap_or_else(|| panic!("{line}"));
    (name.to_owned(), labels, number(value))
}
