//! Clone, isolate, diff: every session works in a full copy of its task's repository, and what it
//! changed is told against a base that no agent can reach.
//!
//! A [`Base`] is made once per task source, in a folder outside every workspace. It holds a
//! *template*, a checked-out repository that workspaces are copied from, and a *vault*, a bare
//! repository that no workspace shares a file with and that patches are computed in. The patch is
//! read from the files in the workspace alone; whatever the agent did to `.git` or to the ignore
//! rules makes no difference.
//!
//! git2 does all of it; no git program is needed. What must not enter this room: knowledge of
//! agents, checks and experiments, and the operator's git configuration.

mod apply;
mod base;
mod copy;
mod files;
mod fingerprint;
mod flat;
mod git;
mod ignores;
mod patch;
mod paths;
mod render;
mod snapshot;
mod source;
mod spec;
mod unified;

pub use base::{Base, BaseError};
pub use copy::CopyReport;
pub use fingerprint::Fingerprint;
pub use flat::{Entry, Flat};
pub use patch::Patch;
pub use snapshot::LARGEST_FILE_BYTES;
pub use spec::{Fixture, FixtureCommit, FixtureFile, Source};

pub use paths::{as_path as path_of, is_safe as is_safe_path};
pub use unified::patched_files;

/// A path of a [`Flat`] for people, written like `ChangedFile::path`.
pub fn shown_path(path: &[u8]) -> String {
    paths::shown(path).into_owned()
}
