//! One folder of files, on disk or built into the binary, so that the rest of the room need not
//! know which.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use include_dir::{Dir, DirEntry};
use serde::de::DeserializeOwned;

use flashrig_config::{Document, FileError};

/// A folder.
#[derive(Clone, Debug)]
pub(super) enum Folder {
    /// On disk.
    Disk(PathBuf),
    /// In the binary.
    BuiltIn {
        /// The embedded folder that this one lies in or is.
        root: &'static Dir<'static>,
        /// What that folder is called, for messages.
        root_name: &'static str,
        /// Path from the root, without slashes at its ends; empty for the root itself.
        path: String,
    },
}

/// Left behind by the system's file manager; part of nothing.
const LITTER: &str = ".DS_Store";

impl Folder {
    /// The whole of an embedded folder.
    pub(super) fn built_in(root: &'static Dir<'static>, root_name: &'static str) -> Self {
        Self::BuiltIn {
            root,
            root_name,
            path: String::new(),
        }
    }

    /// A folder inside this one, whether it exists or not.
    pub(super) fn folder(&self, path: &str) -> Self {
        match self {
            Self::Disk(folder) => Self::Disk(folder.join(path)),
            Self::BuiltIn {
                root,
                root_name,
                path: base,
            } => Self::BuiltIn {
                root,
                root_name,
                path: join(base, path),
            },
        }
    }

    /// How a person finds `path` in this folder.
    pub(super) fn show(&self, path: &str) -> String {
        match self {
            Self::Disk(folder) => folder.join(path).display().to_string(),
            Self::BuiltIn {
                root_name,
                path: base,
                ..
            } => {
                format!("<built-in>/{root_name}/{}", join(base, path))
            }
        }
    }

    /// Where it lies on disk, if it does.
    pub(super) fn on_disk(&self) -> Option<&Path> {
        match self {
            Self::Disk(folder) => Some(folder),
            Self::BuiltIn { .. } => None,
        }
    }

    /// The folder of the task `name` relative to the project's folder, if it is not built in.
    pub(super) fn project_folder(&self, name: &str) -> Option<String> {
        self.on_disk().map(|_| format!("tasks/{name}"))
    }

    /// The contents of a file; `None` when there is none of that name.
    pub(super) fn read(&self, path: &str) -> Result<Option<Vec<u8>>, FileError> {
        match self {
            Self::Disk(folder) => match std::fs::read(folder.join(path)) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(e) if is_absence(e.kind()) => Ok(None),
                Err(e) => Err(self.unreadable(path, &e)),
            },
            Self::BuiltIn {
                root, path: base, ..
            } => Ok(root
                .get_file(join(base, path))
                .map(|file| file.contents().to_vec())),
        }
    }

    /// The contents of a text file that must be there.
    pub(super) fn text(&self, path: &str) -> Result<String, FileError> {
        let bytes = self
            .read(path)?
            .ok_or_else(|| FileError::whole(self.show(path), "the file is missing"))?;
        String::from_utf8(bytes).map_err(|e| {
            let line = e.as_bytes()[..e.utf8_error().valid_up_to()]
                .split(|b| *b == b'\n')
                .count();
            FileError::whole(self.show(path), format!("line {line} is not UTF-8 text"))
        })
    }

    /// A TOML file that must be there, of the format `schema`.
    pub(super) fn document<T: DeserializeOwned>(
        &self,
        path: &str,
        schema: &str,
    ) -> Result<(T, Document), FileError> {
        let document = Document::new(self.show(path), self.text(path)?);
        Ok((document.parse_schema(schema)?, document))
    }

    /// Names of the folders directly inside, sorted; none when this one does not exist.
    pub(super) fn folder_names(&self) -> Result<Vec<String>, FileError> {
        let mut names = Vec::new();
        match self {
            Self::Disk(folder) => {
                for entry in self.list(folder)? {
                    if entry.is_dir()
                        && let Some(name) = entry.file_name().and_then(|n| n.to_str())
                    {
                        names.push(name.to_owned());
                    }
                }
            }
            Self::BuiltIn { root, path, .. } => {
                let folder = if path.is_empty() {
                    Some(*root)
                } else {
                    root.get_dir(path)
                };
                let folders = folder.into_iter().flat_map(Dir::dirs);
                names.extend(folders.filter_map(|d| Some(d.path().file_name()?.to_str()?.into())));
            }
        }
        names.sort();
        Ok(names)
    }

    /// All files inside, at any depth, by their path from here; none when the folder does not
    /// exist. Symbolic links are refused: what they lead to differs from machine to machine.
    pub(super) fn files(&self) -> Result<BTreeMap<String, Vec<u8>>, FileError> {
        let mut files = BTreeMap::new();
        match self {
            Self::Disk(folder) => self.collect(folder, "", &mut files)?,
            Self::BuiltIn { root, path, .. } => {
                let folder = if path.is_empty() {
                    Some(*root)
                } else {
                    root.get_dir(path)
                };
                let mut open: Vec<&Dir<'_>> = folder.into_iter().collect();
                let skip = if path.is_empty() { 0 } else { path.len() + 1 };
                while let Some(folder) = open.pop() {
                    for entry in folder.entries() {
                        match entry {
                            DirEntry::Dir(inner) => open.push(inner),
                            DirEntry::File(file) => {
                                let path = file.path().to_string_lossy();
                                if !path.ends_with(LITTER) {
                                    files.insert(path[skip..].to_owned(), file.contents().into());
                                }
                            }
                        }
                    }
                }
            }
        }
        Ok(files)
    }

    fn collect(
        &self,
        folder: &Path,
        prefix: &str,
        files: &mut BTreeMap<String, Vec<u8>>,
    ) -> Result<(), FileError> {
        for entry in self.list(folder)? {
            let Some(name) = entry.file_name().and_then(|n| n.to_str()) else {
                let problem = "its name is not UTF-8 text".to_owned();
                return Err(FileError::Unreadable {
                    file: entry.display().to_string(),
                    problem,
                });
            };
            let path = join(prefix, name);
            let kind = entry
                .symlink_metadata()
                .map_err(|e| self.unreadable(&path, &e))?;
            if kind.is_symlink() {
                let problem = "is a symbolic link; put the file itself here";
                return Err(FileError::whole(self.show(&path), problem));
            } else if kind.is_dir() {
                self.collect(&entry, &path, files)?;
            } else if name != LITTER {
                let bytes = std::fs::read(&entry).map_err(|e| self.unreadable(&path, &e))?;
                files.insert(path, bytes);
            }
        }
        Ok(())
    }

    /// Paths of the entries of a folder on disk; none when it does not exist.
    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, FileError> {
        let unreadable = |e: &std::io::Error| FileError::Unreadable {
            file: folder.display().to_string(),
            problem: e.to_string(),
        };
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(e) if is_absence(e.kind()) => return Ok(Vec::new()),
            Err(e) => return Err(unreadable(&e)),
        };
        entries
            .map(|entry| entry.map(|e| e.path()).map_err(|e| unreadable(&e)))
            .collect()
    }

    fn unreadable(&self, path: &str, error: &std::io::Error) -> FileError {
        FileError::Unreadable {
            file: self.show(path),
            problem: error.to_string(),
        }
    }
}

fn is_absence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn join(base: &str, path: &str) -> String {
    match (base.is_empty(), path.is_empty()) {
        (true, _) => path.to_owned(),
        (_, true) => base.to_owned(),
        _ => format!("{base}/{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_reads_alike_on_disk_and_from_the_binary() {
        let disk = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let disk = Folder::Disk(disk);
        let built_in = Folder::built_in(&crate::embedded::FIXTURES, "fixtures");
        assert_eq!(
            disk.folder_names().unwrap(),
            built_in.folder_names().unwrap()
        );
        for name in disk.folder_names().unwrap() {
            let (disk, built_in) = (disk.folder(&name), built_in.folder(&name));
            let files = disk.files().unwrap();
            assert!(files.contains_key("fixture.toml"), "{name}");
            assert_eq!(files, built_in.files().unwrap(), "{name}");
            assert_eq!(
                disk.read("fixture.toml").unwrap(),
                built_in.read("fixture.toml").unwrap(),
                "{name}"
            );
        }
    }

    #[test]
    fn a_missing_folder_is_empty_and_a_missing_file_is_none() {
        let built_in = Folder::built_in(&crate::embedded::FIXTURES, "fixtures").folder("nope");
        assert!(built_in.files().unwrap().is_empty());
        let disk = Folder::Disk("/nonexistent/flashrig".into());
        assert!(disk.files().unwrap().is_empty());
        assert!(disk.folder_names().unwrap().is_empty());
        assert_eq!(disk.read("a").unwrap(), None);
    }

    #[cfg(unix)]
    #[test]
    fn symbolic_links_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("name")).unwrap();
        let error = Folder::Disk(folder.path().into()).files().unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("name: is a symbolic link; put the file itself here")
        );
    }
}
