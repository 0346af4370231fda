//! How a server is started: the `[start]` of a profile validated, what was set of it, and the
//! command line that comes of it. Nothing is run here but the program's own `--help` and version.

mod error;
mod flags;
mod hashes;
mod identity;
mod launch;
mod places;
pub mod raw;
mod recipe;
mod template;
mod variable;

pub use error::LaunchError;
pub(super) use flags::check;
pub use flags::{FlagCheck, FlagError, check_flags};
pub(super) use hashes::hashed;
pub(super) use identity::program_version;
pub use launch::{HOST, Launch, Valued};
pub use places::Places;
pub use raw::Value;
pub(super) use recipe::RecipeParts;
pub use recipe::{Ready, Recipe};
pub use variable::{FileKind, Reported, Variable};
