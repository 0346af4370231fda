//! Folders of flashrig's own.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// flashrig's cache folder: `FLASHRIG_CACHE`, else the system's place for caches.
pub fn cache_folder(operator: &BTreeMap<OsString, OsString>) -> PathBuf {
    let of = |name: &str| {
        operator
            .get(OsStr::new(name))
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    if let Some(folder) = of("FLASHRIG_CACHE") {
        return folder;
    }
    let home = of("HOME").unwrap_or_else(std::env::temp_dir);
    if cfg!(target_os = "macos") {
        return home.join("Library/Caches/flashrig");
    }
    of("XDG_CACHE_HOME")
        .unwrap_or_else(|| home.join(".cache"))
        .join("flashrig")
}
