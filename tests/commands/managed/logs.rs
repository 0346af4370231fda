//! The log of a server, however much it is.
#![cfg(target_os = "linux")]

use flashrig_testkit::waiting::wait_until;
use std::fs;

use crate::managed::place::{FLASHRIG, Place, scripted};

/// Megabytes that the server writes before it serves.
const MEGABYTES: u64 = 200;
/// What flashrig may use at most; its own work takes some tens.
const BOUND_MB: u64 = 160;

/// The most resident memory of a process so far, in megabytes.
fn peak_mb(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? / 1024)
}

#[test]
fn a_log_of_hundreds_of_megabytes_is_followed_in_bounded_memory() {
    let place = Place::new();
    let script = place.script(&format!(
        "yes 'a line of the log that is as long as such lines are, and means nothing to anybody' \
         | head -c {MEGABYTES}000000\necho\necho Concurrency: --max-concurrent=9\n\
         exec {FLASHRIG} sim --speed 100 --listen 127.0.0.1:$2 2>&1"
    ));
    let profile = scripted(&script, "10m").replace(
        "[variables.parallel]\nabout = \"requests at once\"\n",
        "[variables.parallel]\nabout = \"requests at once\"\ndefault = 9\n",
    ) + "\n[[log]]\nevent = \"setting\"\npattern = '--max-concurrent=(?<parallel>\\d+)'\n";
    place.profile("fake", &profile);
    let mut child = place
        .command(&["servers", "probe", "fake", "--json"])
        .spawn()
        .unwrap();
    let mut peak = 0;
    let mut code = None;
    wait_until("the probe is done", || {
        peak = peak.max(peak_mb(child.id()).unwrap_or(0));
        let status = child.try_wait().unwrap();
        code = status.and_then(|status| status.code());
        status.is_some()
    });
    assert_eq!(code, Some(0));
    assert!((1..BOUND_MB).contains(&peak), "{peak} MB at most");
    let mut out = String::new();
    std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut out).unwrap();
    let probe: serde_json::Value = serde_json::from_str(&out).unwrap();
    // What came after all that was read.
    assert_eq!(probe["managed"]["variables"][0]["engaged"], true, "{probe}");
}
