//! Where profiles come from: `harness/agents/NAME.toml` of the user's project, else the built-in.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Profile;
use super::raw::RawProfile;
use crate::config::{self, FileError, nearest};
use crate::embedded;

/// A profile that could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// No profile of that name.
    #[error("unknown agent {name:?}{hint}; there are: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The nearest name, as a question.
        hint: String,
        /// All names.
        known: String,
    },
    /// The profile is invalid.
    #[error(transparent)]
    File(#[from] FileError),
}

/// All agent profiles.
#[derive(Clone, Debug)]
pub struct Library {
    folder: Option<PathBuf>,
}

impl Library {
    /// Profiles of the project in `project`, and the built-in ones.
    pub fn new(project: Option<&Path>) -> Self {
        Self {
            folder: project
                .map(|p| p.join("harness").join("agents"))
                .filter(|f| f.is_dir()),
        }
    }

    /// The names, sorted.
    pub fn names(&self) -> Vec<String> {
        let own = self
            .folder
            .iter()
            .filter_map(|f| std::fs::read_dir(f).ok())
            .flatten()
            .filter_map(Result::ok)
            .map(|e| e.path());
        let built_in = embedded::HARNESS
            .get_dir("agents")
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

    /// Loads one profile.
    ///
    /// # Errors
    /// An unknown name, or an invalid file with its place.
    pub fn load(&self, name: &str) -> Result<Profile, LibraryError> {
        let names = self.names();
        if !names.iter().any(|n| n == name) {
            let hint = nearest(name, names.iter().map(String::as_str))
                .map_or_else(String::new, |n| format!(" (did you mean {n:?}?)"));
            return Err(LibraryError::Unknown {
                name: name.to_owned(),
                hint,
                known: names.join(", "),
            });
        }
        let file_name = format!("{name}.toml");
        let own = self
            .folder
            .as_ref()
            .map(|f| f.join(&file_name))
            .filter(|p| p.is_file());
        let (file, text) = match own {
            Some(path) => (path.display().to_string(), config::read(&path)?),
            None => (
                format!("harness/agents/{file_name} (built in)"),
                embedded::HARNESS
                    .get_file(format!("agents/{file_name}"))
                    .and_then(|f| f.contents_utf8())
                    .unwrap_or_default()
                    .to_owned(),
            ),
        };
        let raw: RawProfile = config::read_toml(&file, &text)?;
        Ok(Profile::from_raw(name, &file, raw)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_profile_is_valid() {
        let library = Library::new(None);
        assert_eq!(library.names(), ["claude", "command", "opencode"]);
        for name in library.names() {
            library.load(&name).unwrap();
        }
    }

    #[test]
    fn an_unknown_agent_is_answered_with_the_nearest_name_and_the_list() {
        let error = Library::new(None).load("cluade").unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown agent \"cluade\" (did you mean \"claude\"?); there are: claude, command, opencode"
        );
    }

    fn project_with(text: &str) -> (tempfile::TempDir, Library) {
        let dir = tempfile::tempdir().unwrap();
        let agents = dir.path().join("harness/agents");
        std::fs::create_dir_all(&agents).unwrap();
        std::fs::write(agents.join("mine.toml"), text).unwrap();
        let library = Library::new(Some(dir.path()));
        (dir, library)
    }

    #[test]
    fn an_unknown_field_is_told_with_file_line_and_field() {
        let text = "schema = \"flashrig.agent/1\"\ntitel = \"x\"\n";
        let (_dir, library) = project_with(text);
        let error = library.load("mine").unwrap_err().to_string();
        assert!(error.contains("mine.toml"), "{error}");
        assert!(error.contains("line 2"), "{error}");
        assert!(error.contains("unknown field `titel`"), "{error}");
    }

    #[test]
    fn a_project_profile_wins_and_an_unknown_placeholder_names_its_field() {
        let text = std::str::from_utf8(
            embedded::HARNESS
                .get_file("agents/command.toml")
                .unwrap()
                .contents(),
        )
        .unwrap()
        .replace("args = []", "args = [\"{promt}\"]");
        let (_dir, library) = project_with(&text);
        let error = library.load("mine").unwrap_err().to_string();
        assert!(
            error.contains("field `launch.args`: unknown placeholder {promt}"),
            "{error}"
        );
    }
}
