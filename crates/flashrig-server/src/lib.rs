//! The LLM server under test: how its profile describes it, how it is started and ended, how it is
//! reached, what its log and metrics say. Profiles are data in `harness/servers/`. This crate knows
//! no experiment and no coding agent.
//!
//! | room | its one job | may use |
//! |---|---|---|
//! | `log` | lines of a log: patterns, index, writer, tailer | |
//! | `profiles` | profiles, read and validated; which server `--server` means | `log` |
//! | `install` | installing a server into flashrig's cache folder | |
//! | `life` | the process of a server: start, death, restart, reset, end; proof of its settings | `install`, `profiles`, `log` |
//! | `connection` | an address that can be asked: identity, idleness, signs of life | `life` and what it may use |
//! | `watch` | what a server does while something is measured | `connection` and what it may use |

mod connection;
pub mod install;
mod life;
mod log;
mod profiles;
mod watch;

pub use connection::{
    ConnectError, Connected, Identity, Idle, IdleError, Opened, Served, Wanted, connect, log_tail,
    model_list, open, pulse, stall, still_there, wait_idle, watch_pulse,
};
pub use life::{
    Death, FlagCheck, FlagError, Launch, LaunchError, Life, LifeError, StartError, check_flags,
    files_of, same_value,
};
pub use log::{
    FollowError, Keeping, LogEntry, LogEvent, LogEventKind, LogIndex, LogPattern, LogReader,
    RawLogPattern, events,
};
pub use profiles::{
    Change, ChangeError, DoorSpec, DoorSpecError, FileKind, Interface, Kind, Library, MetricNames,
    Places, Profile, RawProfile, Ready, Recipe, Reset, ResetRequest, SERVER_SCHEMA, SettingSource,
    Target, TargetError, Value, Variable, parse_header_env,
};
pub use watch::{Span, Watcher};
