//! Profiles by name: a file of the user's project wins over the built-in one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use include_dir::Dir;

use super::{Document, FileError, read, unknown};

/// A profile that could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// No profile of that name.
    #[error("{}", unknown(.kind, .name, .known.iter().map(String::as_str)))]
    Unknown {
        /// `agent` or `server`.
        kind: &'static str,
        /// The name.
        name: String,
        /// All names.
        known: Vec<String>,
    },
    /// The profile is invalid.
    #[error(transparent)]
    File(#[from] FileError),
}

/// A folder of profiles: `harness/agents` or `harness/servers`.
#[derive(Clone, Debug)]
pub struct Profiles {
    kind: &'static str,
    folder: &'static str,
    own: Option<PathBuf>,
    built_in: &'static Dir<'static>,
}

impl Profiles {
    /// Profiles in `folder` below `harness/`, of the project and of `built_in`, the `harness/` that
    /// is part of the program. `kind` names one of them in errors.
    pub fn new(
        kind: &'static str,
        folder: &'static str,
        project: Option<&Path>,
        built_in: &'static Dir<'static>,
    ) -> Self {
        let own = project
            .map(|p| p.join("harness").join(folder))
            .filter(|f| f.is_dir());
        Self {
            kind,
            folder,
            own,
            built_in,
        }
    }

    /// The names, sorted.
    pub fn names(&self) -> Vec<String> {
        let own = self
            .own
            .iter()
            .filter_map(|f| std::fs::read_dir(f).ok())
            .flatten()
            .filter_map(Result::ok)
            .map(|e| e.path());
        let built_in = self
            .built_in
            .get_dir(self.folder)
            .into_iter()
            .flat_map(|d| d.files())
            .map(|f| f.path().to_owned());
        let names: BTreeSet<String> = own
            .chain(built_in)
            .filter(|p| p.extension().is_some_and(|e| e == "toml"))
            .filter_map(|p| Some(p.file_stem()?.to_str()?.to_owned()))
            .collect();
        names.into_iter().collect()
    }

    /// A profile's file.
    ///
    /// # Errors
    /// An unknown name, answered with the nearest and the list; an unreadable file.
    pub fn document(&self, name: &str) -> Result<Document, ProfileError> {
        let names = self.names();
        if !names.iter().any(|n| n == name) {
            return Err(ProfileError::Unknown {
                kind: self.kind,
                name: name.to_owned(),
                known: names,
            });
        }
        if let Some(path) = self.own_file(name) {
            return Ok(Document::new(path.display().to_string(), read(&path)?));
        }
        let file = format!("{}/{name}.toml", self.folder);
        let text = self.built_in.get_file(&file);
        let text = text.and_then(|file| file.contents_utf8());
        Ok(Document::new(
            format!("<built-in>/harness/{file}"),
            text.unwrap_or_default(),
        ))
    }

    /// The project's file of a profile, relative to the project's folder; `None` when the built-in
    /// one is used.
    pub fn project_file(&self, name: &str) -> Option<String> {
        self.own_file(name)?;
        Some(format!("harness/{}/{name}.toml", self.folder))
    }

    fn own_file(&self, name: &str) -> Option<PathBuf> {
        let path = self.own.as_ref()?.join(format!("{name}.toml"));
        path.is_file().then_some(path)
    }
}
