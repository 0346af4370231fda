//! Starts the leader, watches its tree, and ends it: settle, TERM, grace, KILL, until none is left.

use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::Signal;
use nix::unistd::{AccessFlags, access, dup2_stderr, dup2_stdout};

use super::{Channel, Event, reaper};
use crate::ipc::{Failure, FinishedTree, Job, Notice, Order, Step};
use crate::system;
use crate::tree::{Identity, Tree};
use crate::usage::{LeaderExit, Leftover, Reading, Usage};
use flashrig_clock::Stamp;

/// How long children may take to notice that the leader is gone before they count as left over.
const SETTLE: Duration = Duration::from_millis(50);
/// Between two looks for newly forked processes while the tree is asked to end.
const ASK_EVERY: Duration = Duration::from_millis(50);
/// Between two rounds of killing.
const KILL_EVERY: Duration = Duration::from_millis(5);
/// The first sample comes early, so that short programs have one.
const FIRST_SAMPLE: Duration = Duration::from_millis(30);
/// Looking at the tree may take one part in this many of the helper's time.
const SAMPLE_SHARE: u32 = 100;

enum Phase {
    /// The leader runs.
    Running,
    /// It ended; its children may be about to.
    Settling { until: Instant },
    /// TERM was sent to those in `asked`.
    Asking {
        until: Instant,
        asked: HashSet<Identity>,
    },
    /// KILL is being sent.
    Killing { until: Instant },
}

/// The owner of one tree.
pub(super) struct Supervisor {
    leader: u32,
    leader_gone: bool,
    /// Whether someone asked for the end, so that what still lives when the leader dies was not
    /// left behind by it.
    stopped: bool,
    childless: bool,
    /// Whether no child means no descendant.
    adopting: bool,
    grace: Duration,
    kill_bound: Duration,
    sample_every: Duration,
    tree: Tree,
    phase: Phase,
    next_look: Instant,
    /// CPU time seen in samples; used where the system does not account for orphans.
    seen_cpu: Option<Duration>,
    peak_rss_bytes: u64,
    peak_processes: u32,
}

/// Finds out before the barrier what would fail after it.
pub(super) fn check(job: &Job) -> Result<(), Failure> {
    let fail = |step, message: &str| {
        Err(Failure {
            step,
            message: message.to_owned(),
        })
    };
    match Path::new(&job.dir).metadata() {
        Ok(facts) if facts.is_dir() => {}
        Ok(_) => return fail(Step::Directory, "not a directory"),
        Err(error) => return fail(Step::Directory, &message(&error)),
    }
    let program = Path::new(&job.program);
    match program.metadata() {
        Ok(facts) if facts.is_dir() => return fail(Step::Program, "is a directory"),
        // Root may access everything, but the kernel runs only what has an execute bit.
        Ok(facts) if facts.mode() & 0o111 == 0 => {
            return fail(Step::Program, "permission denied (not executable)");
        }
        Ok(_) => {}
        Err(error) => return fail(Step::Program, &message(&error)),
    }
    access(program, AccessFlags::X_OK).map_err(|errno| Failure {
        step: Step::Program,
        message: message(&errno.into()),
    })
}

/// The system's error text, in lower case.
fn message(error: &std::io::Error) -> String {
    error.raw_os_error().map_or_else(
        || error.to_string(),
        |code| nix::errno::Errno::from_raw(code).desc().to_lowercase(),
    )
}

/// What an exec error means. The kernel reports the program as missing when its interpreter is.
fn exec_error(program: &Path, error: &std::io::Error) -> String {
    let plain = message(error);
    if error.kind() != std::io::ErrorKind::NotFound || !program.exists() {
        return plain;
    }
    let first_line = std::fs::read(program)
        .ok()
        .and_then(|text| text.split(|b| *b == b'\n').next().map(<[u8]>::to_vec));
    match first_line
        .as_deref()
        .and_then(|line| line.strip_prefix(b"#!"))
    {
        Some(interpreter) => format!(
            "{plain}: its interpreter `{}`",
            String::from_utf8_lossy(interpreter).trim()
        ),
        None => format!("{plain}: its interpreter or loader"),
    }
}

impl Supervisor {
    /// Runs the program. On failure nothing is left running.
    pub(super) fn start(
        job: &Job,
        channel: &mut Channel,
        events: Sender<Event>,
    ) -> Result<Self, Failure> {
        let adopting = system::adopt_orphans();
        let mut command = Command::new(&job.program);
        command
            .args(&job.args)
            .env_clear()
            .envs(job.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&job.dir)
            // An idle pipe here makes some agents wait for its end.
            .stdin(Stdio::null());
        system::set_up_leader(&mut command);
        let child = command.spawn().map_err(|error| Failure {
            step: Step::Program,
            message: exec_error(Path::new(&job.program), &error),
        })?;
        let stamp = Stamp::now();
        channel.report(&Notice::Started {
            pid: child.id(),
            stamp,
        });
        reaper::start(events);
        let_go_of_output();
        let mut tree = Tree::below(std::process::id());
        if !adopting {
            tree.follow_group(child.id());
        }
        Ok(Self {
            leader: child.id(),
            leader_gone: false,
            stopped: false,
            childless: false,
            adopting,
            grace: job.grace,
            kill_bound: job.kill_bound,
            sample_every: job.sample_every,
            tree,
            phase: Phase::Running,
            next_look: Instant::now() + FIRST_SAMPLE,
            seen_cpu: None,
            peak_rss_bytes: 0,
            peak_processes: 0,
        })
    }

    /// Watches the tree until it is gone, or the bound for killing it has passed.
    pub(super) fn run(mut self, channel: &mut Channel, events: &Receiver<Event>) {
        while !self.is_gone() {
            let patience = self.next_look.saturating_duration_since(Instant::now());
            match events.recv_timeout(patience) {
                Ok(event) => self.handle(event, channel),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.kill_now(),
            }
            if !self.is_gone() && Instant::now() >= self.next_look && !self.look(channel) {
                break;
            }
        }
        let survivors = if self.is_gone() {
            Vec::new()
        } else {
            describe(&self.tree.look())
        };
        let usage = self.usage();
        channel.report(&Notice::Finished(FinishedTree {
            survivors,
            proven: self.childless && self.adopting,
            usage,
        }));
    }

    fn is_gone(&self) -> bool {
        self.leader_gone && self.childless && self.adopting
    }

    fn handle(&mut self, event: Event, channel: &mut Channel) {
        match event {
            Event::Reaped { pid, status, stamp } if pid == self.leader && !self.leader_gone => {
                self.leader_gone = true;
                channel.report(&Notice::Exited(LeaderExit { status, stamp }));
                if matches!(self.phase, Phase::Running) {
                    self.phase = Phase::Settling {
                        until: Instant::now() + SETTLE,
                    };
                    self.next_look = Instant::now() + SETTLE;
                }
            }
            Event::Reaped { .. } | Event::Order(Order::Prepare(_) | Order::Go) => {}
            Event::Childless => self.childless = true,
            Event::Order(Order::Stop { grace }) => {
                let new_until = Instant::now() + grace;
                match &mut self.phase {
                    Phase::Running => {
                        self.stopped = true;
                        self.phase = Phase::Asking {
                            until: new_until,
                            asked: HashSet::new(),
                        };
                    }
                    // A second order can only shorten the grace.
                    Phase::Asking { until, .. } => *until = new_until.min(*until),
                    Phase::Settling { .. } | Phase::Killing { .. } => {}
                }
                self.next_look = Instant::now();
            }
            Event::Order(Order::AskLeader) => self.ask_leader(),
            Event::OwnerGone => self.kill_now(),
        }
    }

    /// Only while it runs: a pid that was reaped may belong to another process.
    fn ask_leader(&mut self) {
        if self.leader_gone || !matches!(self.phase, Phase::Running) {
            return;
        }
        let members = self.tree.look();
        if let Some(leader) = members.iter().find(|member| member.pid == self.leader) {
            leader.signal(Signal::SIGTERM);
        }
    }

    fn kill_now(&mut self) {
        self.stopped = true;
        if !matches!(self.phase, Phase::Killing { .. }) {
            self.phase = Phase::Killing {
                until: Instant::now() + self.kill_bound,
            };
        }
        self.next_look = Instant::now();
    }

    /// Looks at the tree and does what the phase asks for. False when nothing more can be done.
    fn look(&mut self, channel: &mut Channel) -> bool {
        let began = Instant::now();
        let members = self.tree.look();
        self.note_usage(&members);
        match &mut self.phase {
            Phase::Running => {
                let reading = self.reading(&members);
                channel.report(&Notice::Usage { reading, members });
                let now = Instant::now();
                self.next_look = now + self.sample_every.max(SAMPLE_SHARE * (now - began));
                return true;
            }
            Phase::Settling { .. } if members.is_empty() && !self.adopting => return false,
            Phase::Settling { until } if began >= *until => {
                let left = describe(&members);
                if !left.is_empty() {
                    channel.report(&Notice::Leftovers(left));
                }
                self.phase = Phase::Asking {
                    until: began + self.grace,
                    asked: HashSet::new(),
                };
                self.next_look = began;
                return true;
            }
            Phase::Settling { .. } => {}
            Phase::Asking { until, asked } => {
                for member in &members {
                    if asked.insert(*member) {
                        member.signal(Signal::SIGTERM);
                        // A stopped process handles no signal until it is continued.
                        member.signal(Signal::SIGCONT);
                    }
                }
                if began >= *until {
                    if self.stopped {
                        let others: Vec<_> = members
                            .iter()
                            .copied()
                            .filter(|m| m.pid != self.leader)
                            .collect();
                        channel.report(&Notice::Leftovers(describe(&others)));
                    }
                    self.phase = Phase::Killing {
                        until: began + self.kill_bound,
                    };
                    self.next_look = began;
                    return true;
                }
                self.next_look = (began + ASK_EVERY).min(*until);
            }
            Phase::Killing { until } => {
                for member in &members {
                    member.signal(Signal::SIGKILL);
                }
                if began >= *until {
                    return false;
                }
                // A tree that forks is chased without a pause, a quiet one is given time to die.
                let pause = if members.is_empty() {
                    KILL_EVERY
                } else {
                    KILL_EVERY / 5
                };
                self.next_look = Instant::now() + pause;
            }
        }
        // Without adoption an empty look is all the proof there is.
        self.adopting || !members.is_empty() || !self.leader_gone
    }

    fn note_usage(&mut self, members: &[Identity]) {
        self.peak_rss_bytes = self.peak_rss_bytes.max(self.tree.rss_bytes);
        self.peak_processes = self
            .peak_processes
            .max(u32::try_from(members.len()).unwrap_or(u32::MAX));
        self.seen_cpu = self.seen_cpu.max(self.cpu_so_far());
    }

    /// Of the living, and of what was reaped here.
    fn cpu_so_far(&self) -> Option<Duration> {
        Some(self.tree.cpu? + reaped_usage()?.0)
    }

    fn reading(&self, members: &[Identity]) -> Reading {
        Reading {
            stamp: Stamp::now(),
            cpu: self.cpu_so_far(),
            rss_bytes: self.tree.rss_bytes,
            processes: u32::try_from(members.len()).unwrap_or(u32::MAX),
        }
    }

    fn usage(&self) -> Usage {
        let (cpu, largest) =
            reaped_usage().map_or((None, None), |(cpu, largest)| (Some(cpu), largest));
        Usage {
            // Exact once everything was reaped; where it was not, samples may know of more.
            cpu: if self.is_gone() {
                cpu
            } else {
                cpu.max(self.seen_cpu)
            },
            peak_rss_bytes: largest.max(Some(self.peak_rss_bytes).filter(|bytes| *bytes > 0)),
            largest_process_bytes: largest,
            peak_processes: Some(self.peak_processes).filter(|count| *count > 0),
        }
    }
}

/// CPU time of all that was reaped, and the peak memory of the largest of them.
fn reaped_usage() -> Option<(Duration, Option<u64>)> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    let time = |value: nix::sys::time::TimeVal| {
        let seconds = u64::try_from(value.tv_sec()).unwrap_or_default();
        let micros = u64::try_from(value.tv_usec()).unwrap_or_default();
        Duration::from_secs(seconds) + Duration::from_micros(micros)
    };
    Some((
        time(usage.user_time()) + time(usage.system_time()),
        system::max_rss_bytes(usage.max_rss()),
    ))
}

fn describe(members: &[Identity]) -> Vec<Leftover> {
    members
        .iter()
        .filter_map(|member| member.describe())
        .collect()
}

/// The pipes belong to the agent alone from here on; a copy held here would hide their end.
fn let_go_of_output() {
    if let Ok(null) = File::options().write(true).open("/dev/null") {
        let _ = dup2_stdout(&null);
        let _ = dup2_stderr(&null);
    }
}
