//! Where servers are that flashrig installed itself.

use std::path::{Path, PathBuf};

/// The folder of a server that flashrig installed, with its program below `bin`; `None` when it is
/// not installed.
pub fn folder(name: &str, cache: &Path) -> Option<PathBuf> {
    let folder = cache.join("servers").join(name);
    folder.join("bin").is_dir().then_some(folder)
}
