#![doc = include_str!("../README.md")]
//!
//! # Inside
//!
//! [`Prepared`] starts the helper (`shim`) and has it check the program; nothing runs yet.
//! `Prepared::go` starts the program at the barrier, and [`Running`] reads its output, stops it and
//! proves its end. `ipc` holds their messages, `tree` decides which processes belong to it, `system`
//! holds what differs between systems.
//!
//! No other part of flashrig calls `kill` or starts a program by itself.

mod command;
mod control;
mod drain;
mod helper_command;
mod ipc;
mod lines;
mod machine;
mod oom;
mod prepared;
mod programs;
mod running;
mod sandbox;
pub mod shim;
mod spawner;
mod spec;
mod system;
mod tree;
mod usage;

pub use command::{CommandExit, CommandOutcome, run_command};
pub use lines::{Line, Lines, StreamEnd, StreamReport};
pub use machine::{
    MachineCounters, children_cpu_time, listener_cpu_time, machine_counters, own_cpu_time,
};
pub use oom::OomKills;
pub use prepared::Prepared;
pub use programs::{ShortCommand, ShortError, ShortOutput, find_program, probe_version, run_short};
pub use running::{Ended, Lost, Running, StopReason, TreeEnd};
pub use sandbox::{Sandbox, SandboxChoice, SandboxError};
pub use spec::{HelperFault, Output, OutputLimits, SpawnError, Spec};
pub use usage::{ExitStatus, LeaderExit, Leftover, Reading, Usage};
