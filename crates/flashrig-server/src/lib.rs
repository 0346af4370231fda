//! The server under test: how it is reached, who it says it is, and when it is idle. Profiles
//! are data in `harness/servers/`. This room knows no experiment and no agent.

mod change;
mod connect;
mod identity;
mod idle;
mod install;
pub mod installed;
mod library;
mod life;
mod log;
mod log_index;
mod managed;
mod metrics;
mod open;
mod proof;
mod pulse;
mod raw;
mod stall;
mod start;
mod target;
mod watch;

pub use change::{Change, ChangeError};
pub use connect::{ConnectError, Connected, Wanted, connect};
pub use identity::{Identity, model_list};
pub use idle::{Idle, IdleError, still_there, wait_idle};
pub use install::{InstallError, Installed, Surroundings, install};
pub use library::{Interface, Kind, Library, Profile, SERVER_SCHEMA};
pub use life::{Death, Life, LifeError, Reset, ResetRequest, StartError};
pub use log::{LogEvent, LogEventKind, LogPattern, LogReader, RawLogPattern, events};
pub use log_index::{LogIndex, Reported as LogReported};
pub use managed::files_of;
pub use metrics::MetricNames;
pub use open::{Opened, open};
pub use proof::same as same_value;
pub use pulse::{Pulse, pulse, watch_pulse};
pub use raw::RawProfile;
pub use stall::{Served, life_message, log_tail, stall_message};
pub use start::{
    FileKind, FlagCheck, FlagError, Launch, LaunchError, Places, Ready, Recipe,
    Reported as ReportedBy, Value, Variable, check_flags,
};
pub use target::{Target, TargetError};
pub use watch::{FollowError, Keeping, Span, Watcher};
