#![doc = include_str!("../README.md")]
//!
//! # Inside
//!
//! [`Base`] uses everything else: `source` fills its bare repository (the *vault*), `copy` makes the
//! template and the workspaces, `snapshot` (with `ignores`) reads a workspace into a tree, `patch`
//! and `render` write the difference as text, `unified` and `apply` read it back. `flat` lists a
//! tree, `files` writes one, and `git` opens every repository.

mod apply;
mod base;
mod copy;
mod error;
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

pub use base::Base;
pub use copy::CopyReport;
pub use error::WorkspaceError;
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
