//! Where profiles come from: `harness/agents/NAME.toml` of the user's project, else the built-in.

use std::path::Path;

use super::raw::RawProfile;
use super::{AGENT_SCHEMA, Profile};
use flashrig_config::{ProfileError, Profiles};
use flashrig_harness::HARNESS;

/// All agent profiles.
#[derive(Clone, Debug)]
pub struct Library(Profiles);

impl Library {
    /// Profiles of the project in `project`, and the built-in ones.
    pub fn new(project: Option<&Path>) -> Self {
        Self(Profiles::new("agent", "agents", project, &HARNESS))
    }

    /// The names, sorted.
    pub fn names(&self) -> Vec<String> {
        self.0.names()
    }

    /// Loads one profile.
    ///
    /// # Errors
    /// An unknown name, or an invalid file with its place.
    pub fn load(&self, name: &str) -> Result<Profile, ProfileError> {
        let document = self.0.document(name)?;
        let raw: RawProfile = document.parse_schema(AGENT_SCHEMA)?;
        let mut profile = Profile::from_raw(name, &document, raw)?;
        profile.file = self.project_file(name);
        Ok(profile)
    }

    /// The project's file of a profile, relative to the project's folder; `None` when the built-in
    /// one is used.
    pub fn project_file(&self, name: &str) -> Option<String> {
        self.0.project_file(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_harness::HARNESS;

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
            "unknown agent \"cluade\"; known: claude, command, opencode; did you mean \"claude\"?"
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
    fn an_unknown_field_is_named_with_file_line_and_column() {
        let text = "schema = \"flashrig.agent/1\"\ntitel = \"x\"\n";
        let (_dir, library) = project_with(text);
        let error = library.load("mine").unwrap_err().to_string();
        assert!(
            error.contains("harness/agents/mine.toml:2:1: titel: unknown field \"titel\"; known: "),
            "{error}"
        );
    }

    #[test]
    fn a_project_profile_wins_and_an_unknown_placeholder_names_its_field() {
        let text = std::str::from_utf8(HARNESS.get_file("agents/command.toml").unwrap().contents())
            .unwrap()
            .replace("args = []", "args = [\"{promt}\"]");
        let (_dir, library) = project_with(&text);
        let error = library.load("mine").unwrap_err().to_string();
        assert!(
            error
                .contains("mine.toml:15:9: launch.args[0]: unknown placeholder \"promt\"; known: ")
                && error.ends_with("; did you mean \"prompt\"?"),
            "{error}"
        );
    }
}
