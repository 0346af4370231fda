//! The set of processes below one supervisor: who is in it now, and signals to its members.
//!
//! The only place that sends signals. They go to single processes by pid, only to descendants of
//! the root, and only after the process was seen again to be the same one, because a pid may have
//! been given to another process since.

use std::collections::HashMap;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::system::{self, ProcessInfo};
use super::usage::Leftover;

/// One process for good: its pid and when it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) pid: u32,
    pub(super) start_time: u64,
}

impl Identity {
    fn of(info: &ProcessInfo) -> Self {
        Self {
            pid: info.pid,
            start_time: info.start_time,
        }
    }

    /// The process as it is now, if it is still this one and not a zombie.
    fn alive(self) -> Option<ProcessInfo> {
        system::info(self.pid).filter(|now| now.start_time == self.start_time && !now.zombie)
    }

    /// Sends a signal, if the process is still alive and the same.
    pub(super) fn signal(self, signal: Signal) {
        if self.alive().is_some()
            && let Ok(pid) = i32::try_from(self.pid)
            && pid > 1
        {
            // It may die at any moment, and a failure says no more than that; callers look again.
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    /// Its pid and command line, if it is still alive.
    pub(super) fn describe(self) -> Option<Leftover> {
        self.alive()?;
        let command = system::command_line(self.pid).unwrap_or_else(|| "(unknown)".to_owned());
        Some(Leftover {
            pid: self.pid,
            command,
        })
    }
}

/// The processes below a root, zombies apart.
#[derive(Debug)]
pub(super) struct Tree {
    root: Option<u32>,
    /// Members seen before. Where orphans are not adopted, a known member leads to its children.
    known: HashMap<u32, u64>,
    /// A process group whose members belong to the tree, wherever their parents went.
    group: Option<u32>,
    /// Sum over the members at the last look.
    pub(super) cpu: Option<Duration>,
    pub(super) rss_bytes: u64,
}

impl Tree {
    pub(super) fn below(root: u32) -> Self {
        Self {
            root: Some(root),
            known: HashMap::new(),
            group: None,
            cpu: None,
            rss_bytes: 0,
        }
    }

    /// Adds processes that were members at an earlier time.
    pub(super) fn remember(&mut self, members: &[Identity]) {
        self.known
            .extend(members.iter().map(|m| (m.pid, m.start_time)));
    }

    /// Counts the members of a process group in, for systems that do not adopt orphans. Call it
    /// while the group's leader lives: an empty group is forgotten, its number may come again.
    pub(super) fn follow_group(&mut self, group: u32) {
        self.group = Some(group);
    }

    /// Goes on with the known members alone, once the root's pid may mean another process.
    pub(super) fn forget_root(&mut self) {
        self.root = None;
    }

    /// Looks at the system; returns the living members.
    pub(super) fn look(&mut self) -> Vec<Identity> {
        // A zombie still leads to its group, but a pid that has a new owner must be forgotten.
        self.known.retain(|pid, start_time| {
            system::info(*pid).is_some_and(|now| now.start_time == *start_time)
        });
        let mut roots: Vec<u32> = self.known.keys().copied().collect();
        roots.extend(self.root);
        let in_group = self.group.map_or_else(Vec::new, system::group_members);
        if in_group.iter().all(|m| m.zombie) {
            self.group = None;
        }
        for member in &in_group {
            if self.known.insert(member.pid, member.start_time).is_none() {
                roots.push(member.pid);
            }
        }
        let mut members = system::descendants(&roots);
        let same = |(pid, start_time): (&u32, &u64)| {
            system::info(*pid).filter(|now| now.start_time == *start_time)
        };
        members.extend(self.known.iter().filter_map(same));
        self.known = members.iter().map(|m| (m.pid, m.start_time)).collect();
        self.cpu = members.iter().map(|m| m.cpu).sum();
        members.retain(|m| !m.zombie);
        self.rss_bytes = members.iter().map(|m| m.rss_bytes).sum();
        // Parents come before their children, so that a shell dies before it can remark on theirs.
        members.sort_by_key(|m| (m.start_time, m.pid));
        members.iter().map(Identity::of).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_pid_that_was_given_to_another_process_is_not_signalled() {
        let mut child = Command::new("/bin/sleep").arg("60").spawn().unwrap();
        let now = Identity::of(&system::info(child.id()).unwrap());
        let former = Identity {
            start_time: now.start_time - 1,
            ..now
        };
        former.signal(Signal::SIGKILL);
        assert!(former.describe().is_none());
        now.signal(Signal::SIGTERM);
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::SIGTERM as i32));
        assert!(now.describe().is_none());
    }

    #[test]
    fn a_followed_group_leads_to_orphans_of_a_leader_that_is_gone() {
        use std::os::unix::process::CommandExt;
        let mut leader = Command::new("/bin/sh")
            .args(["-c", "sleep 60 & sleep 60 & read x"])
            .process_group(0)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut tree = Tree::below(0);
        tree.forget_root();
        tree.follow_group(leader.id());
        while tree.look().len() < 3 {
            std::thread::yield_now();
        }
        let mut late = Tree::below(0);
        late.forget_root();
        late.follow_group(leader.id());
        leader.wait().unwrap();
        let orphans = late.look();
        assert_eq!(orphans.len(), 2);
        for orphan in orphans {
            orphan.signal(Signal::SIGKILL);
        }
        // The number of an empty group is not followed any more.
        while late.group.is_some() {
            late.look();
        }
        assert_eq!(late.look(), []);
    }

    #[test]
    fn a_known_member_leads_to_its_children_when_the_root_is_gone() {
        let mut shell = Command::new("/bin/sh")
            .args(["-c", "sleep 60 & wait"])
            .spawn()
            .unwrap();
        let mut tree = Tree::below(0);
        tree.forget_root();
        tree.remember(&[Identity::of(&system::info(shell.id()).unwrap())]);
        while tree.look().len() < 2 {
            std::thread::yield_now();
        }
        for member in tree.look() {
            member.signal(Signal::SIGKILL);
        }
        shell.wait().unwrap();
        while !tree.look().is_empty() {
            std::thread::yield_now();
        }
    }
}
