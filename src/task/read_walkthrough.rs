//! Checks a walkthrough as far as that can be done without running it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::folder::Folder;
use super::raw::WALKTHROUGH_SCHEMA;
use super::{Source, Step, Walkthrough, paths};
use flashrig_config::FileError;

const FILE: &str = "walkthrough.toml";

/// The file with its steps not yet read. They are read one by one, because the parser loses the
/// place of an error within a list of tagged tables.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWalkthrough {
    schema: String,
    #[serde(default)]
    steps: Vec<toml::Table>,
}

/// Reads the walkthrough in a task's folder, if there is one.
pub(super) fn read(folder: &Folder, source: &Source) -> Result<Option<Walkthrough>, FileError> {
    if folder.read(FILE)?.is_none() {
        return Ok(None);
    }
    let (raw, document) = folder.document::<RawWalkthrough>(FILE, WALKTHROUGH_SCHEMA)?;
    let mut steps = Vec::new();
    for (index, table) in raw.steps.into_iter().enumerate() {
        steps.push(
            Step::deserialize(table)
                .map_err(|e| document.error_in(&format!("steps[{index}]"), &e))?,
        );
    }
    let walkthrough = Walkthrough {
        schema: raw.schema,
        steps,
    };
    if !matches!(walkthrough.steps.last(), Some(Step::Say { .. })) {
        let problem = "must end with a step `do = \"say\"`, which ends the session";
        return Err(document.error("steps", problem));
    }
    let mut tree = Known::of(source);
    for (index, step) in walkthrough.steps.iter().enumerate() {
        tree.check(step).map_err(|(field, problem)| {
            document.error(format!("steps[{index}].{field}"), problem)
        })?;
    }
    Ok(Some(walkthrough))
}

/// What is known of the workspace's files while the steps go by.
enum Known {
    /// Every file, by path; `None` is one that is not text.
    Files(BTreeMap<String, Option<String>>),
    /// Nothing: the repository is the user's own, or a command may have changed anything.
    Nothing,
}

/// The field at fault, and what is wrong with it.
type Fault = (&'static str, String);

impl Known {
    fn of(source: &Source) -> Self {
        match source {
            Source::Fixture(fixture) => {
                let files = fixture
                    .commits
                    .last()
                    .map_or(&[][..], |commit| &commit.files);
                let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
                Self::Files(
                    files
                        .iter()
                        .map(|f| (f.path.clone(), text(&f.bytes)))
                        .collect(),
                )
            }
            Source::Repository { .. } => Self::Nothing,
        }
    }

    fn check(&mut self, step: &Step) -> Result<(), Fault> {
        match step {
            Step::Read { path, .. } => {
                inside(path)?;
                self.text(path)?;
            }
            Step::Search { pattern, path, .. } => {
                regex::Regex::new(pattern).map_err(|_| {
                    (
                        "pattern",
                        format!("`{pattern}` is not a regular expression"),
                    )
                })?;
                if let Some(path) = path {
                    inside(path)?;
                    self.must_hold(path)?;
                }
            }
            Step::Edit { path, old, new, .. } => {
                inside(path)?;
                self.edit(path, old, new)?;
            }
            Step::Write { path, content, .. } => {
                inside(path)?;
                if let Self::Files(files) = self {
                    files.insert(path.clone(), Some(content.clone()));
                }
            }
            Step::Run { command, .. } => {
                if command.trim().is_empty() {
                    return Err(("command", "is empty".to_owned()));
                }
                if !leaves_files_alone(command) {
                    *self = Self::Nothing;
                }
            }
            Step::Say { text } => {
                if text.trim().is_empty() {
                    return Err(("text", "is empty".to_owned()));
                }
            }
        }
        Ok(())
    }

    /// The text of a file; `None` when it cannot be known.
    fn text(&mut self, path: &str) -> Result<Option<&mut String>, Fault> {
        match self {
            Self::Nothing => Ok(None),
            Self::Files(files) => match files.get_mut(path) {
                Some(Some(text)) => Ok(Some(text)),
                Some(None) => Err(("path", format!("`{path}` is not a text file"))),
                None => Err(("path", format!("there is no file `{path}` at this step"))),
            },
        }
    }

    fn must_hold(&self, path: &str) -> Result<(), Fault> {
        let folder = format!("{path}/");
        match self {
            Self::Files(files) if !files.keys().any(|f| f == path || f.starts_with(&folder)) => {
                Err((
                    "path",
                    format!("there is no file or folder `{path}` at this step"),
                ))
            }
            _ => Ok(()),
        }
    }

    fn edit(&mut self, path: &str, old: &str, new: &str) -> Result<(), Fault> {
        if old.is_empty() {
            return Err(("old", "is empty".to_owned()));
        }
        if old == new {
            return Err(("new", "is the same as `old`".to_owned()));
        }
        let Some(text) = self.text(path)? else {
            return Ok(());
        };
        match text.matches(old).count() {
            1 => *text = text.replacen(old, new, 1),
            0 => return Err(("old", format!("is not in `{path}` at this step"))),
            n => {
                return Err((
                    "old",
                    format!("is in `{path}` {n} times; it must be unique"),
                ));
            }
        }
        Ok(())
    }
}

fn inside(path: &str) -> Result<(), Fault> {
    paths::inside(path).map_err(|problem| ("path", problem))
}

/// Whether a command surely changes no source file. When in doubt it does not: later edits are
/// then left to the test that plays the walkthrough.
fn leaves_files_alone(command: &str) -> bool {
    if command.contains(['>', '`']) || command.contains("$(") {
        return false;
    }
    command.split(['&', '|', ';', '\n']).all(|part| {
        let Ok(message) = shell_words::split(part) else {
            return false;
        };
        let mut message = message
            .iter()
            .map(String::as_str)
            .skip_while(|word| *word == "!");
        matches!(
            (message.next(), message.next()),
            (None, _)
                | (Some("cargo"), Some("test" | "check" | "build" | "run"))
                | (Some("git"), Some("status" | "diff" | "log" | "show"))
                | (
                    Some("printf" | "echo" | "cat" | "ls" | "grep" | "rg" | "head" | "tail"),
                    _
                )
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plainly_harmless_commands_keep_the_files_known() {
        for command in [
            "cargo test --offline -q",
            "printf 'a b' | cargo run -q -- report /dev/stdin && ! cargo check",
            "git status; ls src",
        ] {
            assert!(leaves_files_alone(command), "{command}");
        }
        for command in [
            "sed -i s/a/b/ src/lib.rs",
            "cat a > b",
            "cargo fmt",
            "git checkout .",
            "cargo test && rm a",
            "echo $(rm a)",
            "echo 'open",
        ] {
            assert!(!leaves_files_alone(command), "{command}");
        }
    }
}
