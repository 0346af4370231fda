//! Every name of a metric and every pattern of a log in the built-in profiles, for a server of which
//! only the address is known.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::metrics::{MetricNames, usual_path};
use super::raw::RawProfile;
use crate::log::LogPattern;
use flashrig_harness::HARNESS;
use flashrig_record::Metric;

struct Known {
    metrics: MetricNames,
    log: Vec<LogPattern>,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let mut names: BTreeMap<Metric, Vec<String>> = BTreeMap::new();
    let mut log: Vec<LogPattern> = Vec::new();
    for profile in built_in() {
        for (metric, theirs) in profile.metrics.into_iter().flat_map(|m| m.names) {
            let known = names.entry(metric).or_default();
            for name in theirs {
                if !known.contains(&name) {
                    known.push(name);
                }
            }
        }
        for pattern in profile.log {
            if !log.iter().any(|known| known.is_same(&pattern)) {
                log.push(pattern);
            }
        }
    }
    let path = usual_path();
    Known {
        metrics: MetricNames { path, names },
        log,
    }
});

/// The built-in profiles, in order of their names. One that cannot be read has nothing to add.
fn built_in() -> impl Iterator<Item = RawProfile> {
    let folder = HARNESS.get_dir("servers");
    let mut files: Vec<_> = folder.into_iter().flat_map(|d| d.files()).collect();
    files.sort_by_key(|file| file.path());
    files
        .into_iter()
        .filter_map(|file| toml::from_str(file.contents_utf8()?).ok())
}

/// Every metric's names.
pub(super) fn metrics() -> MetricNames {
    KNOWN.metrics.clone()
}

/// Every pattern.
pub(super) fn log() -> Vec<LogPattern> {
    KNOWN.log.clone()
}
