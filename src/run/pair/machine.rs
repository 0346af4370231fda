//! What the rest of the machine does while an arm runs, and whether the agents' programs stay what they
//! were.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flashrig_clock::Seconds;
use flashrig_process::{
    MachineCounters, children_cpu_time, listener_cpu_time, machine_counters, own_cpu_time,
};
use flashrig_record::MachineLoad;
use flashrig_server::Connected;

/// Processor time is counted in ticks of 10 ms: of a shorter span nothing is said.
const SHORTEST: Duration = Duration::from_secs(1);

/// A span in which the machine is looked at.
pub struct MachineSpan {
    began: Instant,
    machine: MachineCounters,
    own: Option<Duration>,
    children: Option<Duration>,
    server: Option<Duration>,
}

impl MachineSpan {
    /// Begins.
    pub fn begin(server: &Connected) -> Self {
        Self {
            began: Instant::now(),
            machine: machine_counters(),
            own: own_cpu_time(),
            children: children_cpu_time(),
            server: server_cpu(server),
        }
    }

    /// Ends. `agents` is the CPU time of the sessions' process trees, when it is known.
    pub fn end(self, server: &Connected, agents: Option<Duration>) -> MachineLoad {
        let now = machine_counters();
        let span = self.began.elapsed();
        let whole = self.machine.processors.map(|n| span * n);
        let grown = |now: Option<Duration>, was: Option<Duration>| Some(now?.saturating_sub(was?));
        let of_whole = |part: Option<Duration>| {
            let whole = whole.filter(|_| span >= SHORTEST)?;
            Some((part?.as_secs_f64() / whole.as_secs_f64()).clamp(0.0, 1.0))
        };
        // Agents are below flashrig. What was not reaped yet is in their own count only.
        let children = grown(children_cpu_time(), self.children);
        let children = children.map(|below| below.max(agents.unwrap_or_default()));
        let own = grown(own_cpu_time(), self.own).zip(children);
        let own = own.map(|(own, below)| own + below);
        let server = grown(server_cpu(server), self.server);
        let busy = grown(now.busy, self.machine.busy);
        let foreign = busy
            .zip(own)
            .zip(server)
            .map(|((busy, own), server)| busy.saturating_sub(own + server));
        let stalled = grown(now.memory_stalled, self.machine.memory_stalled);
        MachineLoad {
            span_s: span.into(),
            foreign_cpu_share: of_whole(foreign),
            stolen_cpu_share: of_whole(grown(now.stolen, self.machine.stolen)),
            memory_stall_share: stalled
                .filter(|_| span >= SHORTEST)
                .map(|s| (s.as_secs_f64() / span.as_secs_f64()).clamp(0.0, 1.0)),
            swapped_bytes: now
                .swapped_bytes
                .zip(self.machine.swapped_bytes)
                .map(|(now, was)| now.saturating_sub(was)),
        }
    }
}

/// CPU time of the server's processes on this machine, flashrig's own left out: none for a server
/// elsewhere or within flashrig;
/// `None` when it is here and cannot be found.
fn server_cpu(server: &Connected) -> Option<Duration> {
    // Who is behind a Unix socket is not looked for.
    let (host, port) = server.upstream.host_and_port()?;
    let is_here = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    if !is_here {
        return Some(Duration::ZERO);
    }
    listener_cpu_time(port)
}

/// What tells one program from another that has taken its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    agent: String,
    path: PathBuf,
    identity: Option<Identity>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    /// Where links lead.
    real: PathBuf,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Program {
    /// The program of an agent as it is now.
    pub fn now(agent: &str, path: &Path) -> Self {
        Self {
            agent: agent.to_owned(),
            path: path.to_owned(),
            identity: identity(path),
        }
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let real = fs::canonicalize(path).ok()?;
    let metadata = fs::metadata(&real).ok()?;
    Some(Identity {
        real,
        inode: metadata.ino(),
        bytes: metadata.len(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
    })
}

/// The agents whose program is another one now.
pub fn changed(programs: &[Program]) -> Vec<String> {
    let other = |was: &&Program| identity(&was.path) != was.identity;
    programs
        .iter()
        .filter(other)
        .map(|p| p.agent.clone())
        .collect()
}

/// CPU time that sessions used; `None` when one is unknown.
pub fn agents_cpu<'s>(cpu: impl Iterator<Item = &'s Option<Seconds>>) -> Option<Duration> {
    let sum: Option<f64> = cpu.map(|s| s.map(|s| s.0)).sum();
    sum.and_then(|s| Duration::try_from_secs_f64(s).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn a_program_that_was_replaced_behind_its_link_is_another_one() {
        let dir = TempDir::new().unwrap();
        let (old, new, link) = (
            dir.path().join("1.0"),
            dir.path().join("1.1"),
            dir.path().join("agent"),
        );
        fs::write(&old, "old").unwrap();
        fs::write(&new, "new").unwrap();
        std::os::unix::fs::symlink(&old, &link).unwrap();
        let programs = [Program::now("mine", &link)];
        assert!(changed(&programs).is_empty());
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(&new, &link).unwrap();
        assert_eq!(changed(&programs), ["mine"]);
    }
}
