//! Finds tasks by name: the project's own first, then the built-in ones.

use std::path::Path;

use super::folder::Folder;
use super::places::Places;
use super::{Task, TaskError, read_task};
use crate::embedded;
use flashrig_config::FileError;

/// Where tasks and fixtures are looked for.
#[derive(Clone, Debug)]
pub struct Library {
    tasks: Places,
    fixtures: Places,
}

impl Library {
    /// A library of the built-in tasks and fixtures and of those in `tasks/` and `fixtures/` of
    /// `project_dir`; of two with the same name the project's wins. Nothing is read yet.
    pub fn new(project_dir: Option<&Path>) -> Self {
        let places = |name, built_in, file| {
            let own = project_dir.map(|dir| Folder::Disk(dir.join(name)));
            Places::new(own, Folder::built_in(built_in, name), file)
        };
        Self {
            tasks: places("tasks", &embedded::TASKS, "task.toml"),
            fixtures: places("fixtures", &embedded::FIXTURES, "fixture.toml"),
        }
    }

    /// The names of all tasks, sorted. A folder without a `task.toml` is no task.
    ///
    /// # Errors
    /// When a folder on disk exists but cannot be read.
    pub fn names(&self) -> Result<Vec<String>, FileError> {
        self.tasks.names()
    }

    /// The project's folder of the task `name`, relative to the project's folder; `None` for a
    /// built-in task, and when there is none of that name.
    ///
    /// # Errors
    /// When a folder on disk exists but cannot be read.
    pub fn project_folder(&self, name: &str) -> Result<Option<String>, FileError> {
        let found = self.tasks.find(name)?;
        Ok(found.and_then(|folder| folder.project_folder(name)))
    }

    /// Reads and validates a task with all its files.
    ///
    /// # Errors
    /// When there is none of that name, or when any of its files, or of its fixture's, is missing
    /// or says something it must not.
    pub fn load(&self, name: &str) -> Result<Task, TaskError> {
        match self.tasks.find(name)? {
            Some(folder) => Ok(read_task::read(name, &folder, &self.fixtures)?),
            None => {
                let known = self.names()?;
                Err(TaskError::UnknownTask {
                    name: name.to_owned(),
                    known,
                })
            }
        }
    }
}
