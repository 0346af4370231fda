//! What a base is made from: a fixture held as plain files, or a repository and a revision.

use std::path::PathBuf;

/// Where a repository comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A fixture, by name.
    Fixture(Fixture),
    /// A local repository and a revision of it.
    Repository {
        /// Path of the repository.
        path: PathBuf,
        /// Anything that `git rev-parse` understands.
        revision: String,
    },
}

/// A small repository with its history, held as plain files.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// Name of the fixture's folder.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Commits, oldest first; each gives the whole tree at that point.
    pub commits: Vec<FixtureCommit>,
}

/// One commit of a fixture.
#[derive(Clone, Debug)]
pub struct FixtureCommit {
    /// Author and committer name.
    pub author: String,
    /// Author and committer address.
    pub email: String,
    /// Seconds since the epoch, UTC; fixed, so that object ids are the same everywhere.
    pub time: i64,
    /// Whole commit message.
    pub message: String,
    /// Every file of the tree.
    pub files: Vec<FixtureFile>,
}

/// A file of a fixture's tree.
#[derive(Clone, Debug)]
pub struct FixtureFile {
    /// Relative path with forward slashes.
    pub path: String,
    /// Contents.
    pub bytes: Vec<u8>,
    /// Whether it is executable.
    pub executable: bool,
}
