//! `task.toml` and `fixture.toml` as people write them. Nothing here is checked beyond its type.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Format name of `task.toml`.
pub(super) const TASK_SCHEMA: &str = "flashrig.task/1";
/// Format name of `fixture.toml`.
pub(super) const FIXTURE_SCHEMA: &str = "flashrig.fixture/1";
/// Format name of `walkthrough.toml`.
pub(super) const WALKTHROUGH_SCHEMA: &str = "flashrig.walkthrough/1";

/// A task: `tasks/NAME/task.toml`. Beside it lie `prompt.md`, `solution.patch` and, for the
/// simulated server, `walkthrough.toml`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskFile {
    /// Format name: `flashrig.task/1`.
    pub schema: String,
    /// One line for people.
    pub title: String,
    /// Name of the fixture that the task starts from. Either this or `repo` and `rev`.
    pub fixture: Option<String>,
    /// Path of a local git repository, absolute or relative to the task's folder.
    pub repo: Option<String>,
    /// Revision of `repo`: a branch, a tag, a commit.
    pub rev: Option<String>,
    /// Programs that agent and checks need on PATH.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Limit for a session on this task, e.g. `15m`.
    pub time_limit: String,
    /// Globs of files that the agent must not touch; each matches at least one file. `*` stays within a folder, `**` crosses
    /// folders.
    #[serde(default)]
    pub protected: Vec<String>,
    /// Globs of files that the agent must not create. The base has none of them; a file of the base
    /// belongs into `protected`.
    #[serde(default)]
    pub forbidden: Vec<String>,
    /// Files that the agent never sees, copied in before the checks run.
    #[serde(default)]
    pub hidden: Vec<HiddenEntry>,
    /// What must hold at the end; at least one.
    pub checks: Vec<CheckEntry>,
    /// Size limits of the agent's patch.
    #[serde(default)]
    pub diff: DiffEntry,
    /// Dishonest solutions that must fail.
    #[serde(default)]
    pub cheats: Vec<CheatEntry>,
}

/// One hidden file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HiddenEntry {
    /// Path in the task's folder.
    pub from: String,
    /// Path in the verified tree.
    pub to: String,
}

/// One check.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckEntry {
    /// Short name, unique in the task.
    pub name: String,
    /// Program and arguments, quoted as in a shell but run without one.
    pub run: String,
    /// Limit, e.g. `2m`; at it the check fails.
    pub time_limit: String,
    /// What it does on the untouched repository.
    pub before: BeforeEntry,
    /// A regular expression that its output must match.
    pub must_print: Option<String>,
}

/// What a check does on the untouched repository.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BeforeEntry {
    /// It passes: the agent must not break it.
    Pass,
    /// It fails: the agent's work makes it pass.
    Fail,
}

/// Size limits of a patch.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffEntry {
    /// Changed files.
    pub max_files: Option<u64>,
    /// Inserted plus deleted lines.
    pub max_lines: Option<u64>,
}

/// One cheat.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheatEntry {
    /// Short name, unique in the task.
    pub name: String,
    /// Path of a unified diff in the task's folder.
    pub patch: String,
}

/// A fixture: `fixtures/NAME/fixture.toml`. Beside it lies `tree/`, the files in their final
/// version; a final `.in` of a file's name is dropped, so that `Cargo.toml.in` makes no package
/// of the folder.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FixtureFile {
    /// Format name: `flashrig.fixture/1`.
    pub schema: String,
    /// One line for people.
    pub title: String,
    /// Globs of the files that are executable. Mode bits on disk do not count.
    #[serde(default)]
    pub executable: Vec<String>,
    /// Commits, oldest first. After the last one the tree is exactly `tree/`.
    pub commits: Vec<CommitEntry>,
}

/// One commit: first `files` is applied, then `overlay`, then `delete`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommitEntry {
    /// Author and committer name.
    pub author: String,
    /// Author and committer address.
    pub email: String,
    /// Date and time in UTC, e.g. `2024-03-01T09:30:00Z`.
    pub date: String,
    /// The whole message.
    pub message: String,
    /// Globs of the files of `tree/` that stand in their final version from here on.
    #[serde(default)]
    pub files: Vec<String>,
    /// A folder beside `tree/` with older versions of files, which stand until a later commit
    /// names or overlays them again.
    pub overlay: Option<String>,
    /// Paths of files that this commit removes.
    #[serde(default)]
    pub delete: Vec<String>,
}
