//! Tasks and fixtures: what an agent is asked to do, on what, and how the result is checked.
//!
//! This room reads and validates the data; it runs nothing and knows no experiment.
//!
//! | file | job |
//! |---|---|
//! | `library.rs` | finds tasks and fixtures by name: the project's own first, then the built-in ones |
//! | `folder.rs` | one folder of files, on disk or in the binary |
//! | `raw.rs` | the files as people write them |
//! | `spec.rs`, `walkthrough.rs` | the same, validated |
//! | `read_task.rs`, `read_fixture.rs`, `read_walkthrough.rs` | from the one to the other |
//! | `paths.rs` | relative paths and globs as people write them |
//! | `error.rs` | what can be wrong |

mod error;
mod folder;
mod library;
mod paths;
mod places;
mod raw;
mod read_fixture;
mod read_task;
mod read_walkthrough;
mod spec;

pub use error::TaskError;
pub use flashrig_sim::{Step, Walkthrough};
pub use flashrig_workspace::{Fixture, FixtureCommit, FixtureFile, Source};
pub use library::Library;
pub use raw::{FixtureFile as FixtureToml, TaskFile as TaskToml};
pub use spec::*;
