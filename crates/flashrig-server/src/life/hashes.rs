//! SHA-256 of programs and models. A model of 20 GB is read once: what is known of a file is kept
//! in flashrig's cache folder until the file's size, time or inode is another.

use flashrig_config::without_temporary_name;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

const CHUNK: usize = 1 << 20;
/// A file that changed so lately may change again within the same tick of its clock.
const LATELY: Duration = Duration::from_secs(2);
/// Files of a folder that are hashed; a model has dozens.
const MOST_FILES: usize = 10_000;

/// A file or folder by its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hashed {
    /// SHA-256 in hex: of the file, or of the list of a folder's files with theirs.
    pub sha256: String,
    /// Bytes in all.
    pub bytes: u64,
}

/// Hashes a file or folder. Blocks while it reads.
///
/// # Errors
/// It cannot be read, or a folder has too many files to be a model.
pub fn hashed(path: &Path, cache: &Path) -> io::Result<Hashed> {
    let known = cache.join("hashes");
    if !path.metadata()?.is_dir() {
        return of_file(path, &known);
    }
    let mut files = Vec::new();
    list(path, &mut files)?;
    files.sort();
    let mut all = Sha256::new();
    let mut bytes = 0;
    for file in files {
        let one = of_file(&file, &known)?;
        let name = file.strip_prefix(path).unwrap_or(&file);
        all.update(format!("{}  {}\n", one.sha256, name.display()));
        bytes += one.bytes;
    }
    Ok(Hashed {
        sha256: hex::encode(all.finalize()),
        bytes,
    })
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // A link to a file is one, as caches of models have them; a link to a folder may turn in
        // a circle.
        if path.is_file() {
            files.push(path);
        } else if path.is_dir() && !path.is_symlink() {
            list(&path, files)?;
        }
        if files.len() > MOST_FILES {
            return Err(io::Error::other(format!(
                "{} holds more than {MOST_FILES} files",
                folder.display()
            )));
        }
    }
    Ok(())
}

fn of_file(path: &Path, known: &Path) -> io::Result<Hashed> {
    let facts = path.metadata()?;
    let name = fs::canonicalize(path)?;
    let key = format!(
        "{}\n{} {} {} {}.{:09}",
        name.display(),
        facts.dev(),
        facts.ino(),
        facts.len(),
        facts.mtime(),
        facts.mtime_nsec()
    );
    let note = known.join(hex::encode(Sha256::digest(key)));
    let is_hash = |text: &String| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let sha256 = match fs::read_to_string(&note).ok().filter(is_hash) {
        Some(sha256) => sha256,
        None => {
            let sha256 = read(path)?;
            let age = facts
                .modified()
                .ok()
                .and_then(|at| SystemTime::now().duration_since(at).ok());
            if age.is_some_and(|age| age > LATELY) {
                keep(known, &note, &sha256);
            }
            sha256
        }
    };
    Ok(Hashed {
        sha256,
        bytes: facts.len(),
    })
}

fn read(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok(hex::encode(hash.finalize())),
            Ok(count) => hash.update(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Without a note the file is read again, and nothing is lost but time.
fn keep(known: &Path, note: &Path, sha256: &str) {
    let kept = fs::create_dir_all(known)
        .and_then(|()| tempfile::NamedTempFile::new_in(known))
        .map_err(without_temporary_name)
        .and_then(|file| fs::write(file.path(), sha256).map(|()| file))
        .and_then(|file| file.persist(note).map_err(|error| error.error));
    if let Err(error) = kept {
        tracing::warn!(%error, "what was hashed cannot be kept in the cache folder");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn old(path: &Path, text: &str) {
        fs::write(path, text).unwrap();
        let past = SystemTime::now() - Duration::from_secs(3600);
        File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(past)
            .unwrap();
    }

    #[test]
    fn a_file_is_read_once_until_it_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let (file, cache) = (folder.path().join("m"), folder.path().join("cache"));
        old(&file, "abc");
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hashed(&file, &cache).unwrap().sha256, abc);
        let notes: Vec<_> = fs::read_dir(cache.join("hashes")).unwrap().collect();
        let note = notes[0].as_ref().unwrap().path();
        let lie = "0".repeat(64);
        fs::write(&note, &lie).unwrap();
        assert_eq!(hashed(&file, &cache).unwrap().sha256, lie, "not read again");
        fs::write(&note, "half a no").unwrap();
        assert_eq!(hashed(&file, &cache).unwrap().sha256, abc, "no hash");
        fs::write(&note, &lie).unwrap();
        fs::write(&file, "abd").unwrap();
        assert_ne!(hashed(&file, &cache).unwrap().sha256, lie, "another file");
    }

    #[test]
    fn a_file_of_this_moment_is_not_kept_as_known() {
        let folder = tempfile::tempdir().unwrap();
        let (file, cache) = (folder.path().join("m"), folder.path().join("cache"));
        fs::write(&file, "abc").unwrap();
        hashed(&file, &cache).unwrap();
        assert!(!cache.exists());
    }

    #[test]
    fn a_folder_is_its_files_names_and_contents() {
        let folder = tempfile::tempdir().unwrap();
        let (model, cache) = (folder.path().join("model"), folder.path().join("cache"));
        fs::create_dir_all(model.join("b")).unwrap();
        old(&model.join("a"), "1");
        old(&model.join("b/c"), "22");
        let first = hashed(&model, &cache).unwrap();
        assert_eq!(first.bytes, 3);
        fs::rename(model.join("a"), model.join("d")).unwrap();
        assert_ne!(hashed(&model, &cache).unwrap().sha256, first.sha256);
        fs::rename(model.join("d"), model.join("a")).unwrap();
        assert_eq!(hashed(&model, &cache).unwrap(), first);
    }
}
