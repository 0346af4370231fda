//! What differs between systems in looking after processes, behind one interface.
//!
//! Each system has one file with the same functions. Nothing outside these files may assume
//! `/proc`, a subreaper, or any other facility of one system. No policy belongs here: which process to
//! signal, and when, is decided in `tree` and in the shim.

use std::time::Duration;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(super) use linux::{
    adopt_orphans, command_line, descendants, group_members, info, max_rss_bytes, oom_kills,
    set_up_leader,
};

#[cfg(target_os = "linux")]
mod linux_machine;
#[cfg(target_os = "linux")]
pub(super) use linux_machine::{listener, machine_counters};

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
mod macos_machine;
#[cfg(target_os = "macos")]
pub(super) use macos::{
    adopt_orphans, command_line, descendants, group_members, info, max_rss_bytes, oom_kills,
    set_up_leader,
};
#[cfg(target_os = "macos")]
pub(super) use macos_machine::{listener, machine_counters};

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("flashrig supervises processes on Linux and macOS only");

/// One process, as the system shows it at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessInfo {
    /// Process id, as seen from this process's own namespace.
    pub(super) pid: u32,
    /// When it started, in units of the system's own; together with the pid it names one process
    /// for good, because a pid alone may be given to another process.
    pub(super) start_time: u64,
    /// Dead and waiting to be reaped; to `kill(pid, 0)` it still looks alive.
    pub(super) zombie: bool,
    /// CPU time of its own and of the children it has reaped, where the system reports it.
    pub(super) cpu: Option<Duration>,
    /// Resident memory; pages shared between processes count in each of them.
    pub(super) rss_bytes: u64,
}
