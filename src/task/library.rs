//! Finds tasks by name: the project's own first, then the built-in ones.

use std::collections::BTreeSet;
use std::path::Path;

use super::folder::Folder;
use super::{Task, TaskError, read_task};
use crate::embedded;
use flashrig_config::{FileError, nearest};

/// Where tasks and fixtures are looked for.
#[derive(Clone, Debug)]
pub struct Library {
    /// Folders of tasks, the one that wins in front.
    tasks: Vec<Folder>,
    /// Folders of fixtures, likewise.
    fixtures: Vec<Folder>,
}

impl Library {
    /// A library of the built-in tasks and fixtures and of those in `tasks/` and `fixtures/` of
    /// `project_dir`; of two with the same name the project's wins. Nothing is read yet.
    pub fn new(project_dir: Option<&Path>) -> Self {
        let own = |name: &str| project_dir.map(|dir| Folder::Disk(dir.join(name)));
        Self {
            tasks: own("tasks")
                .into_iter()
                .chain([Folder::built_in(&embedded::TASKS, "tasks")])
                .collect(),
            fixtures: own("fixtures")
                .into_iter()
                .chain([Folder::built_in(&embedded::FIXTURES, "fixtures")])
                .collect(),
        }
    }

    /// The names of all tasks, sorted. A folder without a `task.toml` is no task.
    ///
    /// # Errors
    /// When a folder on disk exists but cannot be read.
    pub fn names(&self) -> Result<Vec<String>, FileError> {
        names(&self.tasks, "task.toml")
    }

    /// The project's folder of the task `name`, relative to the project's folder; `None` for a
    /// built-in task, and when there is none of that name.
    ///
    /// # Errors
    /// When a folder on disk exists but cannot be read.
    pub fn project_folder(&self, name: &str) -> Result<Option<String>, FileError> {
        let found = find(&self.tasks, name, "task.toml")?;
        Ok(found.and_then(|folder| folder.project_folder(name)))
    }

    /// Reads and validates a task with all its files.
    ///
    /// # Errors
    /// When there is none of that name, or when any of its files, or of its fixture's, is missing
    /// or says something it must not.
    pub fn load(&self, name: &str) -> Result<Task, TaskError> {
        match find(&self.tasks, name, "task.toml")? {
            Some(folder) => Ok(read_task::read(name, &folder, self)?),
            None => {
                let known = self.names()?;
                let nearest = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
                Err(TaskError::UnknownTask {
                    name: name.to_owned(),
                    nearest,
                    known,
                })
            }
        }
    }

    /// The folder of a fixture, if there is one of that name.
    pub(super) fn fixture_folder(&self, name: &str) -> Result<Option<Folder>, FileError> {
        find(&self.fixtures, name, "fixture.toml")
    }

    /// The names of all fixtures, sorted.
    pub(super) fn fixture_names(&self) -> Result<Vec<String>, FileError> {
        names(&self.fixtures, "fixture.toml")
    }
}

fn names(places: &[Folder], file: &str) -> Result<Vec<String>, FileError> {
    let mut names = BTreeSet::new();
    for place in places {
        for name in place.folder_names()? {
            if place.folder(&name).read(file)?.is_some() {
                names.insert(name);
            }
        }
    }
    Ok(names.into_iter().collect())
}

/// The first folder of that name which holds `file`.
fn find(places: &[Folder], name: &str, file: &str) -> Result<Option<Folder>, FileError> {
    // A name is one folder's name; anything else could reach out of the library.
    if name.is_empty() || name.contains(['/', '\\']) || name == "." || name == ".." {
        return Ok(None);
    }
    for place in places {
        let folder = place.folder(name);
        if folder.read(file)?.is_some() {
            return Ok(Some(folder));
        }
    }
    Ok(None)
}
