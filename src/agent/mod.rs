//! Agents: how each CLI is found, installed, started and read. Profiles are data; this room
//! gives them meaning. It starts no agent (that is `process`) and knows no experiment.

mod find;
mod install;
mod launch;
mod library;
mod outcome;
mod profile;
pub mod raw;
mod transcript;

pub use find::{FindError, Found, Places, find, pinned_version, version};
pub use flashrig_config::cache_folder;
pub use install::{InstallError, install};
pub use launch::{CommandLine, HOME_FOLDERS, Launch, Values, base_environment, launch};
pub use library::Library;
pub use outcome::{Ending, Evidence, SessionEnd, judge};
pub use profile::{AGENT_SCHEMA, HomeFile, Profile, VersionProbe};
pub use transcript::{Meaning, Reader, Reported, Summary};
