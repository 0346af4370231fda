//! What the whole machine did in a span, and how much of it was flashrig's own.
//!
//! The counters are the system's; each is `None` where the system does not have it. Times are CPU times
//! of all processors together, unless they are said to be wall times.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::system;

/// Counters of the machine, since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineCounters {
    /// Processors in use, guests and interrupts included, stolen time left out.
    pub busy: Option<Duration>,
    /// Processor time that a hypervisor gave to others.
    pub stolen: Option<Duration>,
    /// Wall time in which some task waited for memory (Linux: pressure stall information).
    pub memory_stalled: Option<Duration>,
    /// Bytes moved to or from swap.
    pub swapped_bytes: Option<u64>,
    /// Processors of the machine.
    pub processors: Option<u32>,
}

/// Reads the counters.
pub fn machine_counters() -> MachineCounters {
    system::machine_counters()
}

/// CPU time of this process.
pub fn own_cpu_time() -> Option<Duration> {
    cpu_time(UsageWho::RUSAGE_SELF)
}

/// CPU time of the processes below this one that have ended and were reaped.
pub fn children_cpu_time() -> Option<Duration> {
    cpu_time(UsageWho::RUSAGE_CHILDREN)
}

fn cpu_time(of: UsageWho) -> Option<Duration> {
    let usage = getrusage(of).ok()?;
    Some(duration(usage.user_time())? + duration(usage.system_time())?)
}

/// Programs that only pass connections on: what they pass them to is not below them.
const RELAYS: [&str; 12] = [
    "docker-proxy",
    "rootlesskit",
    "rootlessport",
    "slirp4netns",
    "pasta",
    "nginx",
    "haproxy",
    "envoy",
    "caddy",
    "traefik",
    "socat",
    "ssh",
];

/// CPU time of the process that listens on a TCP port of this machine, and of those below it; zero
/// when that is this process, whose time is known otherwise. `None` when it cannot be found, as it
/// belongs to another user or nobody listens, and when it is a known relay.
pub fn listener_cpu_time(port: u16) -> Option<Duration> {
    let pid = system::listener(port)?;
    if pid == std::process::id() {
        return Some(Duration::ZERO);
    }
    let program = system::command_line(pid)?;
    if is_relay(&program) {
        return None;
    }
    let below = system::descendants(&[pid]);
    let own = system::info(pid)?.cpu?;
    below
        .iter()
        .try_fold(own, |sum, process| Some(sum + process.cpu?))
}

/// Whether a command line is of a relay: by the name of its program, which may be followed by a colon
/// and what it does (`nginx: worker process`).
fn is_relay(command: &str) -> bool {
    let program = command.split_ascii_whitespace().next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    RELAYS.contains(&name.trim_end_matches(':'))
}

fn duration(time: TimeVal) -> Option<Duration> {
    let seconds = u64::try_from(time.tv_sec()).ok()?;
    let micros = u64::try_from(time.tv_usec()).ok()?;
    Some(Duration::from_secs(seconds) + Duration::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_machine_is_at_least_as_busy_as_this_process() {
        let (before, own) = (machine_counters(), own_cpu_time().unwrap());
        let mut sum = 0_u64;
        while own_cpu_time().unwrap() - own < Duration::from_millis(200) {
            sum = (0..100_000).fold(sum, u64::wrapping_add);
        }
        let busy = machine_counters().busy.unwrap() - before.busy.unwrap();
        // Both are counted in ticks of a hundredth of a second.
        assert!(busy >= Duration::from_millis(150), "{busy:?} {sum}");
        assert!(before.processors.unwrap() >= 1);
    }

    #[test]
    fn relays_are_known_by_the_name_of_their_program() {
        assert!(is_relay("/usr/bin/docker-proxy -proto tcp"));
        assert!(is_relay("nginx: master process nginx"));
        assert!(!is_relay("/opt/bin/llama-server -m nginx"));
        assert!(!is_relay(""));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_process_behind_a_port_is_found_and_nobody_behind_a_free_one() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listener_cpu_time(port).is_some());
        drop(listener);
        assert_eq!(listener_cpu_time(port), None);
    }
}
