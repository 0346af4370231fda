//! Profiles of servers, read and validated, and which server `--server` and `--set` mean.
//!
//! | file | its one job |
//! |---|---|
//! | `raw`, `raw_start` | a profile as people write it |
//! | `library` | profiles by name, validated |
//! | `recipe`, `variable` | how a managed server is started, and what can be set of it |
//! | `reset` | how a server is brought back to a known state |
//! | `door` | what opens a server's door, as names of variables and files |
//! | `metrics` | what a server calls its metrics |
//! | `known` | every name and pattern of the built-in profiles |
//! | `change` | `--set KEY=VALUE` |
//! | `target` | `--server` |
//! | `places` | where programs and caches of this machine are |

mod change;
mod door;
mod known;
mod library;
mod metrics;
mod places;
mod raw;
mod raw_start;
mod recipe;
mod reset;
mod target;
mod variable;

pub use change::{Change, ChangeError};
pub use door::{DoorSpec, DoorSpecError, parse_header_env};
pub use library::{Interface, Kind, Library, Profile, SERVER_SCHEMA};
pub use metrics::MetricNames;
pub(crate) use metrics::by_name;
pub use places::Places;
pub use raw::RawProfile;
pub use raw_start::Value;
pub use recipe::{Ready, Recipe};
pub use reset::{Reset, ResetRequest};
pub use target::{Target, TargetError};
pub(crate) use variable::FOLDERS;
pub use variable::{FileKind, SettingSource, Variable};
