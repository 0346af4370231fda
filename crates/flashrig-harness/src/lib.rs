//! `harness/` of the repository as it is built into the program: profiles of agents and servers,
//! and the pinned packages that they are installed from.
//!
//! A file of the same name in the user's project wins; that rule is applied where profiles are
//! loaded (`flashrig_config::Profiles`), not here.

use include_dir::{Dir, include_dir};

/// The folder `harness/`.
pub static HARNESS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/harness");
