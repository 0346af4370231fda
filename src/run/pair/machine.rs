//! What the rest of the machine does while an arm runs, and whether the agents' programs stay what they
//! were.

use std::fs;
use std::net::{IpAddr, TcpListener};
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

/// Where a server runs, as far as the processors of this machine go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerAt {
    /// On another machine.
    Elsewhere,
    /// On this machine, at this port.
    Here(u16),
    /// On this machine perhaps, behind a Unix socket or a name that nobody resolves.
    Unknown,
}

impl ServerAt {
    /// Looks where a server runs: every address that its name has is tried.
    pub async fn find(server: &Connected) -> Self {
        let Some((host, port)) = server.upstream.host_and_port() else {
            return Self::Unknown;
        };
        match tokio::net::lookup_host((host, port)).await {
            Ok(addresses) => Self::of(addresses.map(|address| address.ip()), port),
            Err(_) => Self::Unknown,
        }
    }

    fn of(mut addresses: impl Iterator<Item = IpAddr>, port: u16) -> Self {
        if addresses.any(is_of_this_machine) {
            Self::Here(port)
        } else {
            Self::Elsewhere
        }
    }

    /// CPU time of the server's processes on this machine, flashrig's own left out; `None` when they
    /// cannot be found.
    fn cpu(self) -> Option<Duration> {
        match self {
            Self::Elsewhere => Some(Duration::ZERO),
            Self::Here(port) => listener_cpu_time(port),
            Self::Unknown => None,
        }
    }
}

/// Only a machine's own addresses can be listened on.
fn is_of_this_machine(ip: IpAddr) -> bool {
    ip.is_loopback() || ip.is_unspecified() || TcpListener::bind((ip, 0)).is_ok()
}

impl MachineSpan {
    /// Begins.
    pub fn begin(server: ServerAt) -> Self {
        Self {
            began: Instant::now(),
            machine: machine_counters(),
            own: own_cpu_time(),
            children: children_cpu_time(),
            server: server.cpu(),
        }
    }

    /// Ends. `agents` is the CPU time of the sessions' process trees, when it is known.
    pub fn end(self, server: ServerAt, agents: Option<Duration>) -> MachineLoad {
        let now = machine_counters();
        let span = self.began.elapsed();
        let foreign = self.foreign(now.busy, server.cpu(), agents);
        let whole = self.machine.processors.map(|n| span * n);
        let grown = |now: Option<Duration>, was: Option<Duration>| Some(now?.saturating_sub(was?));
        let of_whole = |part: Option<Duration>| {
            let whole = whole.filter(|_| span >= SHORTEST)?;
            Some((part?.as_secs_f64() / whole.as_secs_f64()).clamp(0.0, 1.0))
        };
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

    /// CPU time that is nobody's whom flashrig knows; `None` when any part is unknown.
    fn foreign(
        &self,
        busy: Option<Duration>,
        server: Option<Duration>,
        agents: Option<Duration>,
    ) -> Option<Duration> {
        // A count that fell lost a process: what that one used is unknown.
        let grown = |now: Option<Duration>, was: Option<Duration>| now?.checked_sub(was?);
        // Agents are below flashrig. What was not reaped yet is in their own count only.
        let below = grown(children_cpu_time(), self.children)?.max(agents?);
        let own = grown(own_cpu_time(), self.own)? + below;
        let server = grown(server, self.server)?;
        let busy = grown(busy, self.machine.busy)?;
        Some(busy.saturating_sub(own + server))
    }
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
    fn a_server_at_any_address_of_this_machine_is_here_and_one_elsewhere_is_not() {
        let at = |ip: &str| ServerAt::of([ip.parse().unwrap()].into_iter(), 80);
        for own in ["127.0.0.1", "127.0.0.7", "::1", "0.0.0.0"] {
            assert_eq!(at(own), ServerAt::Here(80), "{own}");
        }
        // An address for documents only (RFC 5737).
        assert_eq!(at("192.0.2.1"), ServerAt::Elsewhere);
        assert_eq!(ServerAt::Elsewhere.cpu(), Some(Duration::ZERO));
        assert_eq!(ServerAt::Unknown.cpu(), None);
    }

    #[test]
    fn foreign_load_is_unknown_when_any_part_of_it_is() {
        let span = MachineSpan::begin(ServerAt::Elsewhere);
        let some = Some(Duration::ZERO);
        let later = span.machine.busy.map(|busy| busy + Duration::from_secs(60));
        assert!(
            span.foreign(later, some, some)
                .is_some_and(|d| d.as_secs() > 30)
        );
        assert_eq!(span.foreign(later, some, None), None, "agents");
        assert_eq!(span.foreign(later, None, some), None, "server");
        assert_eq!(span.foreign(None, some, some), None, "machine");
        let was = MachineSpan {
            server: Some(Duration::from_secs(5)),
            ..span
        };
        let fell = Some(Duration::from_secs(4));
        assert_eq!(was.foreign(later, fell, some), None, "a process ended");
    }

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
