//! Linux: counters of the whole machine, and who listens on a port.

use std::fs;
use std::time::Duration;

use super::linux::{page_bytes, pids, ticks_per_second};
use crate::machine::MachineCounters;

/// Counters of the machine, since it was started.
pub(crate) fn machine_counters() -> MachineCounters {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let times = times(&stat);
    let pressure = fs::read_to_string("/proc/pressure/memory").unwrap_or_default();
    let vm = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let swapped = field(&vm, "pswpin").zip(field(&vm, "pswpout"));
    MachineCounters {
        busy: times.map(|(busy, _)| busy),
        stolen: times.map(|(_, stolen)| stolen),
        memory_stalled: some_stalled(&pressure),
        swapped_bytes: swapped.map(|(from, to)| (from + to) * page_bytes()),
        processors: processors(&stat),
    }
}

/// Busy and stolen time of all processors: `cpu user nice system idle iowait irq softirq steal …`.
fn times(stat: &str) -> Option<(Duration, Duration)> {
    let line = stat.lines().find(|line| line.starts_with("cpu "))?;
    let ticks: Option<Vec<u64>> = line
        .split_ascii_whitespace()
        .skip(1)
        .map(|n| n.parse().ok())
        .collect();
    let ticks = ticks.filter(|all| all.len() >= 8)?;
    let busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
    let time = |ticks: u64| Duration::from_millis(ticks * 1000 / ticks_per_second());
    Some((time(busy), time(ticks[7])))
}

fn processors(stat: &str) -> Option<u32> {
    let is_one = |line: &&str| {
        let number = line.strip_prefix("cpu");
        number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let count = u32::try_from(stat.lines().filter(is_one).count()).ok();
    count.filter(|n| *n > 0)
}

/// `some avg10=… avg60=… avg300=… total=MICROSECONDS`.
fn some_stalled(pressure: &str) -> Option<Duration> {
    let line = pressure.lines().find(|line| line.starts_with("some "))?;
    let (_, total) = line.rsplit_once("total=")?;
    total.trim().parse().ok().map(Duration::from_micros)
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        line.strip_prefix(name)?
            .strip_prefix(' ')?
            .trim()
            .parse()
            .ok()
    })
}

/// The process that listens on a TCP port, when it may be looked at.
pub(crate) fn listener(port: u16) -> Option<u32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let text: String = tables
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .collect();
    let sockets: Vec<String> = text
        .lines()
        .filter_map(|line| listening(line, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if sockets.is_empty() {
        return None;
    }
    pids().find(|pid| {
        let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else {
            return false;
        };
        open.flatten().any(|entry| {
            let target = fs::read_link(entry.path());
            target.is_ok_and(|target| sockets.iter().any(|s| target.as_os_str() == s.as_str()))
        })
    })
}

/// The inode of a line's socket when it listens on the port (state `0A`).
fn listening(line: &str, port: u16) -> Option<&str> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (_, hex) = fields.get(1)?.rsplit_once(':')?;
    let is_it = u16::from_str_radix(hex, 16).ok()? == port && *fields.get(3)? == "0A";
    is_it.then(|| fields.get(9).copied()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_leaves_out_idle_waiting_and_stolen_time() {
        let stat = "cpu  100 20 30 4000 50 6 7 80 9 0\ncpu0 1 2\ncpu1 3 4\nintr 1\n";
        let per_tick = Duration::from_millis(1000 / ticks_per_second());
        let (busy, stolen) = times(stat).unwrap();
        assert_eq!((busy, stolen), (per_tick * 163, per_tick * 80));
        assert_eq!(processors(stat), Some(2));
        assert_eq!(times("cpu 1 2\n"), None);
    }

    #[test]
    fn pressure_and_swap_are_read_and_absent_ones_are_unknown() {
        let pressure =
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0 total=1\n";
        assert_eq!(some_stalled(pressure), Some(Duration::from_millis(2500)));
        assert_eq!(some_stalled(""), None);
        assert_eq!(field("pswpin 3\npswpout 4\n", "pswpout"), Some(4));
        assert_eq!(field("", "pswpin"), None);
    }
}
