//! The only room that spawns and kills processes.
//!
//! Every agent and every check runs below a small supervising helper of its own (`shim`), which
//! adopts, watches and ends the whole tree of processes, and dies with flashrig. A caller prepares
//! a program (helper up, program checked, nothing run), lets it go at the barrier, reads its
//! output in bounded memory, and gets back proof that nothing of it is left.
//!
//! Tasks, agents, experiments and the gateway must not enter here; nor may any other room call
//! `kill`, or start a program by itself.

mod command;
mod control;
mod drain;
mod lines;
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
mod wire;

pub use command::{CommandExit, CommandOutcome, run_command};
pub use lines::{Line, Lines, StreamEnd, StreamReport};
pub use oom::OomKills;
pub use prepared::Prepared;
pub use programs::{ShortCommand, ShortError, ShortOutput, find_program, probe_version, run_short};
pub use running::{Ended, Lost, Running, StopReason, TreeEnd};
pub use sandbox::{Sandbox, SandboxChoice, SandboxError};
pub use spec::{Output, OutputLimits, SpawnError, Spec};
pub use usage::{ExitStatus, LeaderExit, Leftover, Reading, Usage};
