//! Servers that flashrig can install itself: what it takes, as data in `harness/python/`, and where
//! they are once they are there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use flashrig_config::{Document, FileError};
use flashrig_harness::HARNESS;

/// Where the data is.
const DATA: &str = "python";
/// What starts a server, wherever its folder lies.
pub(super) const STARTER: &str = "#!/bin/sh
# {key}
here=$(CDPATH= cd -- \"${0%/*}/..\" && pwd -P) || exit 1
exec \"$here/venv/bin/python\" -I \"$here/serve.py\" \"$@\"
";

/// The folder of a server that flashrig installed, with its program below `bin`; `None` when it is
/// not installed.
pub fn folder(name: &str, cache: &Path) -> Option<PathBuf> {
    let folder = Manifest::named(name)?.folder(cache);
    folder.join("bin").is_dir().then_some(folder)
}

/// The names of the servers that flashrig installs, sorted.
pub fn names() -> Vec<String> {
    let Some(data) = HARNESS.get_dir(DATA) else {
        return Vec::new();
    };
    let mut names: Vec<String> = data
        .dirs()
        .filter_map(|dir| Some(dir.path().file_name()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    names
}

/// All that decides what is installed: other files, another folder.
#[derive(Clone, Debug)]
pub struct Manifest {
    name: String,
    files: BTreeMap<String, String>,
}

/// What a manifest says of itself, in its `install.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// One line for people.
    pub title: String,
    /// The program below `bin`.
    pub program: String,
    /// The oldest Python that the packages run on.
    pub python: String,
    /// The model's file or folder.
    pub model: String,
    /// About what it takes on disk.
    pub megabytes: u64,
    /// Programs that the server wants beside Python, by system.
    #[serde(default)]
    pub needs: BTreeMap<String, Vec<String>>,
}

impl Manifest {
    /// That of a server which flashrig installs.
    pub fn named(name: &str) -> Option<Self> {
        let data = HARNESS.get_dir(format!("{DATA}/{name}"))?;
        let files = data.files().filter_map(|file| {
            let name = file.path().file_name()?.to_str()?.to_owned();
            Some((name, file.contents_utf8()?.to_owned()))
        });
        Some(Self {
            name: name.to_owned(),
            files: files.collect(),
        })
    }

    /// The same under another name.
    #[must_use]
    pub fn renamed(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// The same with one of its files replaced or added.
    #[must_use]
    pub fn with_file(mut self, name: &str, text: impl Into<String>) -> Self {
        self.files.insert(name.to_owned(), text.into());
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text of one of its files.
    pub fn file(&self, name: &str) -> Option<&str> {
        self.files.get(name).map(String::as_str)
    }

    /// Its files, by name.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .map(|(n, text)| (n.as_str(), text.as_str()))
    }

    /// What it says of itself.
    ///
    /// # Errors
    /// Its `install.toml` is missing or invalid.
    pub fn recipe(&self) -> Result<Recipe, FileError> {
        let file = format!("{DATA}/{}/install.toml", self.name);
        let text = self.file("install.toml").unwrap_or_default();
        Document::new(file, text).parse()
    }

    /// The folder that it is installed into, there or not.
    pub fn folder(&self, cache: &Path) -> PathBuf {
        let mut hash = Sha256::new();
        hash.update(STARTER);
        for (name, text) in &self.files {
            // Lengths keep apart what would otherwise run together.
            for part in [name, text] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part.as_bytes());
            }
        }
        let key = hex::encode(&hash.finalize()[..6]);
        place(cache).join(format!("{}-{key}", self.name))
    }
}

/// Where installed servers are.
pub(super) fn place(cache: &Path) -> PathBuf {
    cache.join("servers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_server_that_can_be_installed_has_a_profile_a_recipe_and_pinned_hashes() {
        assert_eq!(names(), ["llama-server", "mlx-lm"]);
        let profiles = crate::Library::new(None).names();
        for name in names() {
            assert!(profiles.contains(&name), "{name} has no profile");
            let manifest = Manifest::named(&name).unwrap();
            manifest.recipe().unwrap();
            for needed in ["serve.py", "make_model.py", "requirements.txt"] {
                assert!(manifest.file(needed).is_some(), "{name} has no {needed}");
            }
            for (file, text) in manifest.files().filter(|(f, _)| f.ends_with(".txt")) {
                let code = |line: &&str| !line.trim_start().starts_with('#');
                let hashed = text.lines().filter(code).collect::<String>();
                let pinned = hashed.matches("==").count();
                assert!(pinned > 0 && hashed.contains("--hash=sha256:"), "{file}");
                assert!(!hashed.contains("://"), "{file} names an address");
            }
        }
    }

    #[test]
    fn another_text_is_another_folder_and_what_is_not_there_has_none() {
        let cache = Path::new("/nowhere");
        let manifest = Manifest::named("mlx-lm").unwrap();
        let other = manifest.clone().with_file("serve.py", "print()");
        assert_ne!(manifest.folder(cache), other.folder(cache));
        assert_eq!(folder("mlx-lm", cache), None);
        assert_eq!(folder("vllm", cache), None);
    }
}
