//! The validated form of a task. The raw form, as people write it, lives in `raw.rs`.

use std::time::Duration;

use globset::GlobSet;

use flashrig_sim::Walkthrough;
use flashrig_workspace::Source;

/// One job for an agent.
#[derive(Clone, Debug)]
pub struct Task {
    /// Name of the task's folder.
    pub name: String,
    /// Folder of the project that it was read from, relative to the project's folder; `None` for a
    /// built-in task.
    pub folder: Option<String>,
    /// One line for people.
    pub title: String,
    /// What the agent is told; the whole of `prompt.md`, trimmed.
    pub prompt: String,
    /// The repository that the task starts from.
    pub source: Source,
    /// Programs that agent and checks need on PATH.
    pub needs: Vec<String>,
    /// Limit for a session on this task.
    pub time_limit: Duration,
    /// Files that the agent must not touch or create, relative to the workspace.
    pub protected: GlobSet,
    /// The globs of `protected` as written; those of `forbidden` come after them in the set.
    pub protected_globs: Vec<String>,
    /// Files copied in at verification, after the protected files were restored.
    pub hidden: Vec<HiddenFile>,
    /// What must hold at the end.
    pub checks: Vec<Check>,
    /// Size limits of the agent's patch.
    pub diff_limit: DiffLimit,
    /// The reference solution, a unified diff against the base tree.
    pub solution: String,
    /// Dishonest solutions that must fail.
    pub cheats: Vec<Cheat>,
    /// What the simulated server plays; absent for tasks meant for real models only.
    pub walkthrough: Option<Walkthrough>,
}

/// A file that the agent never sees.
#[derive(Clone, Debug)]
pub struct HiddenFile {
    /// Where it goes in the verified tree.
    pub to: String,
    /// Contents.
    pub bytes: Vec<u8>,
}

/// What a check must do before the task is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// It must pass on the untouched fixture.
    Pass,
    /// It must fail on the untouched fixture.
    Fail,
}

/// One command that must succeed on the verified tree.
#[derive(Clone, Debug)]
pub struct Check {
    /// Short name, unique in the task.
    pub name: String,
    /// Program and arguments.
    pub run: Vec<String>,
    /// Limit; at it the check fails.
    pub time_limit: Duration,
    /// What it does on the untouched fixture.
    pub before: Before,
    /// A pattern that standard output or standard error must match, so that a program which
    /// exits early with success does not pass.
    pub must_print: Option<regex::Regex>,
}

/// Size limits of a patch; `None` is no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiffLimit {
    /// Changed files.
    pub files: Option<u64>,
    /// Inserted plus deleted lines.
    pub lines: Option<u64>,
}

/// A dishonest solution: a patch that must not pass the task.
#[derive(Clone, Debug)]
pub struct Cheat {
    /// Short name.
    pub name: String,
    /// A unified diff against the base tree.
    pub patch: String,
}
