//! The folder that holds workspaces and homes while a run goes on.
//!
//! It lies outside the user's project: agents read instruction files in every folder above their
//! workspace, and the operator's must not be among them.

use flashrig_config::without_temporary_name;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

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
    folder: PathBuf,
    /// This user's folder, which it is in.
    own: PathBuf,
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
        &self.folder
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

/// Makes a folder in this user's folder in `parent`, and removes there what killed runs left.
///
/// All of it happens under the lock of the user's folder, and a new folder is locked before that
/// lock is let go: no other flashrig ever sees one that is made and not locked. Locks are on the
/// folders themselves; the system lets go of them when their flashrig ends, however it ends.
fn locked(parent: &Path) -> io::Result<Scratch> {
    let own = parent.join(format!("flashrig-{}", geteuid()));
    let _held = hold(&own)?;
    remove_stale(&own);
    let folder = tempfile::Builder::new()
        .prefix("run-")
        .tempdir_in(&own)
        .map_err(without_temporary_name)?;
    let lock = File::open(folder.path())?;
    lock.lock()?;
    Ok(Scratch {
        folder: folder.keep(),
        own,
        _lock: lock,
    })
}

/// Makes this user's folder where it is missing, and locks it.
///
/// # Errors
/// It is not a folder, belongs to another user, or cannot be locked.
fn hold(own: &Path) -> io::Result<File> {
    loop {
        match try_hold(own) {
            Ok(Some(lock)) => return Ok(lock),
            // Another flashrig removed it meanwhile.
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound && has_parent(own) => {}
            Err(error) => return Err(error),
        }
    }
}

/// `None` when the folder that was locked is not the one that is there now.
fn try_hold(own: &Path) -> io::Result<Option<File>> {
    match DirBuilder::new().mode(0o700).create(own) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    if !is_own_folder(own)? {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{} belongs to another user or is not a folder",
                own.display()
            ),
        ));
    }
    fs::set_permissions(own, fs::Permissions::from_mode(0o700))?;
    let lock = File::open(own)?;
    lock.lock()?;
    let (held, there) = (lock.metadata()?, fs::symlink_metadata(own)?);
    let is_there = (there.dev(), there.ino()) == (held.dev(), held.ino());
    Ok(is_there.then_some(lock))
}

fn has_parent(own: &Path) -> bool {
    own.parent().is_some_and(Path::is_dir)
}

/// Whether a path is a folder, not a link to one, and this user's.
fn is_own_folder(path: &Path) -> io::Result<bool> {
    let found = fs::symlink_metadata(path)?;
    Ok(found.is_dir() && found.uid() == geteuid().as_raw())
}

/// Removes folders whose flashrig is gone. Only folders of this user's are looked at.
fn remove_stale(own: &Path) {
    for entry in fs::read_dir(own).into_iter().flatten().flatten() {
        let path = entry.path();
        if is_own_folder(&path).is_ok_and(|own| own)
            && let Ok(lock) = File::open(&path)
            && lock.try_lock().is_ok()
        {
            let _ = remove_all(&path);
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let held = hold(&self.own);
        let _ = remove_all(&self.folder);
        // Where no other run uses it, nothing stays behind.
        if held.is_ok() {
            let _ = fs::remove_dir(&self.own);
        }
    }
}

/// Removes a folder that may hold folders without write permission (Go's module cache, say).
pub fn remove_all(folder: &Path) -> io::Result<()> {
    if fs::remove_dir_all(folder).is_ok() {
        return Ok(());
    }
    make_writable(folder);
    fs::remove_dir_all(folder)
}

fn make_writable(folder: &Path) {
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            make_writable(&entry.path());
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

    fn own(dir: &Path) -> PathBuf {
        dir.join(format!("flashrig-{}", geteuid()))
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_a_living_one_uses_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let living = Scratch::new(&[dir.path().to_owned()]).unwrap();
        let killed = own(dir.path()).join("run-killed");
        fs::create_dir(&killed).unwrap();
        let later = Scratch::new(&[dir.path().to_owned()]).unwrap();
        assert!(living.path().exists());
        assert!(!killed.exists());
        drop(living);
        assert!(later.path().exists());
        drop(later);
        assert!(!own(dir.path()).exists());
    }

    #[test]
    fn no_folder_is_removed_while_many_are_made_and_dropped_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let places = [dir.path().to_owned()];
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let scratch = Scratch::new(&places).unwrap();
                        fs::write(scratch.path().join("file"), "x").unwrap();
                        std::thread::yield_now();
                        assert!(scratch.path().join("file").exists());
                    }
                });
            }
        });
        assert!(!own(dir.path()).exists());
    }

    #[test]
    fn a_link_in_the_place_of_the_users_folder_is_refused_and_its_target_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (place, elsewhere) = (dir.path().join("tmp"), dir.path().join("elsewhere"));
        fs::create_dir(&place).unwrap();
        fs::create_dir_all(elsewhere.join("run-x")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, own(&place)).unwrap();
        let error = Scratch::new(&[place]).unwrap_err().to_string();
        assert!(error.contains("not a folder"), "{error}");
        assert!(elsewhere.join("run-x").exists());
    }

    #[test]
    fn a_folder_of_another_user_is_left_alone_and_the_next_place_is_taken() {
        if !geteuid().is_root() {
            eprintln!("left out: only root can give a folder to another user");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (foreign, next) = (dir.path().join("foreign"), dir.path().join("next"));
        fs::create_dir_all(own(&foreign).join("run-theirs")).unwrap();
        fs::create_dir(&next).unwrap();
        std::os::unix::fs::chown(own(&foreign), Some(12_345), None).unwrap();
        let scratch = Scratch::new(&[foreign.clone(), next.clone()]).unwrap();
        assert!(scratch.path().starts_with(next.canonicalize().unwrap()));
        assert!(own(&foreign).join("run-theirs").exists());
        // One that is in this user's folder, but another's, stays too.
        let theirs = own(&next).join("run-theirs");
        fs::create_dir(&theirs).unwrap();
        std::os::unix::fs::chown(&theirs, Some(12_345), None).unwrap();
        drop(Scratch::new(&[next]).unwrap());
        assert!(theirs.exists());
    }
}
