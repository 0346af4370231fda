//! Folders that things are found in by name.

use std::collections::BTreeSet;

use super::folder::Folder;
use flashrig_config::FileError;

/// Folders that hold folders by name, the one that wins in front.
#[derive(Clone, Debug)]
pub(super) struct Places {
    folders: Vec<Folder>,
    /// What a folder must have in it to count.
    file: &'static str,
}

impl Places {
    /// Those of a project, which win, and the built-in ones.
    pub(super) fn new(own: Option<Folder>, built_in: Folder, file: &'static str) -> Self {
        let folders = own.into_iter().chain([built_in]).collect();
        Self { folders, file }
    }

    /// All names, sorted.
    pub(super) fn names(&self) -> Result<Vec<String>, FileError> {
        let mut names = BTreeSet::new();
        for place in &self.folders {
            for name in place.folder_names()? {
                if place.folder(&name).read(self.file)?.is_some() {
                    names.insert(name);
                }
            }
        }
        Ok(names.into_iter().collect())
    }

    /// The first folder of that name.
    pub(super) fn find(&self, name: &str) -> Result<Option<Folder>, FileError> {
        // A name is one folder's name; anything else could reach out of the library.
        if name.is_empty() || name.contains(['/', '\\']) || name == "." || name == ".." {
            return Ok(None);
        }
        for place in &self.folders {
            let folder = place.folder(name);
            if folder.read(self.file)?.is_some() {
                return Ok(Some(folder));
            }
        }
        Ok(None)
    }
}
