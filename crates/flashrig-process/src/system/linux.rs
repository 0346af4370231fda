//! Linux: `/proc`, the child subreaper, and the parent-death signal.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, SysconfVar, getppid, setsid, sysconf};

use super::ProcessInfo;
use crate::oom::OomKills;

/// Makes orphaned descendants children of this process, so that the absence of children proves
/// the absence of descendants. Returns whether the system did it.
pub(crate) fn adopt_orphans() -> bool {
    // The first process of a namespace is given all orphans by the kernel anyway.
    std::process::id() == 1 || prctl::set_child_subreaper(true).is_ok()
}

/// Gives the program to be spawned a session of its own (no controlling terminal to stop it, no
/// Ctrl-C meant for us), and has the kernel kill it should its supervisor die.
///
/// The parent-death signal follows the thread that spawns; it must outlive the program.
pub(crate) fn set_up_leader(command: &mut Command) {
    let supervisor = Pid::this();
    let set_up = move || -> io::Result<()> {
        setsid()?;
        // What the supervisor shields itself from, its programs must hear.
        SigSet::empty().thread_set_mask()?;
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        // The supervisor may have died before the line above.
        if getppid() == supervisor {
            Ok(())
        } else {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    };
    #[expect(
        unsafe_code,
        reason = "between fork and exec only async-signal-safe system calls are made, nothing is allocated and no lock is taken"
    )]
    unsafe {
        command.pre_exec(set_up);
    }
}

/// All descendants of `roots` that exist now; the roots themselves are not among them.
pub(crate) fn descendants(roots: &[u32]) -> Vec<ProcessInfo> {
    let mut children: HashMap<u32, Vec<ProcessInfo>> = HashMap::new();
    for found in pids().filter_map(stat) {
        children.entry(found.parent).or_default().push(found.info);
    }
    let mut found: Vec<ProcessInfo> = Vec::new();
    let mut to_visit: Vec<u32> = roots.to_vec();
    while let Some(pid) = to_visit.pop() {
        // Removing the entry visits each process once, even if one root descends from another.
        for child in children.remove(&pid).unwrap_or_default() {
            to_visit.push(child.pid);
            if !roots.contains(&child.pid) {
                found.push(child);
            }
        }
    }
    found
}

/// The members of a process group that exist now.
pub(crate) fn group_members(group: u32) -> Vec<ProcessInfo> {
    pids()
        .filter_map(stat)
        .filter(|found| found.group == group)
        .map(|found| found.info)
        .collect()
}

/// One process, if it exists (as a zombie too).
pub(crate) fn info(pid: u32) -> Option<ProcessInfo> {
    stat(pid).map(|found| found.info)
}

/// The command line of a process as one string, shortened; its bare name where there is none.
pub(crate) fn command_line(pid: u32) -> Option<String> {
    const LIMIT: usize = 300;
    let raw = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let message: Vec<_> = raw
        .split(|b| *b == 0)
        .filter(|w| !w.is_empty())
        .map(String::from_utf8_lossy)
        .collect();
    if message.is_empty() {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        return Some(format!("[{}]", name.trim_end()));
    }
    Some(message.join(" ").chars().take(LIMIT).collect())
}

/// The memory peak that `getrusage` reports, in bytes.
pub(crate) fn max_rss_bytes(ru_maxrss: i64) -> Option<u64> {
    u64::try_from(ru_maxrss)
        .ok()
        .filter(|kib| *kib > 0)
        .map(|kib| kib * 1024)
}

/// Kills for lack of memory: those that the kernel counts, and of them those in this process's
/// control group or in the nearest one above it that counts.
pub(crate) fn oom_kills() -> OomKills {
    let of_machine = fs::read_to_string("/proc/vmstat").ok();
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let in_group = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.events"),
            list if list.split(',').any(|c| c == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.oom_control")
            }
            _ => return None,
        };
        let group = Path::new(path.trim_start_matches('/'));
        group.ancestors().find_map(|group| {
            let text = fs::read_to_string(Path::new(root).join(group).join(file)).ok()?;
            counted(&text)
        })
    });
    OomKills {
        in_group,
        on_machine: of_machine.and_then(|text| counted(&text)),
    }
}

/// The count of kills in such a file.
fn counted(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

pub(super) fn pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The contents of `/proc/PID/stat`.
struct Stat {
    parent: u32,
    group: u32,
    info: ProcessInfo,
}

fn stat(pid: u32) -> Option<Stat> {
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(pid, &line)
}

/// The program's name may hold spaces and brackets, so fields are counted from the last `)`.
fn parse_stat(pid: u32, line: &[u8]) -> Option<Stat> {
    let after_name = line.iter().rposition(|b| *b == b')')? + 1;
    let rest = std::str::from_utf8(line.get(after_name..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // `man 5 proc` numbers the state as field 3; it is index 0 here.
    let number = |field: usize| fields.get(field - 3).and_then(|f| f.parse::<u64>().ok());
    let state = *fields.first()?;
    let parent = u32::try_from(number(4)?).ok()?;
    let group = u32::try_from(number(5)?).ok()?;
    let ticks = number(14)? + number(15)? + number(16)? + number(17)?;
    let info = ProcessInfo {
        pid,
        start_time: number(22)?,
        // A program whose main thread ended before its others shows as a zombie, yet it lives.
        zombie: matches!(state, "Z" | "X" | "x") && number(20)? <= 1,
        cpu: Some(Duration::from_nanos(
            ticks.saturating_mul(1_000_000_000 / ticks_per_second()),
        )),
        rss_bytes: number(24)?.saturating_mul(page_bytes()),
    };
    Some(Stat {
        parent,
        group,
        info,
    })
}

pub(super) fn ticks_per_second() -> u64 {
    static TICKS: OnceLock<u64> = OnceLock::new();
    *TICKS.get_or_init(|| configured(SysconfVar::CLK_TCK, 100))
}

pub(super) fn page_bytes() -> u64 {
    static PAGE: OnceLock<u64> = OnceLock::new();
    *PAGE.get_or_init(|| configured(SysconfVar::PAGE_SIZE, 4096))
}

fn configured(variable: SysconfVar, usual: u64) -> u64 {
    sysconf(variable)
        .ok()
        .flatten()
        .and_then(|v| u64::try_from(v).ok())
        .filter(|v| *v > 0)
        .unwrap_or(usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_spaces_and_brackets_does_not_shift_the_fields() {
        let line = b"42 (a) b (c)) S 7 43 42 0 -1 4194560 1 2 3 4 100 50 25 25 20 0 1 0 987654 1000000 10 18446744073709551615";
        let Stat {
            parent,
            group,
            info,
        } = parse_stat(42, line).unwrap();
        assert_eq!((parent, group), (7, 43));
        assert_eq!(info.start_time, 987_654);
        assert!(!info.zombie);
        assert_eq!(
            info.cpu.unwrap().as_nanos(),
            u128::from(200 * (1_000_000_000 / ticks_per_second()))
        );
        assert_eq!(info.rss_bytes, 10 * page_bytes());
    }

    #[test]
    fn a_dead_child_that_nobody_reaped_is_told_from_a_living_one() {
        let mut child = Command::new("/bin/sleep").arg("60").spawn().unwrap();
        assert!(!info(child.id()).unwrap().zombie);
        child.kill().unwrap();
        while !info(child.id()).unwrap().zombie {
            std::thread::yield_now();
        }
        assert!(
            descendants(&[std::process::id()])
                .iter()
                .any(|p| p.pid == child.id() && p.zombie)
        );
        child.wait().unwrap();
        assert!(info(child.id()).is_none());
    }
}
