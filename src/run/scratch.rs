//! The folder that holds workspaces and homes while a run goes on.
//!
//! It lies outside the user's project: agents read instruction files in every folder above their
//! workspace, and the operator's must not be among them.

use std::fs::File;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Files and folders that agents and their tools take instructions from, wherever they stand
/// above a workspace.
const INSTRUCTIONS: [&str; 14] = [
    "CLAUDE.md",
    "CLAUDE.local.md",
    ".claude",
    ".mcp.json",
    "AGENTS.md",
    "AGENTS.override.md",
    ".codex",
    "GEMINI.md",
    "QWEN.md",
    ".qwen",
    "opencode.json",
    ".opencode",
    ".cargo",
    "rust-toolchain.toml",
];
const PREFIX: &str = "flashrig-";
const LOCK: &str = "lock";

/// No folder to work in.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// Every candidate has instruction files above it.
    #[error(
        "no place for workspaces: {0}; agents would read it. Move it away, or set TMPDIR to a \
         folder with nothing of the kind in it or above it"
    )]
    Instructions(String),
    /// No candidate can be written.
    #[error("no place for workspaces: {folder} cannot be written: {source}; set TMPDIR")]
    Unwritable {
        /// The last one tried.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// The folder; removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    /// Held as long as the folder is used.
    _lock: File,
}

impl Scratch {
    /// Makes one in the first of `candidates` that can be written and has no instruction files
    /// in it or above it. What earlier runs left behind when they were killed is removed.
    ///
    /// # Errors
    /// No candidate will do.
    pub fn new(candidates: &[PathBuf]) -> Result<Self, ScratchError> {
        let mut error = None;
        for folder in candidates {
            let Ok(folder) = folder.canonicalize() else {
                continue;
            };
            if let Some(file) = instructions_above(&folder) {
                error.get_or_insert(ScratchError::Instructions(format!(
                    "{} is there",
                    file.display()
                )));
                continue;
            }
            remove_stale(&folder);
            match locked(&folder) {
                Ok(made) => return Ok(made),
                Err(source) => error = Some(ScratchError::Unwritable { folder, source }),
            }
        }
        Err(error.unwrap_or_else(|| ScratchError::Unwritable {
            folder: PathBuf::from("TMPDIR"),
            source: std::io::ErrorKind::NotFound.into(),
        }))
    }

    /// The places tried: the temporary folder, the usual ones, the cache folder.
    pub fn candidates(cache: &Path) -> Vec<PathBuf> {
        let mut places = vec![
            std::env::temp_dir(),
            PathBuf::from("/tmp"),
            PathBuf::from("/var/tmp"),
        ];
        if std::fs::create_dir_all(cache).is_ok() {
            places.push(cache.to_owned());
        }
        places
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn instructions_above(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().find_map(|f| {
        INSTRUCTIONS
            .iter()
            .map(|name| f.join(name))
            .find(|p| p.symlink_metadata().is_ok())
    })
}

/// Makes a folder and locks it.
fn locked(parent: &Path) -> std::io::Result<Scratch> {
    let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
    let lock = File::create(folder.path().join(LOCK))?;
    lock.lock()?;
    Ok(Scratch {
        folder,
        _lock: lock,
    })
}

/// Removes scratch folders whose flashrig is gone: the system has let go of their locks.
fn remove_stale(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        if let Ok(lock) = File::open(entry.path().join(LOCK))
            && lock.try_lock().is_ok()
        {
            let _ = super::prepare::remove_all(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_below_instruction_files_is_passed_over_and_named_when_there_is_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let (bad, good) = (dir.path().join("bad/inner"), dir.path().join("good"));
        std::fs::create_dir_all(&bad).unwrap();
        std::fs::create_dir_all(&good).unwrap();
        std::fs::write(dir.path().join("bad/CLAUDE.md"), "x").unwrap();
        let scratch = Scratch::new(&[bad.clone(), good.clone()]).unwrap();
        assert!(scratch.path().starts_with(good.canonicalize().unwrap()));
        let error = Scratch::new(&[bad]).unwrap_err().to_string();
        assert!(error.contains("bad/CLAUDE.md"), "{error}");
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_a_living_one_uses_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let living = Scratch::new(&[dir.path().to_owned()]).unwrap();
        let killed = dir.path().join(format!("{PREFIX}killed"));
        std::fs::create_dir(&killed).unwrap();
        std::fs::write(killed.join(LOCK), "").unwrap();
        remove_stale(dir.path());
        assert!(living.path().exists());
        assert!(!killed.exists());
    }
}
