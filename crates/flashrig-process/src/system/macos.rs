//! macOS: `libproc`. There is no subreaper and no parent-death signal here, so a descendant that
//! leaves both its parent and its group between two looks can be missed; `adopt_orphans` says so,
//! and the record then calls the end of the tree unproven.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use libproc::bsd_info::BSDInfo;
use libproc::pid_rusage::{RUsageInfoV0, pidrusage};
use libproc::proc_pid::{name, pidinfo, pidpath};
use libproc::processes::{ProcFilter, pids_by_type};
use nix::sys::signal::SigSet;
use nix::unistd::setsid;

use super::ProcessInfo;
use crate::oom::OomKills;

/// `SZOMB` of `sys/proc.h`.
const ZOMBIE: u32 = 5;

/// There is no such thing on macOS.
pub(crate) fn adopt_orphans() -> bool {
    false
}

/// Gives the program to be spawned a session of its own.
pub(crate) fn set_up_leader(command: &mut Command) {
    let set_up = || -> io::Result<()> {
        setsid()?;
        // What the supervisor shields itself from, its programs must hear.
        SigSet::empty().thread_set_mask()?;
        Ok(())
    };
    #[expect(
        unsafe_code,
        reason = "between fork and exec only async-signal-safe system calls are made"
    )]
    unsafe {
        command.pre_exec(set_up);
    }
}

/// All descendants of `roots` that exist now; the roots themselves are not among them.
pub(crate) fn descendants(roots: &[u32]) -> Vec<ProcessInfo> {
    let mut found: Vec<ProcessInfo> = Vec::new();
    let mut to_visit: Vec<u32> = roots.to_vec();
    while let Some(pid) = to_visit.pop() {
        let children = pids_by_type(ProcFilter::ByParentProcess { ppid: pid }).unwrap_or_default();
        for other in children {
            let seen = roots.contains(&other) || found.iter().any(|p| p.pid == other);
            if let (false, Some(info)) = (seen, info(other)) {
                to_visit.push(other);
                found.push(info);
            }
        }
    }
    found
}

/// The members of a process group that exist now.
pub(crate) fn group_members(group: u32) -> Vec<ProcessInfo> {
    let members = pids_by_type(ProcFilter::ByProgramGroup { pgrpid: group }).unwrap_or_default();
    members.into_iter().filter_map(info).collect()
}

/// One process, if it lives; the dead that wait to be reaped are not found here.
pub(crate) fn info(pid: u32) -> Option<ProcessInfo> {
    let id = i32::try_from(pid).ok().filter(|id| *id > 0)?;
    let facts = pidinfo::<BSDInfo>(id, 0).ok()?;
    let rss_bytes = pidrusage::<RUsageInfoV0>(id).map_or(0, |usage| usage.ri_resident_size);
    Some(ProcessInfo {
        pid,
        start_time: facts
            .pbi_start_tvsec
            .saturating_mul(1_000_000)
            .saturating_add(facts.pbi_start_tvusec),
        zombie: facts.pbi_status == ZOMBIE,
        // Given in Mach time units, whose length cannot be had without unsafe code.
        cpu: None,
        rss_bytes,
    })
}

/// The path of the program, or its name; macOS shows arguments only through a raw `sysctl`.
pub(crate) fn command_line(pid: u32) -> Option<String> {
    let id = i32::try_from(pid).ok()?;
    pidpath(id).or_else(|_| name(id)).ok()
}

/// The memory peak that `getrusage` reports, in bytes.
pub(crate) fn max_rss_bytes(ru_maxrss: i64) -> Option<u64> {
    u64::try_from(ru_maxrss).ok().filter(|bytes| *bytes > 0)
}

/// macOS ends programs for lack of memory too, and counts it nowhere that can be read.
pub(crate) fn oom_kills() -> OomKills {
    OomKills::default()
}
