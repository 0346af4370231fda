//! Settings that a unit's server told of in its log, which the unit kept.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use flashrig_record::{ProofSource, SettingProof};
use flashrig_server::{LogEvent, LogPattern, events, same_value};

/// Settings are told when a server starts, or at its first request.
const READ: u64 = 4 << 20;

/// What the log in a run's folder tells of the settings `sets` (`KEY=VALUE`). One that it does not
/// tell of is left out.
pub fn proofs_from_log(run: &Path, patterns: &[LogPattern], sets: &[String]) -> Vec<SettingProof> {
    let Ok(file) = File::open(run.join("server.log")) else {
        return Vec::new();
    };
    let lines = BufReader::new(file.take(READ)).split(b'\n');
    let lines = lines.map_while(Result::ok);
    proofs(
        lines.map(|line| String::from_utf8_lossy(&line).into_owned()),
        patterns,
        sets,
    )
}

fn proofs(
    lines: impl Iterator<Item = String>,
    patterns: &[LogPattern],
    sets: &[String],
) -> Vec<SettingProof> {
    let mut reported: BTreeMap<String, (String, String)> = BTreeMap::new();
    for line in lines {
        // Each line stands behind its second.
        let line = line.split_once(' ').map_or(line.as_str(), |(_, line)| line);
        for event in events(patterns, line) {
            if let LogEvent::Setting { name, value } = event {
                reported.insert(name, (value, line.to_owned()));
            }
        }
    }
    let of_set = |set: &String| {
        let (name, value) = set.split_once('=')?;
        let name = name.strip_prefix("sim.").unwrap_or(name);
        let (reported, line) = reported.get(name)?;
        Some(SettingProof {
            name: name.to_owned(),
            value: value.to_owned(),
            engaged: Some(same_value(value, reported)),
            reported: Some(reported.clone()),
            reported_by: Some(ProofSource::Log { line: line.clone() }),
        })
    };
    sets.iter().filter_map(of_set).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_server::Library;

    #[test]
    fn a_setting_is_proven_by_the_line_that_tells_its_value_and_disproven_by_another() {
        let patterns = Library::new(None).load("sim").unwrap().interface.log;
        let line = "-0.02 Concurrency: --max-concurrent=4, batched decode on, \
                    --prefill-decode-share=0.3, --prefill-chunk=2048";
        let sets = [
            "max_concurrent=4",
            "sim.prefill_decode_share=0.30",
            "prefill_chunk=1024",
        ];
        let mut all: Vec<String> = sets.map(str::to_owned).to_vec();
        all.push("kv_bits=8".to_owned());
        let lines = ["-0.03 listening".to_owned(), line.to_owned()];
        let proofs = proofs(lines.into_iter(), &patterns, &all);
        let engaged: Vec<_> = proofs
            .iter()
            .map(|p| (p.name.as_str(), p.engaged))
            .collect();
        assert_eq!(
            engaged,
            [
                ("max_concurrent", Some(true)),
                ("prefill_decode_share", Some(true)),
                ("prefill_chunk", Some(false)),
            ]
        );
        let by = proofs[0].reported_by.as_ref().unwrap();
        assert!(matches!(by, ProofSource::Log { line } if line.starts_with("Concurrency: ")));
    }
}
